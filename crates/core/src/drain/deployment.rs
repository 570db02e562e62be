//! The Deployment of a pod: what is read of it, and whether its rollout has a new pod ready before an
//! old one goes.

use jiff::Timestamp;

use super::types::ObservedPod;
use crate::name::is_dns_name;

/// A ReplicaSet that controls a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplicaSetRef {
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

impl ReplicaSetRef {
    /// The ReplicaSet of this pod. A name that is not a DNS name is rejected, because whoever
    /// creates a pod chooses it and it becomes part of a request path.
    pub fn of_pod(pod: &ObservedPod) -> Option<Self> {
        let owner = pod.controller.as_ref()?;
        let is_one = owner.api_version == "apps/v1" && owner.kind == "ReplicaSet";
        (is_one && is_dns_name(&owner.name)).then(|| Self {
            namespace: pod.pod.namespace.clone(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
        })
    }
}

/// The Deployment of a ReplicaSet, as one read shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedDeployment {
    pub name: String,
    pub uid: String,
    /// The version that was read: the precondition of a restart.
    pub resource_version: String,
    pub deleting: bool,
    /// `spec.paused`.
    pub paused: bool,
    /// Whether its pod template is that of the ReplicaSet. If not, a rollout replaces the
    /// ReplicaSet's pods already.
    pub has_same_template: bool,
    pub replicas: u32,
    pub strategy: RolloutStrategy,
    /// Why its rollout does not progress, by its condition `Progressing`.
    pub stuck: Option<String>,
}

/// `spec.strategy` of a Deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolloutStrategy {
    /// All pods go before the first new one is made.
    Recreate,
    RollingUpdate {
        max_surge: ReplicaShare,
        max_unavailable: ReplicaShare,
    },
}

/// A number of replicas, or a percentage of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaShare {
    Count(u32),
    Percent(u32),
}

impl ReplicaShare {
    /// Rounded down, as Kubernetes rounds `maxUnavailable`.
    fn rounded_down(self, replicas: u32) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => Self::whole(u64::from(replicas) * u64::from(percent) / 100),
        }
    }

    /// Rounded up, as Kubernetes rounds `maxSurge`.
    fn rounded_up(self, replicas: u32) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => {
                Self::whole((u64::from(replicas) * u64::from(percent)).div_ceil(100))
            }
        }
    }

    fn whole(number: u64) -> u32 {
        u32::try_from(number).unwrap_or(u32::MAX)
    }
}

/// The answer to [`EvictionStep::look_up_deployments`](super::EvictionStep::look_up_deployments).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeploymentLookup {
    Found(Box<ObservedDeployment>),
    /// No Deployment controls the ReplicaSet, or one of the two is gone.
    None {
        why: String,
    },
    /// The right to read them is missing.
    Forbidden {
        why: String,
    },
    /// The read failed; it is repeated after a pause.
    Failed {
        why: String,
    },
}

/// One restart of a Deployment by rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeploymentRestart {
    /// The caller returns it with the answer.
    pub replica_set: ReplicaSetRef,
    /// In the namespace of the ReplicaSet.
    pub deployment: String,
    /// Precondition.
    pub uid: String,
    /// Precondition.
    pub resource_version: String,
    /// The value of the restart's annotation.
    pub at: Timestamp,
}

/// The answer to a [`DeploymentRestart`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestartAnswer {
    Restarted,
    /// A precondition failed, or nobody knows what happened: the Deployment is read again.
    ReadAgain {
        why: String,
    },
    /// Final.
    Refused {
        why: String,
    },
}

/// Why a rollout of this Deployment would not keep a pod ready while it replaces the others.
pub(super) fn find_rollout_refusal(seen: &ObservedDeployment) -> Option<String> {
    if seen.deleting {
        return Some("is being deleted".into());
    }
    if seen.paused {
        return Some("is paused".into());
    }
    // A rollout that has begun goes on, whatever its strategy is.
    if !seen.has_same_template {
        return None;
    }
    if seen.replicas == 0 {
        return Some("wants no pods".into());
    }
    match seen.strategy {
        RolloutStrategy::Recreate => {
            Some("has the strategy Recreate: its pods go before new ones come".into())
        }
        RolloutStrategy::RollingUpdate {
            max_surge,
            max_unavailable,
        } => {
            let kept = seen
                .replicas
                .saturating_sub(max_unavailable.rounded_down(seen.replicas));
            if max_surge.rounded_up(seen.replicas) == 0 {
                return Some("has maxSurge 0: a pod goes before its replacement comes".into());
            }
            (kept == 0).then(|| {
                let all =
                    "has a maxUnavailable that lets all its pods go before new ones are ready";
                all.to_owned()
            })
        }
    }
}

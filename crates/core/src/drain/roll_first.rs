//! `do: RollFirst`: the Deployment of a pod is restarted by rollout, so that the replacement is
//! ready elsewhere before the pod goes. Source: specification §10.2.
//!
//! **Promises:** a Deployment is restarted only while its pod template is that of the pod's
//! ReplicaSet, on the version that was read: a second restart for the same pod, by this drain, an
//! earlier process or another node, is refused by the API server or not asked for. A pod that a
//! rollout cannot replace first is evicted as any other, and the reason is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use super::deployment::{
    DeploymentLookup, DeploymentRestart, ObservedDeployment, ReplicaSetRef, RestartAnswer,
    find_rollout_refusal,
};
use super::types::ObservedPod;
use super::waiting_pod::EVICTION_BACKOFF;
use crate::Now;

/// How often a Deployment is read again while its rollout is waited for. The pod watch shows that
/// the pod goes; this only shows why it does not.
const REREAD_INTERVAL: Duration = Duration::from_secs(30);

/// What a rollout does for a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutOutlook {
    /// Its Deployment has not been read, or cannot be read at the moment.
    Unknown { why: Option<String> },
    /// Its Deployment is restarted when the pod's turn comes.
    Restart { deployment: String },
    /// A rollout replaces the pod.
    UnderWay {
        deployment: String,
        /// What keeps the rollout from getting on.
        trouble: Option<String>,
    },
    /// No rollout can replace it first: it is evicted as any other pod.
    Evict { why: String },
}

impl RolloutOutlook {
    /// Why the pod is evicted when its time is over.
    pub(super) fn describe_lateness(&self) -> String {
        match self {
            Self::Unknown { why } => match why {
                Some(why) => format!("its Deployment could not be read in time: {why}"),
                None => "its Deployment was not read in time".into(),
            },
            Self::Restart { deployment } => {
                format!("its time was over before Deployment {deployment} was restarted")
            }
            Self::UnderWay {
                deployment,
                trouble,
            } => match trouble {
                Some(trouble) => {
                    format!("the rollout of Deployment {deployment} took too long: {trouble}")
                }
                None => format!("the rollout of Deployment {deployment} took too long"),
            },
            Self::Evict { why } => why.clone(),
        }
    }
}

impl fmt::Display for RolloutOutlook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { why: None } => f.write_str("its Deployment is being read"),
            Self::Unknown { why: Some(why) } => write!(f, "its Deployment cannot be read: {why}"),
            Self::Restart { deployment } => write!(f, "Deployment {deployment} is restarted"),
            Self::UnderWay {
                deployment,
                trouble: None,
            } => write!(f, "a rollout of Deployment {deployment} replaces it"),
            Self::UnderWay {
                deployment,
                trouble: Some(trouble),
            } => write!(
                f,
                "a rollout of Deployment {deployment} replaces it, but {trouble}"
            ),
            Self::Evict { why } => write!(f, "evicted without a rollout: {why}"),
        }
    }
}

/// A pod that is evicted although its rule wanted its replacement to be ready first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnrolledPod {
    pub pod: super::PodIdentity,
    pub why: String,
}

impl fmt::Display for UnrolledPod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is evicted before its replacement is ready: {}",
            self.pod, self.why
        )
    }
}

/// The rollouts of one drain, by the ReplicaSets of its pods.
#[derive(Debug, Clone, Default)]
pub(super) struct PodRollouts {
    of_sets: BTreeMap<ReplicaSetRef, PodRollout>,
}

#[derive(Debug, Clone)]
struct PodRollout {
    state: PodRolloutState,
    failures: u32,
    /// Whether this drain has restarted the Deployment.
    restarted: bool,
}

#[derive(Debug, Clone)]
enum PodRolloutState {
    /// The Deployment is read at this monotonic time or later; until then this is known.
    Due(Duration, RolloutOutlook),
    Reading(RolloutOutlook),
    /// It may be restarted, on the version that was read.
    Restartable(Box<ObservedDeployment>),
    Restarting(String),
    Evict(String),
}

impl PodRollouts {
    /// Whether no rollout can replace the pod before it goes.
    pub(super) fn is_refused(&self, pod: &ObservedPod) -> bool {
        matches!(self.outlook_of(pod), RolloutOutlook::Evict { .. })
    }

    pub(super) fn outlook_of(&self, pod: &ObservedPod) -> RolloutOutlook {
        if pod.tolerates_cordon {
            let why = "it tolerates the cordon, and its replacement could come to this node";
            return RolloutOutlook::Evict { why: why.into() };
        }
        let Some(set) = ReplicaSetRef::of_pod(pod) else {
            let why = describe_other_owner(pod);
            return RolloutOutlook::Evict { why };
        };
        let full_name = |name: &str| format!("{}/{name}", set.namespace);
        match self.of_sets.get(&set).map(|rollout| &rollout.state) {
            None => RolloutOutlook::Unknown { why: None },
            Some(PodRolloutState::Due(_, known) | PodRolloutState::Reading(known)) => known.clone(),
            Some(PodRolloutState::Restartable(seen)) => RolloutOutlook::Restart {
                deployment: full_name(&seen.name),
            },
            Some(PodRolloutState::Restarting(name)) => RolloutOutlook::Restart {
                deployment: full_name(name),
            },
            Some(PodRolloutState::Evict(why)) => RolloutOutlook::Evict { why: why.clone() },
        }
    }

    /// Which of these ReplicaSets to look up now. Each then counts as being read until it is
    /// answered.
    pub(super) fn start_due_reads(
        &mut self,
        asked: &BTreeSet<ReplicaSetRef>,
        now: Duration,
    ) -> Vec<ReplicaSetRef> {
        let mut due = Vec::new();
        for set in asked {
            let rollout = self.of_sets.entry(set.clone()).or_insert(PodRollout {
                state: PodRolloutState::Due(Duration::ZERO, RolloutOutlook::Unknown { why: None }),
                failures: 0,
                restarted: false,
            });
            if let PodRolloutState::Due(at, known) = &rollout.state
                && *at <= now
            {
                rollout.state = PodRolloutState::Reading(known.clone());
                due.push(set.clone());
            }
        }
        due
    }

    pub(super) fn next_read_at(&self, asked: &BTreeSet<ReplicaSetRef>) -> Option<Duration> {
        let due = asked.iter().filter_map(|set| {
            match self.of_sets.get(set).map(|rollout| &rollout.state)? {
                PodRolloutState::Due(at, _) => Some(*at),
                PodRolloutState::Reading(_)
                | PodRolloutState::Restartable(_)
                | PodRolloutState::Restarting(_)
                | PodRolloutState::Evict(_) => None,
            }
        });
        due.min()
    }

    /// The restarts to write now, of the pods whose turn it is.
    pub(super) fn start_restarts(
        &mut self,
        turn: &BTreeSet<ReplicaSetRef>,
        now: Now,
    ) -> Vec<DeploymentRestart> {
        let mut restarts = Vec::new();
        for set in turn {
            let Some(rollout) = self.of_sets.get_mut(set) else {
                continue;
            };
            if let PodRolloutState::Restartable(seen) = &rollout.state {
                restarts.push(DeploymentRestart {
                    replica_set: set.clone(),
                    deployment: seen.name.clone(),
                    uid: seen.uid.clone(),
                    resource_version: seen.resource_version.clone(),
                    at: now.wall,
                });
                rollout.state = PodRolloutState::Restarting(seen.name.clone());
            }
        }
        restarts
    }

    /// An answer to a lookup that was not sent is ignored.
    pub(super) fn apply_lookup(
        &mut self,
        set: &ReplicaSetRef,
        lookup: DeploymentLookup,
        now: Duration,
    ) {
        let Some(rollout) = self.of_sets.get_mut(set) else {
            return;
        };
        let PodRolloutState::Reading(known) = &rollout.state else {
            return;
        };
        let state = match lookup {
            DeploymentLookup::Found(seen) => {
                rollout.failures = 0;
                judge_deployment(set, seen, rollout.restarted, now)
            }
            DeploymentLookup::None { why } | DeploymentLookup::Forbidden { why } => {
                PodRolloutState::Evict(why)
            }
            DeploymentLookup::Failed { why } => {
                let known = match known {
                    RolloutOutlook::UnderWay { deployment, .. } => RolloutOutlook::UnderWay {
                        deployment: deployment.clone(),
                        trouble: Some(format!("it cannot be read: {why}")),
                    },
                    RolloutOutlook::Unknown { .. }
                    | RolloutOutlook::Restart { .. }
                    | RolloutOutlook::Evict { .. } => RolloutOutlook::Unknown { why: Some(why) },
                };
                PodRolloutState::Due(rollout.next_try(now), known)
            }
        };
        rollout.state = state;
    }

    pub(super) fn apply_restart_answer(
        &mut self,
        set: &ReplicaSetRef,
        answer: RestartAnswer,
        now: Duration,
    ) {
        let Some(rollout) = self.of_sets.get_mut(set) else {
            return;
        };
        let PodRolloutState::Restarting(name) = &rollout.state else {
            return;
        };
        let deployment = format!("{}/{name}", set.namespace);
        rollout.state = match answer {
            RestartAnswer::Restarted => {
                rollout.restarted = true;
                rollout.failures = 0;
                let under_way = RolloutOutlook::UnderWay {
                    deployment,
                    trouble: None,
                };
                PodRolloutState::Due(now.saturating_add(REREAD_INTERVAL), under_way)
            }
            RestartAnswer::ReadAgain { why } => {
                let unknown = RolloutOutlook::Unknown { why: Some(why) };
                PodRolloutState::Due(rollout.next_try(now), unknown)
            }
            RestartAnswer::Refused { why } => {
                PodRolloutState::Evict(format!("Deployment {deployment} was not restarted: {why}"))
            }
        };
    }
}

impl PodRollout {
    fn next_try(&mut self, now: Duration) -> Duration {
        let pause = EVICTION_BACKOFF.pause_after(self.failures);
        self.failures = self.failures.saturating_add(1);
        now.saturating_add(pause)
    }
}

/// Whether the Deployment is restarted, replaces the pod already, or cannot replace it first.
fn judge_deployment(
    set: &ReplicaSetRef,
    seen: Box<ObservedDeployment>,
    restarted: bool,
    now: Duration,
) -> PodRolloutState {
    let deployment = format!("{}/{}", set.namespace, seen.name);
    if let Some(why) = find_rollout_refusal(&seen) {
        return PodRolloutState::Evict(format!("Deployment {deployment} {why}"));
    }
    if !seen.has_same_template {
        let under_way = RolloutOutlook::UnderWay {
            deployment,
            trouble: seen.stuck,
        };
        return PodRolloutState::Due(now.saturating_add(REREAD_INTERVAL), under_way);
    }
    if restarted {
        return PodRolloutState::Evict(format!(
            "the restart of Deployment {deployment} was undone"
        ));
    }
    PodRolloutState::Restartable(seen)
}

fn describe_other_owner(pod: &ObservedPod) -> String {
    match &pod.controller {
        Some(owner) => format!(
            "it belongs to {} {}; only a Deployment has a replacement ready first",
            owner.kind, owner.name
        ),
        None => "it has no controller; only a Deployment has a replacement ready first".into(),
    }
}

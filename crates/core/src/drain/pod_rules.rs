//! What a policy says about single pods: its rules, its exclusion, and the marks of other tools
//! that it honours. Source: specification §10.2.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use super::LabelSelector;

/// Part of `spec.drain` of a RebootPolicy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodRules {
    /// Pods that stay.
    pub exclude: Option<LabelSelector>,
    /// Marks on pods that count.
    pub honor: BTreeSet<PodMark>,
    /// The first one that matches a pod decides about it.
    pub rules: Vec<PodRule>,
}

impl PodRules {
    /// How long a pod may delay the drain before the drain's timeout begins.
    pub fn longest_wait(&self) -> Duration {
        let waits = self.rules.iter().filter_map(|rule| match rule.action {
            RuleAction::WaitCompleted { timeout } | RuleAction::RollFirst { timeout } => {
                Some(timeout)
            }
            RuleAction::Evict | RuleAction::Delete | RuleAction::Skip => None,
        });
        waits.max().unwrap_or_default()
    }

    /// Whether a rule asks for the labels of namespaces.
    pub fn needs_namespaces(&self) -> bool {
        self.rules.iter().any(|rule| rule.namespaces.is_some())
    }

    /// Whether a rule may restart the controller of a pod with these labels.
    pub fn may_roll_first(&self, labels: &BTreeMap<String, String>) -> bool {
        self.rules.iter().any(|rule| {
            matches!(rule.action, RuleAction::RollFirst { .. }) && rule.pods.matches_labels(labels)
        })
    }

    /// Whether the MachineDrainRules of the node's Machine count.
    pub fn honors_machine_rules(&self) -> bool {
        self.honor.contains(&PodMark::ClusterApiDrain)
    }

    /// Whether some pods must be gone before others are touched.
    pub(super) fn has_orders(&self) -> bool {
        self.rules.iter().any(|rule| rule.order != 0)
    }
}

/// One of `drain.rules`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodRule {
    /// Matches the pod's labels; an empty selector matches every pod.
    pub pods: LabelSelector,
    /// Matches the labels of the pod's namespace.
    pub namespaces: Option<LabelSelector>,
    pub action: RuleAction,
    /// Pods of a lower order are gone before this one is touched.
    pub order: i32,
}

/// `do`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RuleAction {
    #[default]
    Evict,
    /// The pod may end by itself; after this time, counted from the drain's beginning, it is
    /// evicted.
    WaitCompleted { timeout: Duration },
    /// Its Deployment is restarted by rollout, so that its replacement is ready before it goes;
    /// after this time, counted from the drain's beginning, it is evicted.
    RollFirst { timeout: Duration },
    /// Deleted with its grace period; no budget is asked.
    Delete,
    /// The pod stays.
    Skip,
}

/// A label or annotation by which other tools protect a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodMark {
    /// Label of Cluster API; where it counts, so do the MachineDrainRules of the node's Machine.
    ClusterApiDrain,
    /// Annotation of Karpenter.
    DoNotDisrupt,
    /// Annotation of the cluster autoscaler.
    SafeToEvict,
}

impl PodMark {
    pub const ALL: [PodMark; 3] = [Self::ClusterApiDrain, Self::DoNotDisrupt, Self::SafeToEvict];

    /// Its key on the pod, which is also its name in `drain.honor`.
    pub fn mark_key(self) -> &'static str {
        match self {
            Self::ClusterApiDrain => "cluster.x-k8s.io/drain",
            Self::DoNotDisrupt => "karpenter.sh/do-not-disrupt",
            Self::SafeToEvict => "cluster-autoscaler.kubernetes.io/safe-to-evict",
        }
    }

    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mark| mark.mark_key() == key)
    }
}

impl fmt::Display for PodMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self {
            Self::ClusterApiDrain => "label",
            Self::DoNotDisrupt | Self::SafeToEvict => "annotation",
        };
        write!(f, "{place} {}", self.mark_key())
    }
}

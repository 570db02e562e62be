//! What a drain does with one pod, and why.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::pod_rules::PodMark;
use super::types::DrainStart;
use crate::Now;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodDrainPlan {
    pub action: PodAction,
    pub why: PlanReason,
    /// Pods of a lower order are gone before this one is touched.
    pub order: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodAction {
    /// The pod does not have to leave.
    Stay,
    Evict,
    /// Deleted with its grace period; no budget is asked.
    Delete,
    /// The pod may end by itself; after that time it is evicted.
    WaitCompleted(WaitLimit),
    /// A rollout replaces the pod; this long after the drain began it is evicted. The drain's
    /// timeout begins after it.
    RollFirst(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitLimit {
    /// This long after the drain began. The drain's timeout begins after it.
    Timeout(Duration),
    /// Until this moment. The drain's timeout runs meanwhile.
    Until(Timestamp),
    /// As long as the drain's timeout allows.
    DrainTimeout,
}

/// What decided about the pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanReason {
    /// The kubelet's copy of a static pod.
    Mirror,
    DaemonSet,
    /// `drain.exclude`.
    Excluded,
    /// The rule with this index, counted from 0.
    Rule(usize),
    Mark(PodMark),
    /// The MachineDrainRule of Cluster API with this `namespace/name`.
    MachineDrainRule(Arc<str>),
    /// No rule matches.
    Default,
}

impl PodDrainPlan {
    pub(super) fn new(action: PodAction, why: PlanReason) -> Self {
        let order = 0;
        Self { action, why, order }
    }

    /// Whether the pod may still end by itself, or be replaced by a rollout.
    pub(crate) fn is_waiting(&self, start: DrainStart, now: Now) -> bool {
        match self.action {
            PodAction::WaitCompleted(WaitLimit::DrainTimeout) => true,
            PodAction::WaitCompleted(WaitLimit::Timeout(_) | WaitLimit::Until(_))
            | PodAction::RollFirst(_) => self
                .wait_ends_at(start, now)
                .is_some_and(|at| now.mono < at),
            PodAction::Stay | PodAction::Evict | PodAction::Delete => false,
        }
    }

    /// When the wait ends, in monotonic time.
    pub(crate) fn wait_ends_at(&self, start: DrainStart, now: Now) -> Option<Duration> {
        match self.action {
            PodAction::WaitCompleted(WaitLimit::Timeout(timeout))
            | PodAction::RollFirst(timeout) => Some(start.time_after(timeout)),
            PodAction::WaitCompleted(WaitLimit::Until(until)) => Some(now.mono_time_of(until)),
            PodAction::WaitCompleted(WaitLimit::DrainTimeout)
            | PodAction::Stay
            | PodAction::Evict
            | PodAction::Delete => None,
        }
    }
}

impl fmt::Display for PlanReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mirror => f.write_str("static pod"),
            Self::DaemonSet => f.write_str("pod of a DaemonSet"),
            Self::Excluded => f.write_str("drain.exclude"),
            Self::Rule(index) => write!(f, "drain.rules[{index}]"),
            Self::Mark(mark) => mark.fmt(f),
            Self::MachineDrainRule(name) => write!(f, "MachineDrainRule {name}"),
            Self::Default => f.write_str("no rule matches"),
        }
    }
}

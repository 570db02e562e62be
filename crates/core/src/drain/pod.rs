//! One pod on the node, and where it stands with the drain.

use super::types::{DaemonSetRef, PodRef, PodSeen};
use super::waiting::Waiting;

/// Namespace and name.
pub(super) type Name = (String, String);

#[derive(Debug, Clone)]
pub(super) struct Pod {
    pub(super) seen: PodSeen,
    pub(super) standing: Standing,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// Does not qualify.
    Stays,
    /// Would qualify, but its controller replaces it for ever.
    Tolerated,
    /// Would qualify, but is one of Dogwatch's own, which a coordinator does not evict.
    Kept,
    /// Not known yet; keeps the node from being drained.
    Asks(DaemonSetRef),
    /// On the wait list.
    Waits(Waiting),
    /// Its eviction failed for good.
    Dropped,
    /// The API server said that it is no more; the watch has not said so yet.
    Gone,
}

impl Pod {
    pub(super) fn waiting(&self) -> Option<&Waiting> {
        match &self.standing {
            Standing::Waits(waiting) => Some(waiting),
            Standing::Stays
            | Standing::Tolerated
            | Standing::Kept
            | Standing::Asks(_)
            | Standing::Dropped
            | Standing::Gone => None,
        }
    }
}

pub(super) fn name(pod: &PodRef) -> Name {
    (pod.namespace.clone(), pod.name.clone())
}

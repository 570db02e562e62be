//! One pod on the node, and its state in the drain.

use super::pod_lookups::PodLookup;
use super::pod_plan::PodDrainPlan;
use super::types::{ObservedPod, PodIdentity};
use super::waiting_pod::WaitingPod;

/// Namespace and name. A replaced pod keeps its key; only the UID changes.
pub(super) type PodKey = (String, String);

#[derive(Debug, Clone)]
pub(super) struct DrainPod {
    pub(super) seen: ObservedPod,
    pub(super) drain_state: PodDrainState,
    /// Not known yet while the pod awaits a lookup.
    pub(super) plan: PodDrainPlan,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PodDrainState {
    /// The pod does not have to leave the node.
    Stays,
    /// The pod would have to leave, but its controller keeps replacing it on this node.
    Tolerated,
    /// The pod would have to leave, but it is one of Dogwatch's own, which a coordinator does not
    /// evict.
    Kept,
    /// A lookup that its plan depends on is pending. The node is not drained until the answer
    /// arrives.
    AwaitsLookup(PodLookup),
    Waits(WaitingPod),
    Dropped,
    /// The API server answered that the pod no longer exists; the watch has not shown that yet.
    Gone,
}

impl DrainPod {
    pub(super) fn as_waiting_pod(&self) -> Option<&WaitingPod> {
        match &self.drain_state {
            PodDrainState::Waits(waiting) => Some(waiting),
            PodDrainState::Stays
            | PodDrainState::Tolerated
            | PodDrainState::Kept
            | PodDrainState::AwaitsLookup(_)
            | PodDrainState::Dropped
            | PodDrainState::Gone => None,
        }
    }
}

pub(super) fn pod_key(pod: &PodIdentity) -> PodKey {
    (pod.namespace.clone(), pod.name.clone())
}

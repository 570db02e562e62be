//! Recognizes controllers that put a pod back on the cordoned node each time it is evicted.

use std::collections::BTreeMap;
use std::time::Duration;

use super::types::ObservedPod;

/// From this replacement on, the pod is not evicted any more. Source: specification §2.3.
const REPLACEMENT_LIMIT: u32 = 3;

/// A scheduler knows of the cordon within seconds. What comes to the node this long after the
/// drain's list comes in spite of the cordon, whatever the pod looks like.
const CORDON_KNOWN_AFTER: Duration = Duration::from_mins(1);

/// How often each controller replaced a pod on this node during the drain, by the controller's UID.
#[derive(Debug, Clone, Default)]
pub(super) struct ReplacementCounts {
    replaced: BTreeMap<String, u32>,
    /// The drain's first step with a list, and its latest step, in monotonic time.
    steps: Option<(Duration, Duration)>,
}

impl ReplacementCounts {
    /// Call at each step once the pods were listed.
    pub(super) fn record_step(&mut self, now: Duration) {
        let first = self.steps.map_or(now, |(first, _)| first);
        self.steps = Some((first, now));
    }

    /// Counts a pod not seen before; returns whether it reaches the limit.
    ///
    /// `during`: the pod appeared after the initial list. A controller's first pod here replaces no
    /// other. A pod that the scheduler placed here although it does not tolerate the cordon was
    /// bound before the cordon, so its replacements end by themselves.
    pub(super) fn record_and_check_limit(&mut self, pod: &ObservedPod, during: bool) -> bool {
        let Some(owner) = &pod.controller else {
            return false;
        };
        let Some(replaced) = self.replaced.get_mut(&owner.uid) else {
            self.replaced.insert(owner.uid.clone(), 0);
            return false;
        };
        let late = self
            .steps
            .is_some_and(|(first, latest)| latest > first + CORDON_KNOWN_AFTER);
        let in_spite_of_cordon = pod.tolerates_cordon || pod.unscheduled || late;
        if !(during && in_spite_of_cordon) {
            return false;
        }
        *replaced = replaced.saturating_add(1);
        *replaced >= REPLACEMENT_LIMIT
    }

    /// `controller` is the controller's UID.
    pub(super) fn replacement_count(&self, controller: &str) -> u32 {
        self.replaced.get(controller).copied().unwrap_or_default()
    }
}

//! Which pods are evicted next, and in which order.

use std::collections::BTreeSet;
use std::time::Duration;

use super::NodeDrain;
use super::budgets::BudgetChange;
use super::pod::{DrainPod, PodDrainState, PodKey};
use super::pod_plan::PodAction;
use super::types::{EvictionAttempt, EvictionId, ObservedPod, RemovalMethod};
use super::waiting_pod::{EvictionBlocker, EvictionState, WaitingPod};
use crate::{Now, WakeTime};

impl NodeDrain {
    /// Queues pods of a changed budget, as many as it now allows. A call under way counts as one of
    /// them. If such a call is refused, the pod is tried again at once, because the server may have
    /// judged it before the change.
    pub(super) fn retry_after_budget_change(&mut self, change: &BudgetChange) {
        let concerned = |pod: &ObservedPod| change.affects_pod(pod);
        let mut tried = self.waiting_pods(WaitingPod::is_being_tried, concerned);
        tried.truncate(change.retry_allowance());
        let mut held = self.waiting_pods(WaitingPod::is_waiting_for_budget, concerned);
        held.truncate(change.retry_allowance() - tried.len());
        self.retry_pods(&tried, &held);
    }

    /// Queues the blocked pods of a namespace that no budget covers, when the watch on its budgets
    /// begins. The budget may have been deleted between the refusal and the start of the watch, and
    /// then no event will arrive.
    pub(super) fn retry_uncovered_pods(&mut self, namespace: &str) {
        let uncovered = |pod: &ObservedPod| {
            pod.pod.namespace == namespace && self.budgets.budgets_covering_pod(pod).is_empty()
        };
        let tried = self.waiting_pods(WaitingPod::is_being_tried, uncovered);
        let held = self.waiting_pods(WaitingPod::is_waiting_for_budget, uncovered);
        self.retry_pods(&tried, &held);
    }

    fn retry_pods(&mut self, tried: &[PodKey], held: &[PodKey]) {
        for key in tried {
            if let Some(PodDrainState::Waits(waiting)) = self.pod_state_mut(key) {
                waiting.mark_call_outdated();
            }
        }
        for key in held {
            self.enqueue_pod(key);
        }
    }

    fn waiting_pods(
        &self,
        what: impl Fn(&WaitingPod) -> bool,
        of: impl Fn(&ObservedPod) -> bool,
    ) -> Vec<PodKey> {
        self.pods
            .iter()
            .filter(|(_, pod)| pod.as_waiting_pod().is_some_and(&what) && of(&pod.seen))
            .map(|(key, _)| key.clone())
            .collect()
    }

    fn pod_state_mut(&mut self, key: &PodKey) -> Option<&mut PodDrainState> {
        self.pods.get_mut(key).map(|pod| &mut pod.drain_state)
    }

    pub(super) fn resume_paused_pods(&mut self, now: Duration) {
        let over = |waiting: &WaitingPod| matches!(waiting.eviction_state, EvictionState::Paused(until) if until <= now);
        for key in self.waiting_pods(over, |_| true) {
            self.enqueue_pod(&key);
        }
    }

    pub(super) fn enqueue_pod(&mut self, key: &PodKey) {
        let place = self.places;
        if let Some(PodDrainState::Waits(waiting)) = self.pod_state_mut(key) {
            waiting.eviction_state = EvictionState::Ready(place);
            self.queue.insert(place, key.clone());
            self.places += 1;
        }
    }

    pub(super) fn start_eviction_calls(&mut self) -> Vec<EvictionAttempt> {
        let mut tries = Vec::new();
        while self.calls.len() < self.config.in_flight.max(1) {
            let Some((place, key)) = self.queue.pop_first() else {
                break;
            };
            let Some(pod) = self.pods.get_mut(&key) else {
                continue;
            };
            let PodDrainState::Waits(waiting) = &mut pod.drain_state else {
                continue;
            };
            if waiting.eviction_state != EvictionState::Ready(place) {
                continue;
            }
            let id = EvictionId(self.ids);
            self.ids += 1;
            waiting.eviction_state = EvictionState::Called(id);
            tries.push(EvictionAttempt {
                id,
                pod: pod.seen.pod.clone(),
                removal_method: match pod.plan.action {
                    PodAction::Delete => RemovalMethod::Delete,
                    PodAction::Evict
                    | PodAction::WaitCompleted(_)
                    | PodAction::RollFirst(_)
                    | PodAction::Stay => self.removal_method,
                },
            });
            self.calls.insert(id, key);
        }
        tries
    }

    /// Namespaces in which a budget blocks a pod. A namespace stays in the set until the pod is
    /// gone, or each try of the pod would restart the watch.
    pub(super) fn budget_namespaces(&self) -> BTreeSet<String> {
        let held = |pod: &&DrainPod| {
            pod.as_waiting_pod()
                .and_then(|waiting| waiting.held.as_ref())
                .is_some_and(|held| held.by == EvictionBlocker::Budget)
        };
        self.pods
            .values()
            .filter(held)
            .map(|pod| pod.seen.pod.namespace.clone())
            .collect()
    }

    pub(super) fn next_wake(&self, now: Now) -> Option<WakeTime> {
        let pause = |pod: &DrainPod| match pod.as_waiting_pod()?.eviction_state {
            EvictionState::Paused(until) => Some(until),
            EvictionState::Held(_)
            | EvictionState::Ready(_)
            | EvictionState::Called(_)
            | EvictionState::Ending => None,
        };
        let tries = self.pods.values().filter_map(pause).min();
        let wakes = [
            (tries, "a pod that could not be evicted is tried again"),
            (
                self.lookups.next_due_at(),
                "a DaemonSet or namespace is looked up again",
            ),
            (
                self.next_release_at(now),
                "a pod's time to end by itself is over",
            ),
            (
                self.next_deployment_read_at(now),
                "a Deployment is read again",
            ),
            (self.budgets.next_list_at(), "the budgets are listed again"),
            (
                self.pod_watch_error.as_ref().map(|trouble| trouble.until),
                "the watch may work again",
            ),
        ];
        let wakes = wakes
            .into_iter()
            .map(|(at, why)| at.map(|at| WakeTime { at, why }));
        wakes.fold(None, WakeTime::earlier_of)
    }
}

//! The drain's state machine: events in, [`EvictionStep`]s out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::budgets::DrainBudgets;
use super::filter::plan_pod;
use super::pod::{DrainPod, PodDrainState, PodKey, pod_key};
use super::pod_lookups::PodLookups;
use super::pod_plan::{PlanReason, PodAction, PodDrainPlan};
use super::replacement_limit::ReplacementCounts;
use super::roll_first::{PodRollouts, UnrolledPod};
use super::types::{
    DrainConfig, DroppedPod, EvictionAnswer, EvictionId, EvictionStep, ObservedDisruptionBudget,
    ObservedPod, PodIdentity, PodPhase, RemovalMethod,
};
use super::waiting_pod::{EvictionOutcome, EvictionState, WaitingPod};
use crate::Now;

/// The drain of one node. The [module](super) states its promises.
///
/// The caller reports every event, then calls [`next_step`](NodeDrain::next_step). The order in
/// which answers and watch events arrive does not matter.
#[derive(Debug, Clone)]
pub struct NodeDrain {
    pub(super) config: DrainConfig,
    pub(super) removal_method: RemovalMethod,
    pub(super) listed: bool,
    /// The pods on the node. One entry per name: a replacement takes the entry of the pod before
    /// it, so that no call can be made for a UID that was seen replaced.
    pub(super) pods: BTreeMap<PodKey, DrainPod>,
    /// Pods to try, by their place in the queue.
    pub(super) queue: BTreeMap<u64, PodKey>,
    pub(super) places: u64,
    pub(super) calls: BTreeMap<EvictionId, PodKey>,
    pub(super) ids: u64,
    pub(super) lookups: PodLookups,
    pub(super) turnover: ReplacementCounts,
    pub(super) budgets: DrainBudgets,
    pub(super) gone: usize,
    pub(super) dropped: Vec<DroppedPod>,
    pub(super) rollouts: PodRollouts,
    pub(super) unrolled: Vec<UnrolledPod>,
    pub(super) claims: BTreeSet<String>,
    pub(super) pod_watch_error: Option<PodWatchError>,
}

/// Why the pods cannot be watched, and until when this holds without being reported again.
#[derive(Debug, Clone)]
pub(super) struct PodWatchError {
    pub(super) why: String,
    pub(super) until: Duration,
}

/// A failed watch is tried again after at most 30 s, and each try takes at most 30 s. If no error
/// is reported for longer than that, the watch works again.
const WATCH_ERROR_LIFETIME: Duration = Duration::from_secs(75);

impl NodeDrain {
    pub fn new(config: DrainConfig) -> Self {
        Self {
            config,
            removal_method: RemovalMethod::Evict,
            listed: false,
            pods: BTreeMap::new(),
            queue: BTreeMap::new(),
            places: 0,
            calls: BTreeMap::new(),
            ids: 0,
            lookups: PodLookups::default(),
            turnover: ReplacementCounts::default(),
            budgets: DrainBudgets::default(),
            gone: 0,
            dropped: Vec::new(),
            rollouts: PodRollouts::default(),
            unrolled: Vec::new(),
            claims: BTreeSet::new(),
            pod_watch_error: None,
        }
    }

    /// Takes all pods on the node: at the start, and whenever the watch could not be continued
    /// (410). A pod whose UID is not in the list is gone.
    pub fn apply_pod_list(&mut self, pods: Vec<ObservedPod>) {
        self.pod_watch_error = None;
        let there: BTreeMap<PodKey, &str> = pods
            .iter()
            .map(|pod| (pod_key(&pod.pod), pod.pod.uid.as_str()))
            .collect();
        let missing =
            |pod: &ObservedPod| there.get(&pod_key(&pod.pod)) != Some(&pod.pod.uid.as_str());
        let left: Vec<PodIdentity> = self
            .pods
            .values()
            .filter(|pod| missing(&pod.seen))
            .map(|pod| pod.seen.pod.clone())
            .collect();
        for pod in &left {
            self.apply_pod_deletion(pod);
        }
        for pod in pods {
            self.requeue_reappeared_pod(&pod);
            self.apply_pod(pod);
        }
        self.listed = true;
    }

    /// Takes a pod that appeared or changed.
    pub fn apply_pod(&mut self, seen: ObservedPod) {
        self.pod_watch_error = None;
        let key = pod_key(&seen.pod);
        match self.pods.get(&key) {
            Some(known) if known.seen.pod.uid == seen.pod.uid => self.update_pod(&key, seen),
            Some(known) => {
                let replaced = known.seen.pod.clone();
                self.apply_pod_deletion(&replaced);
                self.add_pod(&key, seen);
            }
            None => self.add_pod(&key, seen),
        }
    }

    /// Takes the deletion of a pod. A pod of the same name with another UID is not affected.
    pub fn apply_pod_deletion(&mut self, pod: &PodIdentity) {
        self.pod_watch_error = None;
        let key = pod_key(pod);
        if self
            .pods
            .get(&key)
            .is_some_and(|known| known.seen.pod.uid == pod.uid)
        {
            let pod = self.pods.remove(&key).expect("it was found one line above");
            match pod.drain_state {
                PodDrainState::Waits(_) | PodDrainState::Dropped => {
                    self.record_departure(&pod.seen);
                }
                PodDrainState::Stays
                | PodDrainState::Tolerated
                | PodDrainState::Kept
                | PodDrainState::AwaitsLookup(_)
                | PodDrainState::Gone => {}
            }
        }
    }

    /// Takes the answer to a call from [`EvictionStep::tries`]. If it is not the pod's latest call,
    /// the answer only frees its place among the calls.
    pub fn apply_eviction_answer(&mut self, id: EvictionId, answer: EvictionAnswer, now: Now) {
        let Some(key) = self.calls.remove(&id) else {
            return;
        };
        let Some(pod) = self.pods.get_mut(&key) else {
            return;
        };
        let PodDrainState::Waits(waiting) = &mut pod.drain_state else {
            return;
        };
        if waiting.eviction_state != EvictionState::Called(id) {
            return;
        }
        match waiting.apply_answer(&pod.seen, answer, self.config.budget_retry, now.mono) {
            // Whatever the server answered, the watch shows that the pod is being deleted.
            EvictionOutcome::Waits | EvictionOutcome::Dropped(_) | EvictionOutcome::Kept
                if pod.seen.deleting =>
            {
                waiting.mark_deletion_begun();
            }
            EvictionOutcome::Waits => {}
            EvictionOutcome::Kept => pod.drain_state = PodDrainState::Kept,
            EvictionOutcome::Dropped(answer) => {
                pod.drain_state = PodDrainState::Dropped;
                self.dropped.push(DroppedPod {
                    pod: pod.seen.pod.clone(),
                    answer,
                });
            }
            EvictionOutcome::Gone => {
                pod.drain_state = PodDrainState::Gone;
                let seen = pod.seen.clone();
                self.record_departure(&seen);
            }
        }
    }

    /// Takes the answer to [`EvictionStep::list_budgets`], or the error of the call.
    pub fn apply_budget_list(
        &mut self,
        answer: Result<Vec<ObservedDisruptionBudget>, String>,
        now: Now,
    ) {
        self.budgets.apply_budget_list(answer, now.mono);
    }

    /// Reports that the pods cannot be watched at the moment. The caller reports every failed try;
    /// the next event, or no report for 75 s, means that the watch works again.
    pub fn record_watch_error(&mut self, why: String, now: Now) {
        let until = now.mono.saturating_add(WATCH_ERROR_LIFETIME);
        self.pod_watch_error = Some(PodWatchError { why, until });
    }

    /// Takes all budgets of one watched namespace: at first, and after every change of one.
    pub fn apply_namespace_budgets(
        &mut self,
        namespace: &str,
        seen: Vec<ObservedDisruptionBudget>,
    ) {
        let begins = !self.budgets.is_namespace_watched(namespace);
        for change in self.budgets.replace_namespace_budgets(namespace, seen) {
            self.retry_after_budget_change(&change);
        }
        if begins {
            self.retry_uncovered_pods(namespace);
        }
    }

    /// From now on the remaining pods are deleted with their own grace period, whatever their
    /// budgets say: the deadline has passed and the policy says `delete`. Pods whose eviction
    /// failed for good are deleted too.
    pub fn delete_remaining_pods(&mut self) {
        self.removal_method = RemovalMethod::Delete;
        self.dropped.clear();
        let keys: Vec<PodKey> = self.pods.keys().cloned().collect();
        for key in keys {
            let Some(pod) = self.pods.get(&key) else {
                continue;
            };
            let rest = match &pod.drain_state {
                PodDrainState::Waits(waiting) => {
                    waiting.eviction_state != EvictionState::Ending || waiting.held.is_some()
                }
                PodDrainState::Dropped => true,
                PodDrainState::Stays
                | PodDrainState::Tolerated
                | PodDrainState::Kept
                | PodDrainState::AwaitsLookup(_)
                | PodDrainState::Gone => false,
            };
            if rest {
                self.add_to_wait_list(&key);
            }
        }
    }

    /// What to do now. The calls, lookups and lists that it names count as started.
    pub fn next_step(&mut self, now: Now) -> EvictionStep {
        self.pod_watch_error
            .take_if(|trouble| trouble.until <= now.mono);
        let list_budgets = self.budgets.start_list_if_due(now.mono);
        if !self.listed {
            return EvictionStep {
                list_budgets,
                wake: self.next_wake(now),
                ..EvictionStep::default()
            };
        }
        self.turnover.record_step(now.mono);
        self.release_held_pods(now);
        self.resume_paused_pods(now.mono);
        let watch_budgets = self.budget_namespaces();
        self.budgets.retain_watched_namespaces(&watch_budgets);
        let (look_up_deployments, restarts) = self.start_rollout_calls(now);
        EvictionStep {
            tries: self.start_eviction_calls(),
            look_up: self.lookups.daemonsets.start_due_lookups(now.mono),
            look_up_namespaces: self.lookups.namespaces.start_due_lookups(now.mono),
            look_up_machine_rules: self.lookups.machine_rules.start_if_due(now.mono),
            look_up_deployments,
            restarts,
            list_budgets,
            watch_budgets,
            wake: self.next_wake(now),
        }
    }

    /// A pod that an earlier 404 declared gone, but that the list contains, is queued again.
    fn requeue_reappeared_pod(&mut self, listed: &ObservedPod) {
        let key = pod_key(&listed.pod);
        let known = self.pods.get(&key);
        if known.is_some_and(|pod| {
            pod.drain_state == PodDrainState::Gone && pod.seen.pod.uid == listed.pod.uid
        }) {
            self.gone = self.gone.saturating_sub(1);
            self.add_to_wait_list(&key);
        }
    }

    fn add_pod(&mut self, key: &PodKey, seen: ObservedPod) {
        let one_too_many = self.turnover.record_and_check_limit(&seen, self.listed);
        self.pods.insert(
            key.clone(),
            DrainPod {
                seen,
                drain_state: PodDrainState::Stays,
                plan: PodDrainPlan::new(PodAction::Stay, PlanReason::Default),
            },
        );
        self.classify_pod(key, one_too_many);
    }

    fn update_pod(&mut self, key: &PodKey, seen: ObservedPod) {
        let Some(pod) = self.pods.get_mut(key) else {
            return;
        };
        let deleting = seen.deleting;
        pod.seen = seen;
        match &mut pod.drain_state {
            // While a call is under way, its answer decides what comes next, and it checks
            // `deleting` too.
            PodDrainState::Waits(waiting)
                if deleting && !matches!(waiting.eviction_state, EvictionState::Called(_)) =>
            {
                waiting.mark_deletion_begun();
            }
            PodDrainState::Waits(_) => self.replan_waiting_pod(key),
            PodDrainState::Dropped | PodDrainState::Kept | PodDrainState::Gone => {}
            PodDrainState::Tolerated => self.classify_pod(key, true),
            PodDrainState::Stays | PodDrainState::AwaitsLookup(_) => self.classify_pod(key, false),
        }
    }

    /// Classifies a pod that is not on the wait list again.
    pub(super) fn classify_pod(&mut self, key: &PodKey, one_too_many: bool) {
        let Some(pod) = self.pods.get_mut(key) else {
            return;
        };
        let finished = pod.seen.phase == PodPhase::Finished;
        match plan_pod(&pod.seen, &self.config.rules, &self.lookups) {
            Err(lookup) => {
                self.lookups.request_lookup(&lookup);
                pod.drain_state = PodDrainState::AwaitsLookup(lookup);
            }
            Ok(plan) => {
                let action = plan.action;
                pod.plan = plan;
                match action {
                    PodAction::Stay => pod.drain_state = PodDrainState::Stays,
                    _ if one_too_many && !finished => pod.drain_state = PodDrainState::Tolerated,
                    PodAction::Evict
                    | PodAction::Delete
                    | PodAction::WaitCompleted(_)
                    | PodAction::RollFirst(_) => self.add_to_wait_list(key),
                }
            }
        }
    }

    /// Puts a pod on the wait list. It is queued when its turn comes.
    fn add_to_wait_list(&mut self, key: &PodKey) {
        let Some(pod) = self.pods.get_mut(key) else {
            return;
        };
        // Its deletion has begun already: another request without a grace period of its own would
        // change nothing.
        let turn = if pod.seen.deleting {
            EvictionState::Ending
        } else {
            EvictionState::Held(self.places)
        };
        self.places += 1;
        pod.drain_state = PodDrainState::Waits(WaitingPod::new(turn));
        self.budgets.record_covering_budgets(&pod.seen);
    }

    fn record_departure(&mut self, pod: &ObservedPod) {
        self.gone += 1;
        self.claims.extend(
            pod.claims
                .iter()
                .map(|claim| format!("{}/{claim}", pod.pod.namespace)),
        );
    }
}

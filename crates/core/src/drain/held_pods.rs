//! Pods that must go, but not yet: a lower order comes first, or the pod may end by itself.

use std::collections::BTreeMap;
use std::time::Duration;

use super::NodeDrain;
use super::filter::plan_pod;
use super::machine_rules::{MachineDrainRule, MachineRulesLookup};
use super::pod::{DrainPod, PodDrainState, PodKey};
use super::pod_lookups::{DaemonSetPresence, PodLookup};
use super::pod_plan::{PodAction, PodDrainPlan, WaitLimit};
use super::roll_first::UnrolledPod;
use super::types::{DaemonSetLookup, DaemonSetRef, HeldPod, ObservedPod, PodPhase, RemovalMethod};
use super::waiting_pod::{EvictionState, WaitingPod};
use crate::Now;

impl NodeDrain {
    /// The pods on the node whose plan is known, and their plans.
    pub fn pod_plans(&self) -> impl Iterator<Item = (&ObservedPod, &PodDrainPlan)> {
        let known = |pod: &&DrainPod| !matches!(pod.drain_state, PodDrainState::AwaitsLookup(_));
        let known = self.pods.values().filter(known);
        known.map(|pod| (&pod.seen, &pod.plan))
    }

    /// Takes the answer to a lookup from [`EvictionStep::look_up`](super::EvictionStep::look_up).
    pub fn apply_daemonset_lookup(
        &mut self,
        set: &DaemonSetRef,
        lookup: DaemonSetLookup,
        now: Now,
    ) {
        let answer = match lookup {
            DaemonSetLookup::Exists => Ok(DaemonSetPresence::Exists),
            DaemonSetLookup::Gone => Ok(DaemonSetPresence::Gone),
            DaemonSetLookup::Failed { why } => Err(why),
        };
        self.lookups.daemonsets.apply_lookup(set, answer, now.mono);
        self.classify_pods_awaiting(&PodLookup::DaemonSet(set.clone()));
    }

    /// Takes the labels of a namespace from
    /// [`EvictionStep::look_up_namespaces`](super::EvictionStep::look_up_namespaces), or the error
    /// of the call. A namespace that does not exist has no labels.
    pub fn apply_namespace_labels(
        &mut self,
        namespace: &str,
        answer: Result<BTreeMap<String, String>, String>,
        now: Now,
    ) {
        let name = namespace.to_owned();
        self.lookups
            .namespaces
            .apply_lookup(&name, answer, now.mono);
        self.classify_pods_awaiting(&PodLookup::Namespace(name));
    }

    /// Takes the answer to
    /// [`EvictionStep::look_up_machine_rules`](super::EvictionStep::look_up_machine_rules).
    pub fn apply_machine_rules(&mut self, lookup: MachineRulesLookup, now: Now) {
        let answer = match lookup {
            MachineRulesLookup::Found(rules) => Ok(rules),
            MachineRulesLookup::NoMachine | MachineRulesLookup::Elsewhere { .. } => Ok(Vec::new()),
            MachineRulesLookup::Failed { why } => Err(why),
        };
        let table = &mut self.lookups.machine_rules;
        table.apply_lookup(&(), answer, now.mono);
        self.classify_pods_awaiting(&PodLookup::MachineDrainRules);
    }

    fn classify_pods_awaiting(&mut self, lookup: &PodLookup) {
        let asks = |pod: &DrainPod| matches!(&pod.drain_state, PodDrainState::AwaitsLookup(asked) if asked == lookup);
        let asking = self.pods.iter().filter(|(_, pod)| asks(pod));
        let asking: Vec<PodKey> = asking.map(|(key, _)| key.clone()).collect();
        for key in asking {
            self.classify_pod(&key, false);
        }
    }

    /// Queues the held pods whose turn has come.
    pub(super) fn release_held_pods(&mut self, now: Now) {
        let order = self.current_order();
        let (start, deleting) = (self.config.start, self.deletes_rest());
        for (key, pod) in &mut self.pods {
            let finished = pod.seen.phase == PodPhase::Finished;
            let rolls = matches!(pod.plan.action, PodAction::RollFirst(_));
            let refused = rolls && self.rollouts.is_refused(&pod.seen);
            let waits = !deleting && !refused && pod.plan.is_waiting(start, now);
            let PodDrainState::Waits(waiting) = &mut pod.drain_state else {
                continue;
            };
            let EvictionState::Held(place) = waiting.eviction_state else {
                continue;
            };
            if finished || (pod.plan.order <= order && !waits) {
                waiting.eviction_state = EvictionState::Ready(place);
                self.queue.insert(place, key.clone());
                if rolls && !deleting && !finished {
                    let outlook = self.rollouts.outlook_of(&pod.seen);
                    self.unrolled.retain(|known| known.pod != pod.seen.pod);
                    self.unrolled.push(UnrolledPod {
                        pod: pod.seen.pod.clone(),
                        why: outlook.describe_lateness(),
                    });
                }
            }
        }
    }

    /// The lowest order of the pods that have to leave. Pods that have ended hold nobody up. While
    /// the order of a pod is not known, only ended pods are removed.
    pub(super) fn current_order(&self) -> i32 {
        let mut lowest = i32::MAX;
        for pod in self.pods.values() {
            match &pod.drain_state {
                PodDrainState::AwaitsLookup(_) if self.may_have_orders() => {
                    return i32::MIN;
                }
                PodDrainState::Waits(_) if pod.seen.phase != PodPhase::Finished => {
                    lowest = lowest.min(pod.plan.order);
                }
                PodDrainState::Waits(_)
                | PodDrainState::AwaitsLookup(_)
                | PodDrainState::Stays
                | PodDrainState::Tolerated
                | PodDrainState::Kept
                | PodDrainState::Dropped
                | PodDrainState::Gone => {}
            }
        }
        lowest
    }

    fn may_have_orders(&self) -> bool {
        let rules = &self.config.rules;
        let known = self.lookups.machine_rules.known_answer(&());
        let machine_orders =
            || known.is_none_or(|known| known.iter().any(MachineDrainRule::has_order));
        rules.has_orders() || (rules.honors_machine_rules() && machine_orders())
    }

    /// Plans a pod on the wait list again after its labels or marks changed. What was begun is not
    /// undone: a call under way and a deletion go on.
    pub(super) fn replan_waiting_pod(&mut self, key: &PodKey) {
        let Some(pod) = self.pods.get_mut(key) else {
            return;
        };
        let Ok(plan) = plan_pod(&pod.seen, &self.config.rules, &self.lookups) else {
            return;
        };
        let PodDrainState::Waits(waiting) = &pod.drain_state else {
            return;
        };
        let begun = matches!(
            waiting.eviction_state,
            EvictionState::Called(_) | EvictionState::Ending
        );
        if begun || plan == pod.plan {
            return;
        }
        let action = plan.action;
        pod.plan = plan;
        pod.drain_state = match action {
            PodAction::Stay => PodDrainState::Stays,
            PodAction::Evict
            | PodAction::Delete
            | PodAction::WaitCompleted(_)
            | PodAction::RollFirst(_) => {
                self.places += 1;
                PodDrainState::Waits(WaitingPod::new(EvictionState::Held(self.places - 1)))
            }
        };
    }

    /// The pods that are not touched yet.
    pub(super) fn held_pods(&self) -> Vec<HeldPod> {
        let held = self.pods.values().filter(|pod| {
            pod.as_waiting_pod()
                .is_some_and(|waiting| matches!(waiting.eviction_state, EvictionState::Held(_)))
        });
        let order = self.current_order();
        let held = held.map(|pod| HeldPod {
            pod: pod.seen.pod.clone(),
            plan: pod.plan.clone(),
            rollout: self
                .rollout_outlook(&pod.seen, &pod.plan)
                .filter(|_| pod.plan.order <= order),
        });
        held.collect()
    }

    /// The longest wait that a rule grants to a pod that has not ended.
    pub(super) fn pending_wait(&self) -> Option<Duration> {
        let held = self.held_pods().into_iter();
        let waits = held.filter_map(|held| match held.plan.action {
            PodAction::WaitCompleted(WaitLimit::Timeout(timeout))
            | PodAction::RollFirst(timeout) => Some(timeout),
            PodAction::WaitCompleted(WaitLimit::Until(_) | WaitLimit::DrainTimeout)
            | PodAction::Stay
            | PodAction::Evict
            | PodAction::Delete => None,
        });
        waits.max().filter(|_| !self.deletes_rest())
    }

    /// When the next wait of a held pod ends.
    pub(super) fn next_release_at(&self, now: Now) -> Option<Duration> {
        let held = self.held_pods().into_iter();
        let ends = held.filter_map(|held| held.plan.wait_ends_at(self.config.start, now));
        ends.filter(|at| *at > now.mono).min()
    }

    pub(super) fn deletes_rest(&self) -> bool {
        self.removal_method == RemovalMethod::Delete
    }
}

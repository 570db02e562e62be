//! Which pods of the drain wait for a rollout, and whose turn it is.

use std::collections::BTreeSet;
use std::time::Duration;

use super::NodeDrain;
use super::deployment::{DeploymentLookup, DeploymentRestart, ReplicaSetRef, RestartAnswer};
use super::pod_plan::{PodAction, PodDrainPlan};
use super::roll_first::RolloutOutlook;
use super::types::ObservedPod;
use super::waiting_pod::EvictionState;
use crate::Now;

impl NodeDrain {
    /// What a rollout does for the pod; `None` unless its plan wants one.
    pub fn rollout_outlook(
        &self,
        pod: &ObservedPod,
        plan: &PodDrainPlan,
    ) -> Option<RolloutOutlook> {
        match plan.action {
            PodAction::RollFirst(_) => Some(self.rollouts.outlook_of(pod)),
            PodAction::Stay
            | PodAction::Evict
            | PodAction::Delete
            | PodAction::WaitCompleted(_) => None,
        }
    }

    /// Whether a budget is asked before the pod goes.
    pub(crate) fn asks_budgets(&self, pod: &ObservedPod, plan: &PodDrainPlan) -> bool {
        match plan.action {
            PodAction::Evict | PodAction::WaitCompleted(_) => true,
            PodAction::RollFirst(_) => self.rollouts.is_refused(pod),
            PodAction::Delete | PodAction::Stay => false,
        }
    }

    /// Takes the answer to a lookup from
    /// [`EvictionStep::look_up_deployments`](super::EvictionStep::look_up_deployments).
    pub fn apply_deployment_lookup(
        &mut self,
        set: &ReplicaSetRef,
        lookup: DeploymentLookup,
        now: Now,
    ) {
        self.rollouts.apply_lookup(set, lookup, now.mono);
    }

    /// Takes the answer to a restart from
    /// [`EvictionStep::restarts`](super::EvictionStep::restarts).
    pub fn apply_restart_answer(&mut self, set: &ReplicaSetRef, answer: RestartAnswer, now: Now) {
        self.rollouts.apply_restart_answer(set, answer, now.mono);
    }

    /// The lookups and restarts to start now. Deployments are read early, so that the plan is
    /// known, and restarted when the turn of the pod comes.
    pub(super) fn start_rollout_calls(
        &mut self,
        now: Now,
    ) -> (Vec<ReplicaSetRef>, Vec<DeploymentRestart>) {
        let turn = self.sets_to_roll(self.current_order(), now);
        let restarts = self.rollouts.start_restarts(&turn, now);
        let asked = self.sets_to_roll(i32::MAX, now);
        (self.rollouts.start_due_reads(&asked, now.mono), restarts)
    }

    pub(super) fn next_deployment_read_at(&self, now: Now) -> Option<Duration> {
        self.rollouts
            .next_read_at(&self.sets_to_roll(i32::MAX, now))
    }

    /// The ReplicaSets of pods up to this order that still wait for a rollout.
    fn sets_to_roll(&self, order: i32, now: Now) -> BTreeSet<ReplicaSetRef> {
        if self.deletes_rest() {
            return BTreeSet::new();
        }
        let waits = self.pods.values().filter(|pod| {
            let held = pod
                .as_waiting_pod()
                .is_some_and(|waiting| matches!(waiting.eviction_state, EvictionState::Held(_)));
            held && matches!(pod.plan.action, PodAction::RollFirst(_))
                && pod.plan.order <= order
                && pod.plan.is_waiting(self.config.start, now)
        });
        waits
            .filter(|pod| !pod.seen.tolerates_cordon)
            .filter_map(|pod| ReplicaSetRef::of_pod(&pod.seen))
            .collect()
    }
}

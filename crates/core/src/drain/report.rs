//! The progress that a drain reports.

use super::NodeDrain;
use super::pod::PodDrainState;
use super::types::{BlockedPod, DrainProgress, ObservedPod, RemovalMethod, ToleratedPod};
use super::waiting_pod::{EvictionBlocker, WaitingPod};

impl NodeDrain {
    pub fn current_progress(&self) -> DrainProgress {
        let mut progress = DrainProgress {
            listed: self.listed,
            deleting: self.removal_method == RemovalMethod::Delete,
            rules: self.config.rules.clone(),
            held: self.held_pods(),
            unrolled: self.unrolled.clone(),
            pending_wait: self.pending_wait(),
            gone: self.gone,
            dropped: self.dropped.clone(),
            lookups_failed: self.lookups.failed_lookups().collect(),
            claims: self.claims.iter().cloned().collect(),
            covered_by: self.budgets.covering_budget_names(),
            budgets_pending: self.budgets.is_list_pending(),
            observation_errors: self.observation_errors(),
            ..DrainProgress::default()
        };
        for pod in self.pods.values() {
            match &pod.drain_state {
                PodDrainState::AwaitsLookup(_) => {
                    progress.waiting.push(pod.seen.pod.clone());
                    progress.unjudged.push(pod.seen.pod.clone());
                }
                PodDrainState::Waits(waiting) => {
                    progress.waiting.push(pod.seen.pod.clone());
                    progress
                        .blocked
                        .extend(self.blocked_pod(&pod.seen, waiting));
                }
                PodDrainState::Tolerated => {
                    progress.tolerated.extend(self.tolerated_pod(&pod.seen));
                }
                PodDrainState::Kept => progress.kept.push(pod.seen.pod.clone()),
                PodDrainState::Stays | PodDrainState::Dropped | PodDrainState::Gone => {}
            }
        }
        progress
    }

    fn tolerated_pod(&self, pod: &ObservedPod) -> Option<ToleratedPod> {
        let owner = pod.controller.as_ref()?;
        Some(ToleratedPod {
            pod: pod.pod.clone(),
            kind: owner.kind.clone(),
            controller: owner.name.clone(),
            replaced: self.turnover.replacement_count(&owner.uid),
        })
    }

    fn blocked_pod(&self, pod: &ObservedPod, waiting: &WaitingPod) -> Option<BlockedPod> {
        let held = waiting.held.as_ref()?;
        let (budgets, refused) = match &held.by {
            EvictionBlocker::Budget => (self.budgets.budgets_covering_pod(pod), None),
            EvictionBlocker::Admission(refusal) => (Vec::new(), Some(refusal.clone())),
            EvictionBlocker::Server => (Vec::new(), None),
        };
        Some(BlockedPod {
            pod: pod.pod.clone(),
            message: held.message.clone(),
            refused,
            budgets,
            since: held.since,
        })
    }

    fn observation_errors(&self) -> Vec<String> {
        let pods = self.pod_watch_error.as_ref();
        let pods =
            pods.map(|trouble| format!("the node's pods cannot be watched: {}", trouble.why));
        let budgets = self.budgets.list_failure();
        let budgets = budgets.map(|why| format!("budgets cannot be listed: {why}"));
        pods.into_iter().chain(budgets).collect()
    }
}

//! What the drain says about itself.

use super::Drain;
use super::pod::Standing;
use super::types::{Blocked, PodSeen, Progress, Way};
use super::waiting::Waiting;

impl Drain {
    /// Where it stands.
    pub fn progress(&self) -> Progress {
        let mut progress = Progress {
            listed: self.listed,
            deleting: self.way == Way::Delete,
            exclude: self.config.exclude.clone(),
            gone: self.gone,
            dropped: self.dropped.clone(),
            lookups_failed: self.lookups.failed().collect(),
            claims: self.claims.iter().cloned().collect(),
            covered_by: self.budgets.covered(),
            budgets_pending: self.budgets.pending(),
            trouble: self.trouble(),
            ..Progress::default()
        };
        for pod in self.pods.values() {
            match &pod.standing {
                Standing::Asks(_) => progress.waiting.push(pod.seen.pod.clone()),
                Standing::Waits(waiting) => {
                    progress.waiting.push(pod.seen.pod.clone());
                    progress.blocked.extend(self.blocked(&pod.seen, waiting));
                }
                Standing::Tolerated => progress.tolerated.push(pod.seen.pod.clone()),
                Standing::Stays | Standing::Dropped | Standing::Gone => {}
            }
        }
        progress
    }

    fn blocked(&self, pod: &PodSeen, waiting: &Waiting) -> Option<Blocked> {
        let held = waiting.held.as_ref()?;
        let budgets = if held.budget {
            self.budgets.covering(pod)
        } else {
            Vec::new()
        };
        Some(Blocked {
            pod: pod.pod.clone(),
            message: held.message.clone(),
            budgets,
            since: held.since,
        })
    }

    fn trouble(&self) -> Vec<String> {
        let pods = self.trouble.as_ref();
        let pods =
            pods.map(|trouble| format!("the node's pods cannot be watched: {}", trouble.why));
        let budgets = self.budgets.failure();
        let budgets = budgets.map(|why| format!("budgets cannot be listed: {why}"));
        pods.into_iter().chain(budgets).collect()
    }
}

//! What the drain says about itself.

use super::Drain;
use super::pod::Standing;
use super::types::{Blocked, PodSeen, Progress};
use super::waiting::Waiting;

impl Drain {
    /// Where it stands.
    pub fn progress(&self) -> Progress {
        let mut progress = Progress {
            listed: self.listed,
            gone: self.gone,
            dropped: self.dropped.clone(),
            lookups_failed: self.lookups.failed().collect(),
            claims: self.claims.iter().cloned().collect(),
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
}

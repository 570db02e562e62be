//! What the drain says about itself.

use super::Drain;
use super::pod::Standing;
use super::types::{Blocked, PodSeen, Progress, Tolerated, Way};
use super::waiting::{HeldBy, Waiting};

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
                Standing::Tolerated => progress.tolerated.extend(self.tolerated(&pod.seen)),
                Standing::Kept => progress.kept.push(pod.seen.pod.clone()),
                Standing::Stays | Standing::Dropped | Standing::Gone => {}
            }
        }
        progress
    }

    fn tolerated(&self, pod: &PodSeen) -> Option<Tolerated> {
        let owner = pod.controller.as_ref()?;
        Some(Tolerated {
            pod: pod.pod.clone(),
            kind: owner.kind.clone(),
            controller: owner.name.clone(),
            replaced: self.turnover.replaced(&owner.uid),
        })
    }

    fn blocked(&self, pod: &PodSeen, waiting: &Waiting) -> Option<Blocked> {
        let held = waiting.held.as_ref()?;
        let (budgets, refused) = match &held.by {
            HeldBy::Budget => (self.budgets.covering(pod), None),
            HeldBy::Admission(refusal) => (Vec::new(), Some(refusal.clone())),
            HeldBy::Server => (Vec::new(), None),
        };
        Some(Blocked {
            pod: pod.pod.clone(),
            message: held.message.clone(),
            refused,
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

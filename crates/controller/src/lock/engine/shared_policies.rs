//! The policies that all lock requests of one process go by.

use std::sync::atomic::{AtomicBool, Ordering};

use dogwatch_core::policy::ClusterPolicies;
use tokio::sync::watch;

pub(super) struct SharedPolicies {
    policies: watch::Sender<ClusterPolicies>,
    /// Whether the watch shows that the policies may not be read. It is changed while `policies` is
    /// locked.
    is_watch_refused: AtomicBool,
}

impl SharedPolicies {
    pub(super) fn new() -> Self {
        Self {
            policies: watch::Sender::new(ClusterPolicies::NotYetRead),
            is_watch_refused: AtomicBool::new(false),
        }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<ClusterPolicies> {
        self.policies.subscribe()
    }

    pub(super) fn current_policies(&self) -> ClusterPolicies {
        self.policies.borrow().clone()
    }

    pub(super) fn is_watch_refused(&self) -> bool {
        self.is_watch_refused.load(Ordering::SeqCst)
    }

    /// Publishes what the watch shows.
    pub(super) fn publish_watched(&self, now: ClusterPolicies) {
        self.policies.send_if_modified(|policies| {
            self.is_watch_refused
                .store(now.is_unreadable(), Ordering::SeqCst);
            replace_policies(policies, now)
        });
    }

    /// Publishes what a list shows. A list that was refused while the watch is not publishes nothing: the
    /// watch shows each change once, so nothing would take the refusal back.
    pub(super) fn publish_listed(&self, now: ClusterPolicies) {
        self.policies.send_if_modified(|policies| {
            (!now.is_unreadable() || self.is_watch_refused()) && replace_policies(policies, now)
        });
    }
}

/// Whether they are others than before.
fn replace_policies(policies: &mut ClusterPolicies, now: ClusterPolicies) -> bool {
    let changed = *policies != now;
    *policies = now;
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> ClusterPolicies {
        ClusterPolicies::Unreadable {
            why: "forbidden".into(),
        }
    }

    #[test]
    fn only_the_watch_makes_the_policies_unreadable() {
        let policies = SharedPolicies::new();
        let known = ClusterPolicies::Known(Vec::new());
        policies.publish_watched(known.clone());
        policies.publish_listed(refused());
        assert_eq!(policies.current_policies(), known);
        assert!(!policies.is_watch_refused());
        policies.publish_watched(refused());
        assert_eq!(policies.current_policies(), refused());
        assert!(policies.is_watch_refused());
        // A list that was allowed says nothing about the watch.
        policies.publish_listed(known.clone());
        policies.publish_listed(refused());
        assert_eq!(policies.current_policies(), refused());
        policies.publish_watched(known.clone());
        policies.publish_listed(refused());
        assert_eq!(policies.current_policies(), known);
    }
}

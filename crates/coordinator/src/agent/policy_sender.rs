//! Sends the policies to the agent in the order in which they were true.
//!
//! The watch gives each change once. A budget count reads the policies too, and then the Leases and
//! the Nodes, which takes seconds in a large cluster. What it read before a change must not reach the
//! agent after that change, because nothing would repeat the change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dogwatch_core::policy::ClusterPolicies;
use dogwatch_core::reboot::ObservedBudgetCount;
use dogwatch_k8s::policy::{PolicyWatchView, list_policies_beside_watch};
use dogwatch_k8s::{Client, Error};
use tokio::sync::mpsc::UnboundedSender;

use super::facts::ObservedFact;

/// Clones share the number of changes.
#[derive(Clone)]
pub(super) struct PolicySender {
    facts: UnboundedSender<ObservedFact>,
    /// It is locked while facts are sent, so that no change comes in between.
    watched: Arc<Mutex<WatchedPolicies>>,
}

#[derive(Default)]
struct WatchedPolicies {
    /// How many changes the watch has shown.
    changes: u64,
    /// Whether it shows that the policies may not be read.
    is_refused: bool,
}

impl PolicySender {
    pub(super) fn new(facts: UnboundedSender<ObservedFact>) -> Self {
        Self {
            facts,
            watched: Arc::default(),
        }
    }

    /// Sends what the watch shows. While the watch fails, it repeats policies that a count may have
    /// replaced by newer ones, so only the error is sent.
    pub(super) fn send_watched(&self, seen: PolicyWatchView) {
        let is_current = seen.error.is_none();
        self.send_fact(ObservedFact::ObserverError(
            "watching the RebootPolicies",
            seen.error,
        ));
        if is_current {
            let mut watched = self.lock_watched();
            watched.changes += 1;
            watched.is_refused = seen.policies.is_unreadable();
            self.send_fact(ObservedFact::Policies(seen.policies));
        }
    }

    /// How many changes the watch has shown so far.
    pub(super) fn count_changes(&self) -> u64 {
        self.lock_watched().changes
    }

    /// Reads the policies. A refusal is a failed read, unless the watch is refused too.
    pub(super) async fn list_policies(&self, client: &Client) -> Result<ClusterPolicies, Error> {
        list_policies_beside_watch(client, || self.is_watch_refused()).await
    }

    /// Whether the watch shows that the policies may not be read.
    fn is_watch_refused(&self) -> bool {
        self.lock_watched().is_refused
    }

    /// Sends a count, and before it the policies by which it was made. `false`: nothing was sent,
    /// because the watch has shown more than `changes` since the policies were read, or because the
    /// policies could not be read and the watch reads them. The agent would believe a single refusal
    /// for as long as nobody changes a policy.
    pub(super) fn send_counted(
        &self,
        changes: u64,
        policies: ClusterPolicies,
        count: ObservedBudgetCount,
    ) -> bool {
        let watched = self.lock_watched();
        if watched.changes != changes || policies.is_unreadable() && !watched.is_refused {
            return false;
        }
        self.send_fact(ObservedFact::Policies(policies));
        self.send_fact(ObservedFact::Count(count));
        true
    }

    fn lock_watched(&self) -> MutexGuard<'_, WatchedPolicies> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send_fact(&self, fact: ObservedFact) {
        // Fails only when the process ends.
        let _ = self.facts.send(fact);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dogwatch_core::lock::UnavailableCount;
    use dogwatch_core::name::GroupName;
    use dogwatch_core::policy::{Policy, PolicyPause};
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    fn policies(paused: bool) -> ClusterPolicies {
        let mut policy = Policy::without_rules(GroupName::default_group());
        policy.paused = paused.then(|| PolicyPause {
            reason: "stop".into(),
            until: None,
        });
        ClusterPolicies::Known(vec![policy])
    }

    fn watched(paused: bool, error: Option<&str>) -> PolicyWatchView {
        PolicyWatchView {
            policies: policies(paused),
            error: error.map(str::to_owned),
        }
    }

    fn count() -> ObservedBudgetCount {
        ObservedBudgetCount {
            count: UnavailableCount {
                for_resource_version: "1".into(),
                unavailable: Vec::new(),
                members: 1,
                maxima: Vec::new(),
                higher_slot_undecided: false,
            },
            taken: Duration::ZERO,
            arrived: Duration::ZERO,
        }
    }

    /// The policies that the agent gets, and how many counts.
    fn received(facts: &mut UnboundedReceiver<ObservedFact>) -> (Vec<ClusterPolicies>, usize) {
        let (mut policies, mut counts) = (Vec::new(), 0);
        while let Ok(fact) = facts.try_recv() {
            counts += usize::from(matches!(fact, ObservedFact::Count(_)));
            if let ObservedFact::Policies(seen) = fact {
                policies.push(seen);
            }
        }
        (policies, counts)
    }

    #[test]
    fn policies_that_a_count_read_before_a_change_never_follow_that_change() {
        let (facts, mut incoming) = unbounded_channel();
        let sender = PolicySender::new(facts);
        sender.send_watched(watched(false, None));
        let changes = sender.count_changes();
        // A person pauses the policy while the Nodes are read.
        sender.send_watched(watched(true, None));
        assert!(!sender.send_counted(changes, policies(false), count()));
        let expected = vec![policies(false), policies(true)];
        assert_eq!(received(&mut incoming), (expected, 0));
        let changes = sender.count_changes();
        assert!(sender.send_counted(changes, policies(true), count()));
        assert_eq!(received(&mut incoming), (vec![policies(true)], 1));
    }

    #[test]
    fn a_count_that_was_refused_the_policies_is_sent_only_if_the_watch_is_refused_too() {
        let (facts, mut incoming) = unbounded_channel();
        let sender = PolicySender::new(facts);
        let refused = || ClusterPolicies::Unreadable {
            why: "forbidden".into(),
        };
        sender.send_watched(watched(false, None));
        assert!(!sender.is_watch_refused());
        assert!(!sender.send_counted(sender.count_changes(), refused(), count()));
        assert_eq!(received(&mut incoming), (vec![policies(false)], 0));
        sender.send_watched(PolicyWatchView {
            policies: refused(),
            error: None,
        });
        assert!(sender.is_watch_refused());
        assert!(sender.send_counted(sender.count_changes(), refused(), count()));
        assert_eq!(received(&mut incoming), (vec![refused(), refused()], 1));
    }

    #[test]
    fn a_watch_that_fails_takes_nothing_back_and_shows_what_is_true_once_it_works_again() {
        let (facts, mut incoming) = unbounded_channel();
        let sender = PolicySender::new(facts);
        sender.send_watched(watched(false, None));
        sender.send_watched(watched(false, Some("connection refused")));
        // The count's list shows a pause that the watch cannot see.
        assert!(sender.send_counted(sender.count_changes(), policies(true), count()));
        sender.send_watched(watched(false, Some("no answer")));
        let expected = vec![policies(false), policies(true)];
        assert_eq!(received(&mut incoming), (expected, 1));
        sender.send_watched(watched(false, None));
        assert_eq!(received(&mut incoming), (vec![policies(false)], 0));
    }
}

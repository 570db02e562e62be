//! Releases the lock: sends it, remembers it until it is answered, and names who is next in line.

use dogwatch_core::lock::{self, BidPause, HolderId, LockReleasePlan, ObservedLease};
use dogwatch_core::name::RunId;
use dogwatch_core::policy;
use dogwatch_core::reboot::{OwnNodeState, UnansweredRelease};
use dogwatch_k8s::lock::{BidOutcome, LeaveReason, ReleaseOutcome};
use tracing::{info, warn};

use super::CoordinatorAgent;
use super::actions::ActionOutcome;

impl CoordinatorAgent {
    pub(super) async fn release_lock(
        &mut self,
        lease: &ObservedLease,
        over_budget: bool,
    ) -> ActionOutcome {
        match lock::plan_release(lease, &self.seen.run.holder, &self.seen.run.id) {
            LockReleasePlan::Nothing => self.relist_leases().await,
            LockReleasePlan::RemoveRun { remaining } => {
                self.remove_run(lease, remaining, over_budget).await
            }
            LockReleasePlan::Free => self.free_lease(lease, over_budget).await,
        }
    }

    /// Leaves the lock to the other requests of this host that rely on it.
    async fn remove_run(
        &mut self,
        lease: &ObservedLease,
        remaining: Vec<RunId>,
        over_budget: bool,
    ) -> ActionOutcome {
        let unanswered = self.record_release_sending(lease, over_budget);
        match self.locks.remove_run(lease, remaining).await {
            BidOutcome::Won(left) => {
                self.seen.lock.unanswered_release = None;
                self.decision_sink.on_lease_written(lease, &left);
                self.observe_lease(*left)
            }
            BidOutcome::Lost { why } => {
                self.seen.lock.unanswered_release = unanswered;
                self.reread_leases(lease, &why).await
            }
            BidOutcome::Refused(error) => {
                self.seen.lock.unanswered_release = unanswered;
                self.handle_api_error("leave the lock", &error)
            }
            BidOutcome::Unknown(error) => self.handle_api_error("leave the lock", &error),
        }
    }

    /// Call before a release is sent. Returns the one before: if this one is answered with a
    /// refusal, that one may still arrive.
    fn record_release_sending(
        &mut self,
        lease: &ObservedLease,
        over_budget: bool,
    ) -> Option<UnansweredRelease> {
        let sent = UnansweredRelease::sent_for(lease, over_budget);
        self.seen.lock.unanswered_release.replace(sent)
    }

    async fn free_lease(&mut self, lease: &ObservedLease, over_budget: bool) -> ActionOutcome {
        let leaving = if over_budget {
            LeaveReason::OverBudget
        } else {
            LeaveReason::Done {
                next: self.next_waiters().await,
            }
        };
        let unanswered = self.record_release_sending(lease, over_budget);
        let outcome = self.locks.release_lease(lease, &leaving).await;
        match &outcome {
            ReleaseOutcome::Freed(free) => {
                info!(lease = lease.name, over_budget, "released the reboot lock");
                self.seen.lock.unanswered_release = None;
                self.decision_sink.on_lease_written(lease, free);
                self.record_yield_pause(lease, over_budget);
            }
            ReleaseOutcome::Changed { .. } | ReleaseOutcome::Refused(_) => {
                self.seen.lock.unanswered_release = unanswered;
            }
            ReleaseOutcome::Unknown(_) => {}
        }
        self.observe_release_outcome(lease, outcome, "release the lock")
            .await
    }

    pub(super) async fn observe_release_outcome(
        &mut self,
        lease: &ObservedLease,
        outcome: ReleaseOutcome,
        what: &'static str,
    ) -> ActionOutcome {
        match outcome {
            ReleaseOutcome::Freed(free) => self.observe_lease(*free),
            ReleaseOutcome::Changed { why } => self.reread_leases(lease, &why).await,
            ReleaseOutcome::Unknown(error) | ReleaseOutcome::Refused(error) => {
                self.handle_api_error(what, &error)
            }
        }
    }

    /// Who is next in line. Without this hint the lock is still safe and live, so an error is only
    /// logged.
    async fn next_waiters(&mut self) -> Vec<HolderId> {
        let (group, policies) = (self.lock_group(), &self.seen.policies);
        match self.locks.list_waiters(&group, policies).await {
            Ok(waiters) => {
                let zone = self.own_zone();
                let me = &self.seen.run.holder;
                lock::order_next_waiters(&waiters, me, zone.as_deref(), lock::MAX_NEXT_WAITERS)
            }
            Err(error) => {
                warn!(
                    error = error.error_chain(),
                    "failed to read the waiting nodes; releases the lock without naming the nodes that are next in line"
                );
                Vec::new()
            }
        }
    }

    /// Our own zone, if the policy uses zones.
    fn own_zone(&self) -> Option<String> {
        match &self.seen.node {
            OwnNodeState::There(node) => policy::zone_of_labels(&self.seen.policies, &node.labels),
            OwnNodeState::NotYet | OwnNodeState::Gone => None,
        }
    }

    /// After a release because of the budget: a pause before the next bid, longer each time in a
    /// row.
    fn record_yield_pause(&mut self, lease: &ObservedLease, over_budget: bool) {
        let times = lease.yield_count.saturating_add(1);
        let (jitter, now) = (self.seen.run.jitter, self.clock.now().mono);
        self.seen.run.bid_pause = over_budget.then(|| BidPause::after_yield(times, jitter, now));
    }
}

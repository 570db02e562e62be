//! Waits for a request's turn: first in this process' queue, then among all waiters for the group's
//! lock.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::lock::ObservedLease;
use dogwatch_core::lock::api_lock::{self as rules, PolicyDenial, QueueSnapshot, QueueStep};
use dogwatch_core::reboot::RebootReason;
use dogwatch_k8s::Error;
use dogwatch_runtime::mutex::lock_ignoring_poison;
use tokio::sync::watch;

use super::hold::max_unavailable_of;
use super::queue::{QueuePlace, create_missing_slots};
use super::request::{LockAttemptOutcome, PendingLockRequest, PoliciesWatch};
use super::target::LockTarget;
use crate::lock::service::LockAnswer;

/// How long the first list of the group's Leases may take for a request that does not wait.
const FIRST_LEASE_LIST_TIMEOUT: Duration = Duration::from_secs(5);
const GATE_RECHECK_INTERVAL: Duration = Duration::from_secs(10);
/// A window's end is checked again after this time at the latest, because the wall clock may be
/// set.
const CLOCK_RECHECK_INTERVAL: Duration = Duration::from_mins(5);

impl PendingLockRequest {
    /// Waits until the request may bid, and returns the Lease to bid for. Ends when the policies
    /// have changed since `policies_watch` was read: `target` is what they were then.
    pub(super) async fn wait_for_turn(
        &mut self,
        target: &LockTarget,
        place: &QueuePlace,
        policies_watch: &mut PoliciesWatch,
    ) -> Result<ObservedLease, LockAttemptOutcome> {
        if !self.wait.may_wait() && !place.is_first() {
            let why = format!("{} requests are ahead in the queue", place.count_before());
            return Err(LockAttemptOutcome::Answer(LockAnswer::Busy { why }));
        }
        self.wait_until_first(place).await;
        let slots = Box::pin(self.count_slots(target))
            .await
            .map_err(LockAttemptOutcome::Trouble)?;
        let mut leases = place.queue.subscribe_leases();
        self.wait_for_first_lease_list(&mut leases).await?;
        Box::pin(create_missing_slots(
            &place.queue,
            self.shared.lock_client(),
            slots,
        ))
        .await
        .map_err(LockAttemptOutcome::Trouble)?;
        loop {
            // Its sender is in `shared`.
            if policies_watch.has_changed().unwrap_or_default() {
                return Err(LockAttemptOutcome::Again);
            }
            let not = self.forbidden_now(target, &policies_watch.borrow());
            if let Some(not) = not {
                return Err(self.not_allowed_or_again(&not));
            }
            let seen = leases.borrow_and_update().clone().unwrap_or_default();
            let (at, why) = match self.decide_turn(&seen, slots, target, place) {
                QueueStep::Bid { lease } => {
                    return Box::pin(self.check_gates(target, place, *lease)).await;
                }
                QueueStep::At { at, why } => (at, why),
                QueueStep::Wait { why } => (self.shared.now().mono + CLOCK_RECHECK_INTERVAL, why),
            };
            if !self.wait.may_wait() {
                return Err(LockAttemptOutcome::Answer(LockAnswer::Busy { why }));
            }
            self.report_waiting_reason(RebootReason::LockHeldByOther, &why);
            tokio::select! {
                biased;
                // The senders are held by the place and by `shared`.
                _ = leases.changed() => {}
                // The group or its limits may have changed.
                _ = policies_watch.changed() => return Err(LockAttemptOutcome::Again),
                () = self.shared.setup.clock.sleep_until(at) => {}
            }
            self.wait_until_first(place).await;
        }
    }

    /// Waits until the request is the first in this process' queue.
    async fn wait_until_first(&self, place: &QueuePlace) {
        if !place.is_first() {
            let why = format!(
                "other requests are ahead in the queue for the lock of group {}",
                place.queue.group
            );
            self.report_waiting_reason(RebootReason::NotOurTurn, &why);
            place.wait_until_first().await;
        }
    }

    fn decide_turn(
        &self,
        leases: &[ObservedLease],
        slots: u32,
        target: &LockTarget,
        place: &QueuePlace,
    ) -> QueueStep {
        let holder = &self.cleanup.leftovers.holder;
        let advertised = lock_ignoring_poison(&self.shared.advertised);
        let ours = |name: &_| advertised.contains(name) || place.queue.has_holder(name);
        let seen = QueueSnapshot {
            holder,
            called_as: rules::find_called_holder(leases, holder, ours),
            node: target.node_name(),
            leases,
            slots,
            jitter: self.jitter,
            arrived: self.arrived,
            bid_pause: self.bid_pause,
        };
        rules::decide_queue(&seen, self.shared.now())
    }

    /// The number of slots in the target's group.
    pub(super) async fn count_slots(&mut self, target: &LockTarget) -> Result<u32, Error> {
        if target.max.needs_group_size() {
            let policies = self.shared.policies.current_policies();
            self.group_size = self
                .shared
                .lock_client()
                .read_group_size(&target.group, &policies)
                .await?;
        }
        Ok(max_unavailable_of(target, self.group_size))
    }

    async fn wait_for_first_lease_list(
        &self,
        leases: &mut watch::Receiver<Option<Arc<Vec<ObservedLease>>>>,
    ) -> Result<(), LockAttemptOutcome> {
        let seen = leases.wait_for(Option::is_some);
        if self.wait.may_wait() {
            // Its sender is held by the place.
            let _ = seen.await;
            return Ok(());
        }
        match tokio::time::timeout(FIRST_LEASE_LIST_TIMEOUT, seen).await {
            Ok(_) => Ok(()),
            Err(_) => Err(LockAttemptOutcome::Answer(LockAnswer::Unavailable {
                why: "failed to list the group's Leases; no lock is held, try again".into(),
            })),
        }
    }

    /// Asks the gates only when the lock is free: a thousand waiting requests ask nobody.
    async fn check_gates(
        &mut self,
        target: &LockTarget,
        place: &QueuePlace,
        lease: ObservedLease,
    ) -> Result<ObservedLease, LockAttemptOutcome> {
        let shut = self.shared.list_shut_gates(target).await;
        if shut.is_empty() {
            // The gates took time to answer: an older request may have come first meanwhile.
            return if place.is_first() {
                Ok(lease)
            } else {
                Err(LockAttemptOutcome::Again)
            };
        }
        let not = PolicyDenial::of_closed_gates(&shut);
        tracing::info!(holder = %self.cleanup.leftovers.holder, why = not.message, "waits");
        let end = self.not_allowed_or_again(&not);
        if matches!(end, LockAttemptOutcome::Again) {
            tokio::time::sleep(GATE_RECHECK_INTERVAL).await;
        }
        Err(end)
    }
}

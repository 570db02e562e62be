//! One request for the lock, from its arrival to its answer.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::backoff::{BackoffRange, RetryBackoff};
use dogwatch_core::lock::api_lock::{
    PolicyDenial, WaitMode, WaitingHost, denial_retry_delay, describe_fencing, describe_refusal,
};
use dogwatch_core::lock::{BidPause, ObservedLease};
use dogwatch_core::name::{GroupName, NodeName};
use dogwatch_core::policy::ClusterPolicies;
use dogwatch_core::reboot::RebootReason;
use dogwatch_k8s::lock::LocalWaiter;
use dogwatch_k8s::{ApiErrorKind, Error};
use jiff::Timestamp;
use tokio::sync::watch;

use super::MAX_WAITING_REQUESTS;
use super::cleanup_guard::CleanupGuard;
use super::hold::HoldOutcome;
use super::leave::{self, LockLeaveReason};
use super::lock_state::{LOCK_RETRY_PAUSES, LockState, jitter_of};
use super::target::LockTarget;
use crate::lock::service::{LockAnswer, LockRequest, LockRequester};

/// How long the first read of the cluster may take before the client is told to come again.
const FIRST_OBSERVATION_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the policy is checked again for a host that may not begin: its labels choose the
/// policy.
const POLICY_RECHECK_INTERVAL: Duration = Duration::from_mins(5);
/// How long a request leaves the Lease of its own host alone that it could not join.
const OWN_LEASE_PAUSES: BackoffRange =
    BackoffRange::new(Duration::from_secs(5), Duration::from_secs(30));

/// Receives the policies from the beginning of an attempt on: a change during the attempt is not
/// missed by the wait after it.
pub(super) type PoliciesWatch = watch::Receiver<ClusterPolicies>;

/// Serves one request. A client that goes away drops the future.
pub(super) async fn serve_lock(shared: Arc<LockState>, asked: LockRequest) -> LockAnswer {
    if *shared.stop.borrow() {
        return stopping_answer();
    }
    if shared.count_waiting() >= MAX_WAITING_REQUESTS {
        let why = format!(
            "{MAX_WAITING_REQUESTS} requests already wait in this replica; try again later"
        );
        return LockAnswer::TooMany { why };
    }
    let mut request = PendingLockRequest::new(&shared, asked);
    tokio::select! {
        biased;
        () = shared.wait_for_stop() => stopping_answer(),
        answer = request.run_to_answer() => answer,
    }
}

fn stopping_answer() -> LockAnswer {
    LockAnswer::Unavailable {
        why: "this replica of the lock API is stopping; no lock is held, try again".into(),
    }
}

/// Waits until this replica's Lease exists. No id of a process may be written before, because the
/// process would look dead.
pub(super) async fn wait_for_presence(shared: &LockState) -> Result<(), String> {
    let mut present = shared.present.subscribe();
    let stands = tokio::time::timeout(
        FIRST_OBSERVATION_TIMEOUT,
        present.wait_for(|stands| *stands),
    )
    .await;
    match stands {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) | Err(_) => {
            Err("the API server refuses to let this replica write its own Lease; try again".into())
        }
    }
}

/// Waits until the policies were read.
async fn wait_for_policies(policies: &mut PoliciesWatch) -> Option<ClusterPolicies> {
    let seen = policies.wait_for(|policies| !matches!(policies, ClusterPolicies::NotYetRead));
    let seen = tokio::time::timeout(FIRST_OBSERVATION_TIMEOUT, seen).await;
    seen.ok()?.ok().map(|policies| policies.clone())
}

pub(super) struct PendingLockRequest {
    pub(super) shared: Arc<LockState>,
    pub(super) cleanup: CleanupGuard,
    pub(super) wait: WaitMode,
    pub(super) since: Timestamp,
    /// Monotonic.
    pub(super) arrived: Duration,
    pub(super) jitter: f64,
    /// Set after the lock was yielded: no bid before its end.
    pub(super) bid_pause: Option<BidPause>,
    /// The members of the group, as last counted.
    pub(super) group_size: u32,
    /// How often in a row the request yielded the lock.
    yield_count: u32,
    /// How often in a row the request could not join the Lease that its host holds.
    own_lease_denials: u32,
    /// The reason for which the policy last forbade the reboot, and since when without a break.
    forbidden: Option<(RebootReason, Duration)>,
    /// The group and the Node, as last observed.
    seen_as: (Option<GroupName>, Option<NodeName>),
}

impl Drop for PendingLockRequest {
    fn drop(&mut self) {
        self.shared.remove_waiting_reason(self.cleanup.number);
    }
}

pub(super) enum LockAttemptOutcome {
    Answer(LockAnswer),
    /// The request waited for something: begin again from the start.
    Again,
    Trouble(Error),
}

impl PendingLockRequest {
    fn new(shared: &Arc<LockState>, asked: LockRequest) -> Self {
        let trace = CleanupGuard::new(shared, asked.client);
        Self {
            shared: Arc::clone(shared),
            jitter: jitter_of(trace.leftovers.run.as_str()),
            cleanup: trace,
            wait: asked.wait,
            since: shared.now().wall,
            arrived: shared.now().mono,
            bid_pause: None,
            group_size: 1,
            yield_count: 0,
            own_lease_denials: 0,
            forbidden: None,
            seen_as: (None, None),
        }
    }

    pub(super) fn report_waiting_reason(&self, reason: RebootReason, message: &str) {
        let (group, node) = self.seen_as.clone();
        let host = WaitingHost {
            holder: self.cleanup.leftovers.holder.clone(),
            group,
            node,
            since: self.since,
            reason: reason.to_string(),
            message: message.to_owned(),
        };
        self.shared.record_waiting_reason(self.cleanup.number, host);
    }

    async fn run_to_answer(&mut self) -> LockAnswer {
        if let Err(why) = wait_for_presence(&self.shared).await {
            return LockAnswer::Unavailable { why };
        }
        let mut backoff = RetryBackoff::default();
        let mut seen = false;
        loop {
            match self.attempt_lock().await {
                LockAttemptOutcome::Answer(answer) => return answer,
                LockAttemptOutcome::Again => (seen, backoff) = (true, RetryBackoff::default()),
                LockAttemptOutcome::Trouble(error) => {
                    let lasting = matches!(
                        error.kind(),
                        ApiErrorKind::Forbidden | ApiErrorKind::Refused
                    );
                    if !self.wait.may_wait() || !seen || lasting {
                        let why = format!("{}; no lock is held, try again", error.error_chain());
                        return LockAnswer::Unavailable { why };
                    }
                    tracing::warn!(error = error.error_chain(), holder = %self.cleanup.leftovers.holder, "failed to request a lock");
                    self.report_waiting_reason(RebootReason::CannotLook, &error.error_chain());
                    tokio::time::sleep(backoff.next_pause(LOCK_RETRY_PAUSES)).await;
                }
            }
        }
    }

    async fn attempt_lock(&mut self) -> LockAttemptOutcome {
        let mut policies_watch = self.shared.policies.subscribe();
        let Some(policies) = wait_for_policies(&mut policies_watch).await else {
            let why = "the RebootPolicies have not been read yet";
            return self
                .answer_not_now(RebootReason::LookingAtPolicies, why)
                .await;
        };
        if let Some(why) = self.group_refusal(&policies) {
            return LockAttemptOutcome::Answer(LockAnswer::Refused { why });
        }
        // These futures are on the heap, because they end before the wait or begin after it: a
        // thousand requests wait, and one of them drains.
        let (target, leases) = match Box::pin(self.read_target_and_leases(&policies)).await {
            Ok(seen) => seen,
            Err(error) => return LockAttemptOutcome::Trouble(error),
        };
        if let Some(why) = self.cleanup.leftovers.host.describe_shared_id() {
            return LockAttemptOutcome::Answer(LockAnswer::Refused { why });
        }
        self.seen_as = (Some(target.group.clone()), target.node_name().cloned());
        let holder = &self.cleanup.leftovers.holder;
        if let Some(lease) = leases
            .iter()
            .find(|lease| lease.holder.as_ref() == Some(holder))
        {
            if self.is_paused(&leases) {
                let why = "too many nodes of the group are unavailable";
                return self.answer_not_now(RebootReason::OverBudget, why).await;
            }
            return self.join_own_lease(target, lease, policies_watch).await;
        }
        self.own_lease_denials = 0;
        let node = target.node.as_ref().map(|node| &node.seen);
        if let Some(why) = node.and_then(describe_refusal) {
            return LockAttemptOutcome::Answer(LockAnswer::Refused { why });
        }
        if let Some(why) = node.and_then(describe_fencing) {
            return self.answer_not_now(RebootReason::BeingFenced, &why).await;
        }
        if target.node.is_none()
            && let Some(why) = match self.remediation_reason().await {
                Ok(why) => why,
                Err(error) => return LockAttemptOutcome::Trouble(error),
            }
        {
            return self.answer_not_now(RebootReason::BeingFenced, &why).await;
        }
        let allowance = target.allowance_now(&policies, self.shared.now().wall);
        if let Some(not) = PolicyDenial::of_allowance(allowance) {
            return self.wait_until_allowed(&not, policies_watch).await;
        }
        self.queue_and_acquire(target, policies_watch).await
    }

    /// Takes the lock on the Lease that the host already holds: by an earlier request, here or at
    /// another replica.
    async fn join_own_lease(
        &mut self,
        target: LockTarget,
        lease: &ObservedLease,
        policies_watch: PoliciesWatch,
    ) -> LockAttemptOutcome {
        // The Lease's record gets this request's maximum, and keeps it until the host unlocks.
        if let Err(error) = Box::pin(self.count_slots(&target)).await {
            return LockAttemptOutcome::Trouble(error);
        }
        let held = Box::pin(self.acquire_lock(target, lease, None)).await;
        if let HoldOutcome::Denied { why } = held {
            return self.pause_after_denial(&lease.name, &why).await;
        }
        Box::pin(self.handle_hold_outcome(held, policies_watch)).await
    }

    /// Leaves the Lease alone for a while. The healer removes a dead process' request only from a
    /// Lease that does not change meanwhile.
    async fn pause_after_denial(&mut self, lease: &str, why: &str) -> LockAttemptOutcome {
        self.clean_up_hold(LockLeaveReason::Done).await;
        let why = format!("the host holds Lease {lease}, which this request cannot join: {why}");
        // The first denial may come from a concurrent call of the same host that wrote first: no
        // reason to let a client wait whose host holds the lock.
        let earlier = self.own_lease_denials.checked_sub(1);
        self.own_lease_denials = self.own_lease_denials.saturating_add(1);
        if self.wait.may_wait()
            && let Some(earlier) = earlier
        {
            self.report_waiting_reason(RebootReason::LockHeldByOther, &why);
            let until = self.shared.now().mono + OWN_LEASE_PAUSES.pause_after(earlier);
            self.shared.setup.clock.sleep_until(until).await;
        }
        self.busy_or(why, LockAttemptOutcome::Again)
    }

    /// Why FleetLock may not lock this group. Checked before any object is created for it.
    fn group_refusal(&self, policies: &ClusterPolicies) -> Option<String> {
        let LockRequester::FleetLock { group, .. } = self.cleanup.leftovers.host.client() else {
            return None;
        };
        let names = policies
            .known_policies()
            .iter()
            .map(|policy| policy.name.as_str());
        let groups = &self.shared.setup.fleetlock_groups;
        groups
            .check_group_served(group, names)
            .err()
            .map(|refused| refused.to_string())
    }

    /// Waits for the request's turn, and takes the lock.
    async fn queue_and_acquire(
        &mut self,
        target: LockTarget,
        mut policies_watch: PoliciesWatch,
    ) -> LockAttemptOutcome {
        let here = LocalWaiter {
            holder: self.cleanup.leftovers.holder.clone(),
            since: self.since,
            control_plane: target.control_plane,
            zone: target.zone.clone(),
        };
        let queue = self.shared.queue_of_group(&target.group);
        let place = queue.join_queue(&self.shared, self.cleanup.number, here);
        match self
            .wait_for_turn(&target, &place, &mut policies_watch)
            .await
        {
            Ok(lease) => {
                // It may have waited for hours.
                let host = &mut self.cleanup.leftovers.host;
                match Box::pin(self.shared.is_same_node(&target, host)).await {
                    Ok(true) => {}
                    Ok(false) => return LockAttemptOutcome::Again,
                    Err(error) => return LockAttemptOutcome::Trouble(error),
                }
                let held = Box::pin(self.acquire_lock(target, &lease, Some(place))).await;
                Box::pin(self.handle_hold_outcome(held, policies_watch)).await
            }
            Err(end) => end,
        }
    }

    async fn read_target_and_leases(
        &mut self,
        policies: &ClusterPolicies,
    ) -> Result<(LockTarget, Vec<ObservedLease>), Error> {
        let target = self
            .shared
            .read_target(&mut self.cleanup.leftovers.host, policies)
            .await?;
        Ok((target, self.shared.lock_client().list_all_slots().await?))
    }

    /// Why a host that is no Node now may be one again in a moment: a remediation deleted its Node
    /// and has not ended.
    async fn remediation_reason(&self) -> Result<Option<String>, Error> {
        let LockRequester::Api { host } = self.cleanup.leftovers.host.client() else {
            return Ok(None);
        };
        let Ok(node) = NodeName::new(host.as_str()) else {
            return Ok(None);
        };
        let is_held = self.shared.lock_client().is_remediated(&node).await?;
        let why = || {
            format!(
                "node {node} is being remediated; the request waits until the node is back in service"
            )
        };
        Ok(is_held.then(why))
    }

    /// Handles the end of an attempt. Leftovers are removed before anything else.
    async fn handle_hold_outcome(
        &mut self,
        held: HoldOutcome,
        policies_watch: PoliciesWatch,
    ) -> LockAttemptOutcome {
        let (answer, why) = match held {
            HoldOutcome::Granted { why } => {
                self.cleanup.mark_settled();
                return LockAttemptOutcome::Answer(LockAnswer::Held { why });
            }
            HoldOutcome::Trouble(error) if !self.wait.may_wait() => {
                return LockAttemptOutcome::Trouble(error);
            }
            HoldOutcome::Trouble(error) => {
                self.clean_up_hold(LockLeaveReason::Done).await;
                return LockAttemptOutcome::Trouble(error);
            }
            HoldOutcome::Refused { why } => (Some(LockAnswer::Refused { why }), String::new()),
            HoldOutcome::DrainFailed { why } => {
                (Some(LockAnswer::DrainFailed { why }), String::new())
            }
            HoldOutcome::OverBudget { why } => {
                self.clean_up_hold(LockLeaveReason::OverBudget).await;
                self.yield_count = self.yield_count.saturating_add(1);
                let now = self.shared.now().mono;
                let pause = BidPause::after_yield(self.yield_count, self.jitter, now);
                self.bid_pause = Some(pause);
                self.report_waiting_reason(RebootReason::OverBudget, &why);
                return self.busy_or(why, LockAttemptOutcome::Again);
            }
            HoldOutcome::NotAllowed(not) => {
                self.clean_up_hold(LockLeaveReason::Done).await;
                return self.wait_until_allowed(&not, policies_watch).await;
            }
            HoldOutcome::Denied { why } => (None, why),
        };
        self.clean_up_hold(LockLeaveReason::Done).await;
        match answer {
            Some(answer) => LockAttemptOutcome::Answer(answer),
            None => self.busy_or(why, LockAttemptOutcome::Again),
        }
    }

    /// Whether it gave the lock back over budget, and does not bid again yet.
    fn is_paused(&self, leases: &[ObservedLease]) -> bool {
        let holder = &self.cleanup.leftovers.holder;
        let pause = self.bid_pause.as_ref();
        let end = pause.map(|pause| pause.end_for_waiter(leases, holder, self.jitter));
        end.is_some_and(|at| at > self.shared.now().mono)
    }

    async fn clean_up_hold(&mut self, why: LockLeaveReason) {
        if !self.cleanup.leftovers.touched {
            return;
        }
        leave::remove_leftovers(&self.shared, self.cleanup.leftovers.clone(), why).await;
        self.cleanup.mark_settled();
    }

    /// Answers a request that does not wait; the others go on with `end`.
    pub(super) fn busy_or(&self, why: String, end: LockAttemptOutcome) -> LockAttemptOutcome {
        if self.wait.may_wait() {
            end
        } else {
            LockAttemptOutcome::Answer(LockAnswer::Busy { why })
        }
    }

    async fn answer_not_now(&self, reason: RebootReason, why: &str) -> LockAttemptOutcome {
        self.report_waiting_reason(reason, why);
        if self.wait.may_wait() {
            let pause_end = self.bid_pause.map(|pause| pause.until);
            let until = pause_end
                .unwrap_or_default()
                .max(self.shared.now().mono + FIRST_OBSERVATION_TIMEOUT);
            self.shared.setup.clock.sleep_until(until).await;
        }
        self.busy_or(why.to_owned(), LockAttemptOutcome::Again)
    }

    /// Waits until the policy may allow the reboot or has changed since the attempt began, or
    /// answers the client.
    async fn wait_until_allowed(
        &mut self,
        not: &PolicyDenial,
        mut policies_watch: PoliciesWatch,
    ) -> LockAttemptOutcome {
        let end = self.not_allowed_or_again(not);
        if matches!(end, LockAttemptOutcome::Again) {
            let now = self.shared.now();
            let again = now.mono + POLICY_RECHECK_INTERVAL.mul_f64(1.0 + self.jitter);
            let until = not
                .until
                .map_or(again, |until| now.mono_time_of(until).min(again));
            tokio::select! {
                biased;
                // Its sender is in `shared`.
                _ = policies_watch.changed() => {}
                () = self.shared.setup.clock.sleep_until(until) => {}
            }
        }
        end
    }

    /// Reports what the policy forbids, and answers the client if that lasts for longer than the
    /// client waits.
    pub(super) fn not_allowed_or_again(&mut self, not: &PolicyDenial) -> LockAttemptOutcome {
        let now = self.shared.now();
        let since = match self.forbidden {
            Some((reason, since)) if reason == not.reason => since,
            Some(_) | None => now.mono,
        };
        self.forbidden = Some((not.reason, since));
        self.report_waiting_reason(not.reason, &not.message);
        let so_far = now.mono.saturating_sub(since);
        match denial_retry_delay(not, self.wait, so_far, now.wall) {
            Some(again) => LockAttemptOutcome::Answer(LockAnswer::NotAllowed {
                why: format!("{}; no lock is held", not.message),
                again,
            }),
            None => LockAttemptOutcome::Again,
        }
    }

    pub(super) fn clear_forbidden(&mut self) {
        self.forbidden = None;
    }

    /// Whether the policy forbids the reboot by now, for a request that waits in the queue.
    pub(super) fn forbidden_now(
        &self,
        target: &LockTarget,
        policies: &ClusterPolicies,
    ) -> Option<PolicyDenial> {
        let target = self.shared.target_under_policies(target, policies);
        PolicyDenial::of_allowance(target.allowance_now(policies, self.shared.now().wall))
    }
}

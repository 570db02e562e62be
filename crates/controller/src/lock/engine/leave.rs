//! Releases a lock: for a request that gives up, and for a host that unlocks.

use std::sync::Arc;

use dogwatch_core::lock::api_lock::{
    self as rules, ApiNode, CordonInFlight, LeaveSnapshot, LeaveStep, LeavingParty,
};
use dogwatch_core::lock::{self, HolderId, LockRecord, MAX_NEXT_WAITERS, ObservedLease};
use dogwatch_core::name::GroupName;
use dogwatch_core::policy;
use dogwatch_core::reboot::group_of_lease;
use dogwatch_k8s::lock::{BidOutcome, LeaveReason, ReleaseOutcome, api_lock};
use dogwatch_k8s::{ApiErrorKind, Error};
use dogwatch_runtime::mutex::lock_ignoring_poison;
use tracing::{info, warn};

use super::cleanup_guard::LockLeftovers;
use super::leave_pauses::LeavePauses;
use super::lock_state::LockState;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockLeaveReason {
    /// The holder is done, or gives up: the next waiter is called.
    Done,
    /// The group is over budget: everybody backs off.
    OverBudget,
}

/// Removes from the cluster what this request may have left there, however long that takes.
pub(super) async fn remove_leftovers(
    shared: &Arc<LockState>,
    mut left: LockLeftovers,
    why: LockLeaveReason,
) {
    let mut pauses = LeavePauses::default();
    loop {
        match perform_leave_step(shared, &mut left, LeavingParty::Request, why).await {
            Ok(LeaveProgress::Done) => return,
            Ok(LeaveProgress::Again { lost }) => {
                pauses.pause_after_step(&left.holder, lost).await;
            }
            Err(error) => {
                warn!(error = error.error_chain(), holder = %left.holder, run = %left.run, "failed to release a lock; retrying");
                pauses.pause_after_error().await;
            }
        }
    }
}

pub(super) enum LeaveProgress {
    /// Nothing is left that belongs to the leaving party.
    Done,
    /// Observe again.
    Again {
        /// Why the step was not written: the API server's text, usually about another writer that
        /// was first.
        lost: Option<String>,
    },
}

/// Observes the Node and the Leases, and performs one step.
pub(super) async fn perform_leave_step(
    shared: &Arc<LockState>,
    left: &mut LockLeftovers,
    who: LeavingParty,
    why: LockLeaveReason,
) -> Result<LeaveProgress, Error> {
    let (node, leases) = observe_leaver(shared, left).await?;
    let bid = left.bid.clone();
    let seen = LeaveSnapshot {
        holder: &left.holder,
        run: &left.run,
        who,
        node: node.as_ref(),
        leases: &leases,
        bid: bid.as_ref().map(|bid| &bid.0),
        suspect: &left.suspect,
    };
    let hand = shared.client_for_holder(&left.holder);
    let lost = match rules::decide_leave(&seen, shared.now().wall) {
        LeaveStep::Done => return Ok(LeaveProgress::Done),
        LeaveStep::Unreadable { lease } => {
            warn!(lease = lease.name, holder = %left.holder, "the annotation dogwatch.dev/holder of a Lease is invalid; a person has to release this lock: dogwatch unlock LEASE");
            return Ok(LeaveProgress::Done);
        }
        LeaveStep::Settle { lease } => {
            let record = bid
                .map(|bid| bid.1)
                .expect("a bid is settled that was made");
            let lost = why_lost(hand.bid_for_lease(&lease, &record).await)?;
            left.bid = None;
            lost
        }
        LeaveStep::Claim { lease, record } => {
            let lost = why_lost(hand.bid_for_lease(&lease, &record).await)?;
            if lost.is_none() {
                left.suspect = CordonInFlight::Any;
            }
            lost
        }
        LeaveStep::Remove { lease, record } => why_lost(hand.bid_for_lease(&lease, &record).await)?,
        LeaveStep::Node { write } => {
            let node = node.as_ref().expect("a Node is written that was read");
            let written = api_lock::patch_api_node(&shared.setup.client, node, &write).await;
            let lost = why_not_written(written)?;
            if lost.is_none() {
                left.suspect = CordonInFlight::No;
            }
            lost
        }
        LeaveStep::Free { lease } => release_lease(shared, &left.holder, &lease, why).await?,
    };
    Ok(LeaveProgress::Again { lost })
}

/// The host's Node, which is read before the Leases: see `dogwatch_core::lock::api_lock`. If the host is
/// not found as a Node, because its machine id or `--fleetlock-drain` was changed, the record of its
/// Lease still names the Node that was cordoned.
async fn observe_leaver(
    shared: &LockState,
    left: &mut LockLeftovers,
) -> Result<(Option<ApiNode>, Vec<ObservedLease>), Error> {
    let node = shared.read_node_of(&mut left.host).await?;
    let leases = shared.lock_client().list_all_slots().await?;
    let recorded = match &node {
        Some(_) => None,
        None => rules::find_recorded_node(&left.holder, &leases),
    };
    let Some(name) = recorded else {
        return Ok((node, leases));
    };
    let node = api_lock::read_api_node(&shared.setup.client, name.as_str()).await?;
    Ok((node, shared.lock_client().list_all_slots().await?))
}

/// `None`: the write of the Node succeeded.
fn why_not_written(written: Result<(), Error>) -> Result<Option<String>, Error> {
    match written {
        Ok(()) => Ok(None),
        Err(error) if [ApiErrorKind::Conflict, ApiErrorKind::NotFound].contains(&error.kind()) => {
            Ok(Some(error.error_chain()))
        }
        Err(error) => Err(error),
    }
}

/// `None`: the write succeeded.
fn why_lost(outcome: BidOutcome) -> Result<Option<String>, Error> {
    match outcome {
        BidOutcome::Won(_) => Ok(None),
        BidOutcome::Lost { why } => Ok(Some(why)),
        BidOutcome::Unknown(error) | BidOutcome::Refused(error) => Err(error),
    }
}

async fn release_lease(
    shared: &Arc<LockState>,
    holder: &HolderId,
    lease: &ObservedLease,
    why: LockLeaveReason,
) -> Result<Option<String>, Error> {
    let group = group_of_lease(&lease.name).unwrap_or_else(GroupName::default_group);
    let leaving = match why {
        LockLeaveReason::OverBudget => LeaveReason::OverBudget,
        LockLeaveReason::Done => LeaveReason::Done {
            next: list_next_waiters(shared, holder, lease.record.as_ref(), &group).await,
        },
    };
    match shared
        .client_for_holder(holder)
        .release_lease(lease, &leaving)
        .await
    {
        ReleaseOutcome::Freed(free) => {
            info!(lease = free.name, %holder, over_budget = why == LockLeaveReason::OverBudget, "released the reboot lock");
            let queue = lock_ignoring_poison(&shared.queues).get(&group).cloned();
            if let Some(queue) = queue {
                queue.record_leases([*free]);
            }
            Ok(None)
        }
        ReleaseOutcome::Changed { why } => Ok(Some(why)),
        ReleaseOutcome::Unknown(error) | ReleaseOutcome::Refused(error) => Err(error),
    }
}

/// Lists the waiters to call. Without a call the lock is still safe and live, so an error here is
/// only logged.
async fn list_next_waiters(
    shared: &LockState,
    holder: &HolderId,
    record: Option<&LockRecord>,
    group: &GroupName,
) -> Vec<HolderId> {
    let policies = shared.policies.current_policies();
    let process = &shared.setup.process;
    let elsewhere = shared
        .lock_client()
        .list_waiters_elsewhere(group, &policies, process);
    let mut waiters = match elsewhere.await {
        Ok(waiters) => waiters,
        Err(error) => {
            warn!(
                error = error.error_chain(),
                "failed to read the queues of other processes; only requests of this replica are next in line"
            );
            Vec::new()
        }
    };
    let queue = lock_ignoring_poison(&shared.queues).get(group).cloned();
    let here = queue
        .map(|queue| queue.longest_waiting())
        .unwrap_or_default();
    waiters.extend(here.into_iter().map(|host| lock::LockWaiter {
        holder: host.holder,
        control_plane: host.control_plane,
        zone: host.zone,
        since: Some(host.since),
    }));
    let zone = read_leaver_zone(shared, record, &policies).await;
    lock::order_next_waiters(&waiters, holder, zone.as_deref(), MAX_NEXT_WAITERS)
}

/// The leaver's zone, if its policy goes by zones.
async fn read_leaver_zone(
    shared: &LockState,
    record: Option<&LockRecord>,
    policies: &policy::ClusterPolicies,
) -> Option<String> {
    if policies
        .known_policies()
        .iter()
        .all(|policy| policy.topology_key.is_none())
    {
        return None;
    }
    let name = record?.node.as_ref()?;
    let node = api_lock::read_api_node(&shared.setup.client, name.as_str())
        .await
        .ok()??;
    policy::zone_of_labels(policies, &node.seen.labels)
}

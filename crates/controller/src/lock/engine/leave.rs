//! Leaving: by a request that gives up, and by a host that unlocks.

use std::sync::Arc;

use dogwatch_core::lock::api_lock::{self as rules, LeaveSeen, LeaveStep, Suspect, Who};
use dogwatch_core::lock::{self, HINT_LENGTH, HolderId, LeaseSeen, LockRecord};
use dogwatch_core::name::GroupName;
use dogwatch_core::policy;
use dogwatch_core::reboot::group_of_lease;
use dogwatch_k8s::lock::{BidOutcome, Leaving, ReleaseOutcome, api_lock};
use dogwatch_k8s::{Error, Kind};
use tracing::{info, warn};

use super::shared::{Pauses, Shared, guard};
use super::trace::Left;

/// Why a lock is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Done with it, or given up: the next one is called.
    Done,
    /// Too many are out: everybody backs off.
    OverBudget,
}

/// Takes off the cluster what this request may have left there, however long that takes.
pub(super) async fn give_up(shared: &Arc<Shared>, mut left: Left, why: Why) {
    let mut pauses = Pauses::default();
    loop {
        match step(shared, &mut left, Who::Request, why).await {
            Ok(Progress::Done) => return,
            Ok(Progress::Again) => {}
            Err(error) => {
                warn!(error = error.in_words(), holder = %left.holder, run = %left.run, "cannot give a lock up yet");
                pauses.pause().await;
            }
        }
    }
}

/// How far one step came.
pub(super) enum Progress {
    /// Nothing is left that is its to take.
    Done,
    /// Something was done: look again.
    Again,
}

/// Looks, and does one thing.
pub(super) async fn step(
    shared: &Arc<Shared>,
    left: &mut Left,
    who: Who,
    why: Why,
) -> Result<Progress, Error> {
    // The Node first: see `dogwatch_core::lock::api_lock`.
    let node = shared.node_of(&mut left.host).await?;
    let leases = shared.locks().list_all().await?;
    let bid = left.bid.clone();
    let seen = LeaveSeen {
        holder: &left.holder,
        run: &left.run,
        who,
        node: node.as_ref(),
        leases: &leases,
        bid: bid.as_ref().map(|bid| &bid.0),
        suspect: &left.suspect,
    };
    let hand = shared.hand(&left.holder);
    match rules::leave(&seen, shared.now().wall) {
        LeaveStep::Done => return Ok(Progress::Done),
        LeaveStep::Unreadable { lease } => {
            warn!(lease = lease.name, holder = %left.holder, "the record of a lock cannot be read; a person has to free it");
            return Ok(Progress::Done);
        }
        LeaveStep::Settle { lease } => {
            let record = bid
                .map(|bid| bid.1)
                .expect("a bid is settled that was made");
            written(hand.bid(&lease, &record).await)?;
            left.bid = None;
        }
        LeaveStep::Claim { lease, record } => {
            if written(hand.bid(&lease, &record).await)? {
                left.suspect = Suspect::Any;
            }
        }
        LeaveStep::Remove { lease, record } => {
            written(hand.bid(&lease, &record).await)?;
        }
        LeaveStep::Node { write } => {
            let node = node.as_ref().expect("a Node is written that was read");
            match api_lock::write(&shared.setup.client, node, &write).await {
                Ok(()) => left.suspect = Suspect::No,
                Err(error) if error.kind() == Kind::Conflict || error.kind() == Kind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        LeaveStep::Free { lease } => free(shared, &left.holder, &lease, why).await?,
    }
    Ok(Progress::Again)
}

/// Whether it was written; if not, things have changed.
fn written(outcome: BidOutcome) -> Result<bool, Error> {
    match outcome {
        BidOutcome::Won(_) => Ok(true),
        BidOutcome::Lost { .. } => Ok(false),
        BidOutcome::Unknown(error) | BidOutcome::Refused(error) => Err(error),
    }
}

async fn free(
    shared: &Arc<Shared>,
    holder: &HolderId,
    lease: &LeaseSeen,
    why: Why,
) -> Result<(), Error> {
    let group = group_of_lease(&lease.name).unwrap_or_else(GroupName::default_group);
    let leaving = match why {
        Why::OverBudget => Leaving::OverBudget,
        Why::Done => Leaving::Done {
            next: next(shared, holder, lease.record.as_ref(), &group).await,
        },
    };
    match shared.hand(holder).release(lease, &leaving).await {
        ReleaseOutcome::Freed(free) => {
            info!(lease = free.name, %holder, over_budget = why == Why::OverBudget, "released the reboot lock");
            let queue = guard(&shared.queues).get(&group).cloned();
            if let Some(queue) = queue {
                queue.saw([*free]);
            }
            Ok(())
        }
        ReleaseOutcome::Changed { .. } => Ok(()),
        ReleaseOutcome::Unknown(error) | ReleaseOutcome::Refused(error) => Err(error),
    }
}

/// Whom to call. Without a call the lock is still safe and live, so trouble here is only said.
async fn next(
    shared: &Shared,
    holder: &HolderId,
    record: Option<&LockRecord>,
    group: &GroupName,
) -> Vec<HolderId> {
    let policies = shared.policies.borrow().clone();
    let process = &shared.setup.process;
    let elsewhere = shared.locks().waiting_elsewhere(group, &policies, process);
    let mut waiters = match elsewhere.await {
        Ok(waiters) => waiters,
        Err(error) => {
            warn!(
                error = error.in_words(),
                "cannot see who waits elsewhere; calling only who waits here"
            );
            Vec::new()
        }
    };
    let queue = guard(&shared.queues).get(group).cloned();
    let here = queue
        .map(|queue| queue.longest_waiting())
        .unwrap_or_default();
    waiters.extend(here.into_iter().map(|host| lock::Waiter {
        holder: host.holder,
        control_plane: host.control_plane,
        zone: host.zone,
        since: Some(host.since),
    }));
    let zone = zone(shared, record, &policies).await;
    lock::hint(&waiters, holder, zone.as_deref(), HINT_LENGTH)
}

/// The leaver's own zone, where its policy goes by one.
async fn zone(
    shared: &Shared,
    record: Option<&LockRecord>,
    policies: &policy::Policies,
) -> Option<String> {
    if policies
        .known()
        .iter()
        .all(|policy| policy.topology_key.is_none())
    {
        return None;
    }
    let name = record?.node.as_ref()?;
    let node = api_lock::read(&shared.setup.client, name.as_str())
        .await
        .ok()??;
    policy::zone(policies, &node.seen.labels)
}

//! Decides how a request gives up, and how a host unlocks.

use jiff::Timestamp;

use super::super::{HolderId, LockRecord, ObservedLease};
use super::{ApiNode, NodeWrite, answered_run_id, is_run_answered};
use crate::name::{NodeName, RunId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeavingParty {
    /// One request: it may remove only its own id.
    Request,
    /// The host: it releases its locks whoever relies on them, answered or not.
    Host,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CordonInFlight {
    #[default]
    No,
    /// A cordon was sent for this version, and its answer never came.
    Version(String),
    /// Other requests may have sent one.
    Any,
}

/// What a leaving request or host observes.
#[derive(Debug, Clone)]
pub struct LeaveSnapshot<'a> {
    pub holder: &'a HolderId,
    /// The id of the leaving request; an unlock has an id too.
    pub run: &'a RunId,
    pub who: LeavingParty,
    /// The host's Node, read **before** the Leases. `None`: the host is no Node.
    pub node: Option<&'a ApiNode>,
    /// All Leases of Dogwatch's slots, freshly read.
    pub leases: &'a [ObservedLease],
    /// A bid of unknown end: the Lease as it was at the bid.
    pub bid: Option<&'a ObservedLease>,
    pub suspect: &'a CordonInFlight,
}

/// The next step. After each but the first two, the caller observes again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaveStep {
    /// Nothing of the request is left, and no write of it can arrive any more.
    Done,
    /// The host holds a Lease whose record cannot be read: left to a person.
    Unreadable { lease: Box<ObservedLease> },
    /// A bid may still arrive: bid again on the same version, which takes the Lease or proves that
    /// the first bid failed.
    Settle { lease: Box<ObservedLease> },
    /// Removes all other requests from the Lease, so that none of them begins anything. A cordon
    /// that one of them sent may be on its way ([`CordonInFlight::Any`]).
    Claim {
        lease: Box<ObservedLease>,
        /// Names only the leaving request.
        record: Box<LockRecord>,
    },
    /// Removes the cordon, or changes the Node's version so that a cordon on its way fails.
    Node { write: NodeWrite },
    /// Other requests rely on the Lease: removes only this request's id.
    Remove {
        lease: Box<ObservedLease>,
        /// Names the remaining requests.
        record: Box<LockRecord>,
    },
    /// Frees the Lease: nobody else relies on it.
    Free { lease: Box<ObservedLease> },
}

/// The Node that a Lease of this holder was taken for, by its record. The host itself may not be found
/// as a Node any more.
pub fn find_recorded_node(holder: &HolderId, leases: &[ObservedLease]) -> Option<NodeName> {
    let mine = leases
        .iter()
        .filter(|lease| lease.holder.as_ref() == Some(holder));
    let mut nodes = mine.filter_map(|lease| lease.record.as_ref()?.node.clone());
    nodes.next()
}

/// Decides the next step of a leaving request or host.
pub fn decide_leave(seen: &LeaveSnapshot<'_>, now: Timestamp) -> LeaveStep {
    if let Some(lease) = find_pending_bid_lease(seen) {
        let lease = Box::new(lease.clone());
        return LeaveStep::Settle { lease };
    }
    let mut mine = seen
        .leases
        .iter()
        .filter(|lease| lease.holder.as_ref() == Some(seen.holder));
    let step = match seen.who {
        LeavingParty::Request => mine.find_map(|lease| step_for_request(seen, lease, now)),
        LeavingParty::Host => mine.next().map(|lease| step_for_host(seen, lease, now)),
    };
    step.or_else(|| clean_up_orphaned_cordon(seen, now))
        .unwrap_or(LeaveStep::Done)
}

/// The Lease that a bid of this request may still take.
fn find_pending_bid_lease<'a>(seen: &LeaveSnapshot<'a>) -> Option<&'a ObservedLease> {
    let bid = seen.bid?;
    let same = |lease: &&ObservedLease| {
        lease.name == bid.name
            && lease.uid == bid.uid
            && lease.resource_version == bid.resource_version
    };
    seen.leases.iter().find(same)
}

fn step_for_request(
    seen: &LeaveSnapshot<'_>,
    lease: &ObservedLease,
    now: Timestamp,
) -> Option<LeaveStep> {
    let Some(record) = &lease.record else {
        let lease = Box::new(lease.clone());
        return Some(LeaveStep::Unreadable { lease });
    };
    let told = answered_run_id(seen.run);
    let own = |run: &&RunId| *run == seen.run || **run == told;
    let others: Vec<RunId> = record
        .runs
        .iter()
        .filter(|run| !own(run))
        .cloned()
        .collect();
    if others.len() == record.runs.len() {
        return None;
    }
    if others.is_empty() {
        return Some(release_as_last(seen, lease, now));
    }
    let record = LockRecord {
        runs: others,
        ..record.clone()
    };
    Some(LeaveStep::Remove {
        lease: Box::new(lease.clone()),
        record: Box::new(record),
    })
}

fn step_for_host(seen: &LeaveSnapshot<'_>, lease: &ObservedLease, now: Timestamp) -> LeaveStep {
    let Some(record) = &lease.record else {
        // A person changed the record; the host unlocks all the same.
        return release_as_last(seen, lease, now);
    };
    let busy = |run: &RunId| run != seen.run && !is_run_answered(run);
    if !record.runs.iter().any(busy) {
        return release_as_last(seen, lease, now);
    }
    let record = LockRecord {
        runs: vec![seen.run.clone()],
        ..record.clone()
    };
    LeaveStep::Claim {
        lease: Box::new(lease.clone()),
        record: Box::new(record),
    }
}

/// First the cordon, then the lock: the next holder must not start while this Node is out.
fn release_as_last(seen: &LeaveSnapshot<'_>, lease: &ObservedLease, now: Timestamp) -> LeaveStep {
    let write = seen
        .node
        .and_then(|node| match find_staying_lease(seen, lease) {
            Some(stays) => hand_over_cordon(seen, node, lease, stays, now),
            None => undo_cordon(seen, node, &lease.name, now),
        });
    if let Some(write) = write {
        return LeaveStep::Node { write };
    }
    let lease = Box::new(lease.clone());
    LeaveStep::Free { lease }
}

/// Another Lease of this host that another of its requests relies on: two concurrent requests may
/// have won one each.
fn find_staying_lease<'a>(
    seen: &LeaveSnapshot<'a>,
    lease: &ObservedLease,
) -> Option<&'a ObservedLease> {
    let told = answered_run_id(seen.run);
    let others = |record: &LockRecord| {
        let mut runs = record.runs.iter();
        runs.any(|run| run != seen.run && *run != told)
    };
    let stays = |other: &&ObservedLease| {
        other.name != lease.name
            && other.holder.as_ref() == Some(seen.holder)
            && other.record.as_ref().is_none_or(others)
    };
    let request = seen.who == LeavingParty::Request;
    seen.leases.iter().find(stays).filter(|_| request)
}

/// The write that keeps the cordon when this Lease is freed, if one is needed: the cordon then
/// names the Lease that stays, whoever wrote it last, and a cordon on its way fails.
fn hand_over_cordon(
    seen: &LeaveSnapshot<'_>,
    node: &ApiNode,
    lease: &ObservedLease,
    stays: &ObservedLease,
    now: Timestamp,
) -> Option<NodeWrite> {
    if !node.seen.api_lock {
        return may_cordon_be_in_flight(seen, node)
            .then(|| node.build_version_bump(&lease.name, seen.run, now));
    }
    let lock = node.lock.get();
    let is_theirs = lock.is_some_and(|lock| lock.lease == stays.name);
    if is_cordon_of_other_holder(seen, node) || (is_theirs && !may_cordon_be_in_flight(seen, node))
    {
        return None;
    }
    // Not under the staying request's id: that request may not have been counted yet.
    Some(if node.seen.unschedulable {
        node.build_cordon(&stays.name, seen.run, now)
    } else {
        node.build_uncordon()
    })
}

/// The write that removes this request's cordon, if one is needed.
fn undo_cordon(
    seen: &LeaveSnapshot<'_>,
    node: &ApiNode,
    lease: &str,
    now: Timestamp,
) -> Option<NodeWrite> {
    if node.seen.api_lock {
        return (!is_cordon_of_other_holder(seen, node)).then(|| node.build_uncordon());
    }
    may_cordon_be_in_flight(seen, node).then(|| node.build_version_bump(lease, seen.run, now))
}

/// Whether a cordon may be on its way to the Node's present version.
fn may_cordon_be_in_flight(seen: &LeaveSnapshot<'_>, node: &ApiNode) -> bool {
    match seen.suspect {
        CordonInFlight::No => false,
        CordonInFlight::Version(version) => *version == node.seen.resource_version,
        CordonInFlight::Any => true,
    }
}

/// Whether the annotation belongs to a lock that another holder has for the same Node.
fn is_cordon_of_other_holder(seen: &LeaveSnapshot<'_>, node: &ApiNode) -> bool {
    let Some(lock) = node.lock.get() else {
        return false;
    };
    seen.leases.iter().any(|lease| {
        let held = lease
            .holder
            .as_ref()
            .is_some_and(|holder| holder != seen.holder);
        let record = lease.record.as_ref();
        let same_node = record.is_some_and(|record| record.node.as_ref() == Some(&node.seen.name));
        lease.name == lock.lease && held && same_node
    })
}

/// Handles a cordon without a lock: the lock was taken away (by a person or the healer), or was
/// never won. While another request of the host has a lock, the cordon belongs to that request,
/// whoever wrote it last.
fn clean_up_orphaned_cordon(seen: &LeaveSnapshot<'_>, now: Timestamp) -> Option<LeaveStep> {
    let node = seen.node?;
    if seen
        .leases
        .iter()
        .any(|lease| lease.holder.as_ref() == Some(seen.holder))
    {
        return None;
    }
    let lock = node.lock.get();
    let ours = match seen.who {
        LeavingParty::Host => true,
        // A cordon that another request of this host wrote is for that request to undo.
        LeavingParty::Request => {
            !node.seen.api_lock || lock.is_some_and(|lock| lock.run == *seen.run)
        }
    };
    let name = lock.map_or("", |lock| lock.lease.as_str());
    let write = undo_cordon(seen, node, name, now).filter(|_| ours)?;
    Some(LeaveStep::Node { write })
}

#[cfg(test)]
mod tests;

//! A request that gives up, and one that unlocks.

use jiff::Timestamp;

use super::super::{HolderId, LeaseSeen, LockRecord};
use super::{ApiNode, NodeWrite, answered, is_answered};
use crate::name::RunId;

/// Who leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// This request: only its own id is its to remove.
    Request,
    /// The host: whatever relies on its locks, answered or not.
    Host,
}

/// Whether a cordon may be on its way to the Node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Suspect {
    /// No.
    #[default]
    No,
    /// One was sent for this version, and its answer never came.
    Version(String),
    /// Others may have sent one.
    Any,
}

/// What one who leaves sees.
#[derive(Debug, Clone)]
pub struct LeaveSeen<'a> {
    /// Whose lock.
    pub holder: &'a HolderId,
    /// Which request; one that unlocks has an id too.
    pub run: &'a RunId,
    /// Who leaves.
    pub who: Who,
    /// The host's Node, read **before** the Leases; `None` if it is none.
    pub node: Option<&'a ApiNode>,
    /// Every Lease of Dogwatch's slots, read afresh.
    pub leases: &'a [LeaseSeen],
    /// A bid whose end is unknown: for this Lease, as it was.
    pub bid: Option<&'a LeaseSeen>,
    /// Whether a cordon may be on its way.
    pub suspect: &'a Suspect,
}

/// What it does next. After each but the first two it looks again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaveStep {
    /// Nothing of it is left, and nothing of it can land.
    Done,
    /// A Lease is held in its name by somebody that cannot be read: left to a person.
    Unreadable {
        /// Which.
        lease: Box<LeaseSeen>,
    },
    /// A bid may land yet: bids once more for the same version, which lands it or proves it dead.
    Settle {
        /// Which.
        lease: Box<LeaseSeen>,
    },
    /// Takes all other requests off the Lease: from here on none of them begins anything. A cordon
    /// that one of them has sent may be on its way ([`Suspect::Any`]).
    Claim {
        /// Which.
        lease: Box<LeaseSeen>,
        /// With its own id alone.
        record: Box<LockRecord>,
    },
    /// Undoes the cordon, or moves the Node's version so that one on its way fails.
    Node {
        /// The patch.
        write: NodeWrite,
    },
    /// Others rely on it: only its own id goes.
    Remove {
        /// Which.
        lease: Box<LeaseSeen>,
        /// With the others' ids.
        record: Box<LockRecord>,
    },
    /// It is the last one out.
    Free {
        /// Which.
        lease: Box<LeaseSeen>,
    },
}

/// What one does that leaves.
pub fn leave(seen: &LeaveSeen<'_>, now: Timestamp) -> LeaveStep {
    if let Some(lease) = landing(seen) {
        let lease = Box::new(lease.clone());
        return LeaveStep::Settle { lease };
    }
    let mut mine = seen
        .leases
        .iter()
        .filter(|lease| lease.holder.as_ref() == Some(seen.holder));
    let step = match seen.who {
        Who::Request => mine.find_map(|lease| request(seen, lease, now)),
        Who::Host => mine.next().map(|lease| host(seen, lease, now)),
    };
    step.or_else(|| left_behind(seen, now))
        .unwrap_or(LeaveStep::Done)
}

/// The Lease that a bid of this request may still take.
fn landing<'a>(seen: &LeaveSeen<'a>) -> Option<&'a LeaseSeen> {
    let bid = seen.bid?;
    let same = |lease: &&LeaseSeen| {
        lease.name == bid.name
            && lease.uid == bid.uid
            && lease.resource_version == bid.resource_version
    };
    seen.leases.iter().find(same)
}

fn request(seen: &LeaveSeen<'_>, lease: &LeaseSeen, now: Timestamp) -> Option<LeaveStep> {
    let Some(record) = &lease.record else {
        let lease = Box::new(lease.clone());
        return Some(LeaveStep::Unreadable { lease });
    };
    let told = answered(seen.run);
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
        return Some(last_one(seen, lease, now));
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

fn host(seen: &LeaveSeen<'_>, lease: &LeaseSeen, now: Timestamp) -> LeaveStep {
    let Some(record) = &lease.record else {
        // A person's hand was in it; the host is done with it all the same.
        return last_one(seen, lease, now);
    };
    let busy = |run: &RunId| run != seen.run && !is_answered(run);
    if !record.runs.iter().any(busy) {
        return last_one(seen, lease, now);
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

/// The cordon first, then the lock: the next one must never go ahead while this one is out.
fn last_one(seen: &LeaveSeen<'_>, lease: &LeaseSeen, now: Timestamp) -> LeaveStep {
    let write = seen.node.and_then(|node| match staying(seen, lease) {
        Some(stays) => hand_over(seen, node, lease, stays, now),
        None => undo(seen, node, &lease.name, now),
    });
    if let Some(write) = write {
        return LeaveStep::Node { write };
    }
    let lease = Box::new(lease.clone());
    LeaveStep::Free { lease }
}

/// Another Lease of this host that another of its requests relies on: two that asked at once may have
/// won one each.
fn staying<'a>(seen: &LeaveSeen<'a>, lease: &LeaseSeen) -> Option<&'a LeaseSeen> {
    let told = answered(seen.run);
    let others = |record: &LockRecord| {
        let mut runs = record.runs.iter();
        runs.any(|run| run != seen.run && *run != told)
    };
    let stays = |other: &&LeaseSeen| {
        other.name != lease.name
            && other.holder.as_ref() == Some(seen.holder)
            && other.record.as_ref().is_none_or(others)
    };
    let request = seen.who == Who::Request;
    seen.leases.iter().find(stays).filter(|_| request)
}

/// What has to be written on the Node, if anything, where the cordon is to outlive this Lease: the cordon
/// names the Lease that stays from then on, whoever wrote it last, and one on its way fails.
fn hand_over(
    seen: &LeaveSeen<'_>,
    node: &ApiNode,
    lease: &LeaseSeen,
    stays: &LeaseSeen,
    now: Timestamp,
) -> Option<NodeWrite> {
    if !node.seen.api_lock {
        return suspicious(seen, node).then(|| node.touch(&lease.name, seen.run, now));
    }
    let lock = node.lock.get();
    let is_theirs = lock.is_some_and(|lock| lock.lease == stays.name);
    if anothers(seen, node) || (is_theirs && !suspicious(seen, node)) {
        return None;
    }
    // Not in the name of who stays: it may not be counted yet.
    Some(if node.seen.unschedulable {
        node.close(&stays.name, seen.run, now)
    } else {
        node.open()
    })
}

/// What has to be written on the Node, if anything.
fn undo(seen: &LeaveSeen<'_>, node: &ApiNode, lease: &str, now: Timestamp) -> Option<NodeWrite> {
    if node.seen.api_lock {
        return (!anothers(seen, node)).then(|| node.open());
    }
    suspicious(seen, node).then(|| node.touch(lease, seen.run, now))
}

/// Whether a cordon may be on its way to this version.
fn suspicious(seen: &LeaveSeen<'_>, node: &ApiNode) -> bool {
    match seen.suspect {
        Suspect::No => false,
        Suspect::Version(version) => *version == node.seen.resource_version,
        Suspect::Any => true,
    }
}

/// Whether the annotation belongs to a lock that another holder has for the same Node.
fn anothers(seen: &LeaveSeen<'_>, node: &ApiNode) -> bool {
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

/// A cordon without a lock: the lock was taken away (a person, the healer), or never stood. While
/// another request of the host has a lock, the cordon is that one's, whoever wrote it last.
fn left_behind(seen: &LeaveSeen<'_>, now: Timestamp) -> Option<LeaveStep> {
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
        Who::Host => true,
        // What another request of this host wrote is that one's to undo.
        Who::Request => !node.seen.api_lock || lock.is_some_and(|lock| lock.run == *seen.run),
    };
    let name = lock.map_or("", |lock| lock.lease.as_str());
    let write = undo(seen, node, name, now).filter(|_| ours)?;
    Some(LeaveStep::Node { write })
}

#[cfg(test)]
mod tests;

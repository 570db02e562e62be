//! A request whose id was written on a Lease: what it does until its client may be told.

use jiff::Timestamp;

use super::super::{HolderId, LeaseSeen, LockRecord, Verdict};
use super::{ApiNode, NodeWrite, answer, answered, being_fenced, is_answered, refusal};
use crate::name::RunId;

/// What such a request sees.
#[derive(Debug, Clone)]
pub struct HoldSeen<'a> {
    /// Who it is for.
    pub holder: &'a HolderId,
    /// Which.
    pub run: &'a RunId,
    /// Every Lease of Dogwatch's slots. Where the host is a Node, read after it.
    pub leases: &'a [LeaseSeen],
    /// The host's Node, read after the id was written; `None` if it is none.
    pub node: Option<&'a ApiNode>,
    /// A count for the Lease as it is here, if one was made.
    pub verdict: Option<Verdict>,
    /// It was counted for this very win, and may go ahead: not taken back by a newer count, for the
    /// cordon may be on its way.
    pub may_go: bool,
    /// Its own patch has closed the Node, and the answer to that came.
    pub has_closed: bool,
    /// Every pod is gone, and the volumes (or their time is over).
    pub drained: bool,
}

/// What it does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldStep {
    /// The lock is not its own any more.
    Lost,
    /// The Node is not the lock API's to take: gives up.
    Refuse {
        /// Why.
        why: String,
    },
    /// Counts who is out, for this Lease as it is.
    Count {
        /// Which.
        lease: Box<LeaseSeen>,
        /// An earlier count found the group over budget, but a higher slot gives back first: not at
        /// once ([`RECOUNT_PAUSE`](super::super::RECOUNT_PAUSE)).
        why: Option<String>,
    },
    /// The group is over budget: gives up.
    OverBudget {
        /// Who is out.
        why: String,
    },
    /// Cordons.
    Cordon {
        /// The patch.
        write: NodeWrite,
    },
    /// The Node that the lock was taken for is gone, or another one has its name: gives up.
    NodeGone {
        /// What was found.
        why: String,
    },
    /// Somebody has opened the Node again: gives up.
    Vetoed {
        /// What was found.
        why: String,
    },
    /// Drains, and watches that nobody takes the lock or the cordon away.
    Drain,
    /// The remediator has the Node's machine in hand: nothing more is evicted, cordon and lock stay,
    /// nobody is told that it holds. Goes on when that is over.
    Fenced {
        /// In words.
        why: String,
    },
    /// Writes that its client may be told; when that is done, the client is.
    Answer {
        /// On which.
        lease: Box<LeaseSeen>,
        /// What.
        record: Box<LockRecord>,
    },
}

/// What a request does that has its id on a Lease.
pub fn hold(seen: &HoldSeen<'_>, now: Timestamp) -> HoldStep {
    let Some((lease, record)) = own(seen) else {
        return HoldStep::Lost;
    };
    if let Some(why) = node_gone(seen, record) {
        return HoldStep::NodeGone { why };
    }
    if let Some(why) = seen.node.and_then(|node| in_the_way(seen, node)) {
        return HoldStep::Refuse { why };
    }
    if !seen.may_go && !went_ahead(seen, record) {
        match verdict(seen, lease) {
            None => {}
            Some(step) => return step,
        }
    }
    if let Some(node) = seen.node {
        match closed(seen, node, lease) {
            Closed::Ours => {
                if let Some(why) = being_fenced(&node.seen) {
                    return HoldStep::Fenced { why };
                }
            }
            Closed::Undone => return HoldStep::Vetoed { why: veto(node) },
            Closed::NotYet => {
                if let Some(why) = being_fenced(&node.seen) {
                    return HoldStep::Refuse { why };
                }
                let write = node.close(&lease.name, seen.run, now);
                return HoldStep::Cordon { write };
            }
        }
        if !seen.drained {
            return HoldStep::Drain;
        }
    }
    let record = answer(record, seen.run).expect("its id is written there");
    HoldStep::Answer {
        lease: Box::new(lease.clone()),
        record: Box::new(record),
    }
}

/// Nobody saw the pods of a Node go that went itself, and it may come back open for new ones: who was
/// not told yet is not told that it holds. Who was told goes on to hold, whatever becomes of its Node.
fn node_gone(seen: &HoldSeen<'_>, record: &LockRecord) -> Option<String> {
    let (name, uid) = record.node.as_ref().zip(record.node_uid.as_ref())?;
    if record.runs.iter().any(is_answered) {
        return None;
    }
    match seen.node {
        Some(node) if node.seen.uid == *uid => None,
        Some(_) => Some(format!(
            "node {name} was deleted and made anew before it was drained; ask again"
        )),
        None => Some(format!(
            "node {name} was deleted before it was drained; ask again when it is back"
        )),
    }
}

/// The Lease of this host that names the run.
fn own<'a>(seen: &HoldSeen<'a>) -> Option<(&'a LeaseSeen, &'a LockRecord)> {
    let ours = |run: &RunId| run == seen.run || *run == answered(seen.run);
    let mut mine = seen
        .leases
        .iter()
        .filter(|lease| lease.holder.as_ref() == Some(seen.holder));
    mine.find_map(|lease| {
        let record = lease.record.as_ref()?;
        record.runs.iter().any(ours).then_some((lease, record))
    })
}

/// The Node's own coordinator, or another host that stands for the same Node.
fn in_the_way(seen: &HoldSeen<'_>, node: &ApiNode) -> Option<String> {
    let other = || {
        let lock = node.lock.get()?;
        let lease = seen.leases.iter().find(|lease| lease.name == lock.lease)?;
        let holder = lease
            .holder
            .as_ref()
            .filter(|holder| *holder != seen.holder)?;
        let same_node = lease.record.as_ref()?.node.as_ref() == Some(&node.seen.name);
        same_node.then(|| {
            let name = &node.seen.name;
            format!(
                "node {name} is locked by {holder} already (Lease {})",
                lease.name
            )
        })
    };
    refusal(&node.seen).or_else(other)
}

/// Whether an earlier request of the same hold was counted and went ahead: it was answered, or it
/// has cordoned.
fn went_ahead(seen: &HoldSeen<'_>, record: &LockRecord) -> bool {
    let told = record.runs.iter().any(is_answered);
    let cordoned = || {
        let node = seen.node?;
        let lock = node.lock.get().filter(|_| node.seen.unschedulable)?;
        let relies = |run: &RunId| *run == lock.run || *run == answered(&lock.run);
        record.runs.iter().any(relies).then_some(())
    };
    told || cordoned().is_some()
}

fn verdict(seen: &HoldSeen<'_>, lease: &LeaseSeen) -> Option<HoldStep> {
    let count = |why| HoldStep::Count {
        lease: Box::new(lease.clone()),
        why,
    };
    match seen.verdict.clone() {
        None | Some(Verdict::StaleCount) => Some(count(None)),
        Some(Verdict::Go) => None,
        Some(Verdict::GiveBack { why }) => Some(HoldStep::OverBudget { why }),
        Some(Verdict::WaitForHigherSlot { why }) => Some(count(Some(why))),
    }
}

/// How the Node stands to this request.
enum Closed {
    /// It has closed it, and closed it is.
    Ours,
    /// It has to write the cordon itself, even where an earlier request did: an uncordon of that
    /// one, which may be leaving, must fail.
    NotYet,
    /// It had closed it.
    Undone,
}

fn closed(seen: &HoldSeen<'_>, node: &ApiNode, lease: &LeaseSeen) -> Closed {
    let lock = node.lock.get().filter(|_| node.seen.unschedulable);
    let lock = lock.filter(|lock| lock.lease == lease.name);
    match lock {
        Some(lock) if seen.has_closed || lock.run == *seen.run => Closed::Ours,
        None if seen.has_closed => Closed::Undone,
        Some(_) | None => Closed::NotYet,
    }
}

fn veto(node: &ApiNode) -> String {
    let name = &node.seen.name;
    if node.seen.unschedulable {
        format!("somebody took annotation dogwatch.dev/api-lock off node {name}: that is a veto")
    } else {
        format!("somebody uncordoned node {name}: that is a veto")
    }
}

#[cfg(test)]
mod tests;

//! Decides what a request does from the write of its id to a Lease until its client may be told.

use jiff::Timestamp;

use super::super::{BudgetVerdict, HolderId, LockRecord, ObservedLease};
use super::{
    ApiNode, NodeWrite, answered_run_id, describe_fencing, describe_refusal, is_run_answered,
    mark_request_answered,
};
use crate::name::RunId;
use crate::reboot::ParsedAnnotation;

/// What a request observes whose id is on a Lease.
#[derive(Debug, Clone)]
pub struct HoldSnapshot<'a> {
    pub holder: &'a HolderId,
    pub run: &'a RunId,
    /// All Leases of Dogwatch's slots. If the host is a Node, read after the Node.
    pub leases: &'a [ObservedLease],
    /// The host's Node, read after the id was written. `None`: the host is no Node.
    pub node: Option<&'a ApiNode>,
    /// The verdict for the Lease as it is here, if there was a count.
    pub verdict: Option<BudgetVerdict>,
    /// A count for this very win allowed it, and no call has failed since. A newer count does not
    /// withdraw that without a reason, because the cordon may be on its way.
    pub may_go: bool,
    /// This request's own patch has cordoned the Node, and the patch was answered.
    pub has_closed: bool,
    /// All pods are gone, and the volumes are detached (or the time for that is over).
    pub drained: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldStep {
    /// The request does not hold the lock any more.
    Lost,
    /// The host still holds a Lease, but somebody removed this request from it: an unlock of the
    /// host, or a healer that took the request's process for dead. The request gives up: if it bid
    /// again, it and the unlock would undo each other's writes for ever.
    Unlocked { why: String },
    /// The lock API must not take the Node out of service: the request gives up.
    Refuse { why: String },
    /// Count the unavailable members, for this Lease as it is.
    Count {
        lease: Box<ObservedLease>,
        /// An earlier count found the group over budget, but a higher slot gives back first: count
        /// again after [`RECOUNT_PAUSE`](super::super::RECOUNT_PAUSE).
        why: Option<String>,
    },
    /// The group is over budget: the request gives up.
    OverBudget { why: String },
    Cordon {
        write: NodeWrite,
        /// Whether the policy must allow it now.
        needs_allowance: bool,
    },
    /// The Node that the lock was taken for is gone, or another one has its name: the request gives
    /// up.
    NodeGone { why: String },
    /// The host is a Node by now, and the Lease's record names none: the request begins again, so that
    /// the record tells everybody whose cordon it is.
    NodeAppeared { why: String },
    /// Somebody uncordoned the Node: the request gives up.
    Vetoed { why: String },
    /// Drain, and watch that nobody takes away the lock or the cordon.
    Drain {
        /// Whether the policy can stop it. It cannot after an earlier request of the host was told
        /// that it holds: that host may reboot at any moment, whatever the policy says by now.
        needs_allowance: bool,
    },
    /// The remediator is fencing the Node's machine: no more pods are evicted, cordon and lock
    /// stay, and the client is not told that it holds. The request goes on when the fencing is
    /// over.
    Fenced { why: String },
    /// Record on the Lease that the client may be told; then tell the client.
    Answer {
        lease: Box<ObservedLease>,
        record: Box<LockRecord>,
    },
}

/// Decides the next step of a request whose id is on a Lease.
pub fn decide_hold(seen: &HoldSnapshot<'_>, now: Timestamp) -> HoldStep {
    let Some((lease, record)) = find_own_lease(seen) else {
        return step_without_lease(seen);
    };
    if let Some(why) = describe_node_gone(seen, record) {
        return HoldStep::NodeGone { why };
    }
    if let Some(node) = seen.node.filter(|_| record.node.is_none()) {
        let why = format!("the host has become node {}", node.seen.name);
        return HoldStep::NodeAppeared { why };
    }
    if let Some(why) = seen
        .node
        .and_then(|node| describe_node_conflict(seen, node))
    {
        return HoldStep::Refuse { why };
    }
    if !seen.may_go && !has_gone_ahead(seen, record) {
        match step_by_verdict(seen, lease) {
            None => {}
            Some(step) => return step,
        }
    }
    if let Some(node) = seen.node {
        let needs_allowance = !record.runs.iter().any(is_run_answered);
        match cordon_state(seen, node, lease) {
            CordonState::Ours => {
                if let Some(why) = describe_fencing(&node.seen) {
                    return HoldStep::Fenced { why };
                }
            }
            CordonState::Undone => {
                return HoldStep::Vetoed {
                    why: describe_veto(node),
                };
            }
            CordonState::NotYet => {
                if let Some(why) = describe_fencing(&node.seen) {
                    return HoldStep::Refuse { why };
                }
                let write = node.build_cordon(&lease.name, seen.run, now);
                return HoldStep::Cordon {
                    write,
                    needs_allowance: needs_allowance && node.lock == ParsedAnnotation::Absent,
                };
            }
        }
        if !seen.drained {
            return HoldStep::Drain { needs_allowance };
        }
    }
    let record = mark_request_answered(record, seen.run).expect("its id is written there");
    HoldStep::Answer {
        lease: Box::new(lease.clone()),
        record: Box::new(record),
    }
}

/// A Node that was deleted took its pods with it unobserved, and may come back uncordoned: a
/// request that was not answered yet is not told that it holds. An answered one keeps the lock,
/// whatever happens to its Node.
fn describe_node_gone(seen: &HoldSnapshot<'_>, record: &LockRecord) -> Option<String> {
    let (name, uid) = record.node.as_ref().zip(record.node_uid.as_ref())?;
    if record.runs.iter().any(is_run_answered) {
        return None;
    }
    match seen.node {
        Some(node) if node.seen.uid == *uid => None,
        Some(_) => Some(format!(
            "node {name} was deleted and created again before it was drained; send the request again"
        )),
        None => Some(format!(
            "node {name} was deleted before it was drained; send the request again when the node is back"
        )),
    }
}

fn step_without_lease(seen: &HoldSnapshot<'_>) -> HoldStep {
    let holder = seen.holder;
    let mut leases = seen.leases.iter();
    if leases.all(|lease| lease.holder.as_ref() != Some(holder)) {
        return HoldStep::Lost;
    }
    HoldStep::Unlocked {
        why: format!(
            "{holder} was unlocked while this request was under way, so the request ends; if the host still needs the lock, send it again"
        ),
    }
}

/// The Lease of this host whose record names the run.
fn find_own_lease<'a>(seen: &HoldSnapshot<'a>) -> Option<(&'a ObservedLease, &'a LockRecord)> {
    let ours = |run: &RunId| run == seen.run || *run == answered_run_id(seen.run);
    let mut mine = seen
        .leases
        .iter()
        .filter(|lease| lease.holder.as_ref() == Some(seen.holder));
    mine.find_map(|lease| {
        let record = lease.record.as_ref()?;
        record.runs.iter().any(ours).then_some((lease, record))
    })
}

/// Why the Node is taken: by its own coordinator, or by another host that is the same Node.
fn describe_node_conflict(seen: &HoldSnapshot<'_>, node: &ApiNode) -> Option<String> {
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
                "node {name} is already locked by {holder} (Lease {})",
                lease.name
            )
        })
    };
    describe_refusal(&node.seen).or_else(other)
}

/// Whether an earlier request of the same hold was counted and went ahead: it was answered, or it
/// has cordoned.
fn has_gone_ahead(seen: &HoldSnapshot<'_>, record: &LockRecord) -> bool {
    let told = record.runs.iter().any(is_run_answered);
    let cordoned = || {
        let node = seen.node?;
        let lock = node.lock.get().filter(|_| node.seen.unschedulable)?;
        let relies = |run: &RunId| *run == lock.run || *run == answered_run_id(&lock.run);
        record.runs.iter().any(relies).then_some(())
    };
    told || cordoned().is_some()
}

fn step_by_verdict(seen: &HoldSnapshot<'_>, lease: &ObservedLease) -> Option<HoldStep> {
    let count = |why| HoldStep::Count {
        lease: Box::new(lease.clone()),
        why,
    };
    match seen.verdict.clone() {
        None | Some(BudgetVerdict::StaleCount) => Some(count(None)),
        Some(BudgetVerdict::Go) => None,
        Some(BudgetVerdict::YieldOverBudget { why }) => Some(HoldStep::OverBudget { why }),
        Some(BudgetVerdict::WaitForHigherSlot { why }) => Some(count(Some(why))),
    }
}

enum CordonState {
    /// This request has cordoned the Node, and the cordon is still there.
    Ours,
    /// This request has to write the cordon itself, even if an earlier request did: if that request
    /// is leaving, its uncordon must fail.
    NotYet,
    /// This request had cordoned the Node, and somebody undid it.
    Undone,
}

fn cordon_state(seen: &HoldSnapshot<'_>, node: &ApiNode, lease: &ObservedLease) -> CordonState {
    let lock = node.lock.get().filter(|_| node.seen.unschedulable);
    let lock = lock.filter(|lock| lock.lease == lease.name);
    match lock {
        Some(lock) if seen.has_closed || lock.run == *seen.run => CordonState::Ours,
        None if seen.has_closed => CordonState::Undone,
        Some(_) | None => CordonState::NotYet,
    }
}

fn describe_veto(node: &ApiNode) -> String {
    let name = &node.seen.name;
    if node.seen.unschedulable {
        format!(
            "somebody removed annotation dogwatch.dev/api-lock from node {name}: that is a veto"
        )
    } else {
        format!("somebody uncordoned node {name}: that is a veto")
    }
}

#[cfg(test)]
mod tests;

//! Finds out whether a held lock still has a holder that will release it. Source: specification
//! §2.2.

use crate::lock::{self, HolderNode, HolderReads, MIN_HOLDER_READ_INTERVAL, ObservedLease};
use crate::reboot::{ObservedNode, ParsedAnnotation};

/// The result of a fresh read of the holder's Node.
#[derive(Debug, Clone, PartialEq)]
pub enum ObservedHolder {
    There(Box<ObservedNode>),
    /// There is no Node of that name.
    Gone,
}

impl ObservedHolder {
    fn as_evidence(&self) -> HolderNode {
        match self {
            ObservedHolder::There(node) => HolderNode::There {
                uid: node.uid.clone(),
            },
            ObservedHolder::Gone => HolderNode::Gone,
        }
    }

    fn node_if_present(&self) -> Option<&ObservedNode> {
        match self {
            ObservedHolder::There(node) => Some(node),
            ObservedHolder::Gone => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HolderStatus {
    /// The holder provably no longer exists: anybody may free the lock.
    Nobody { evidence: String },
    /// The holder may still exist.
    Somebody {
        /// What is known of the holder.
        what: String,
        /// How to get the lock released in an orderly way.
        instead: String,
    },
}

/// Judges a held Lease by two fresh reads of the Node that it stands for, made
/// [`MIN_HOLDER_READ_INTERVAL`] apart; `None` if its holder names no Node. Accepts what
/// coordinators accept as proof, and in addition a Node of the right UID with no reboot under way: its record is
/// written before the first bid and removed after the release. The caller's write must rely on the
/// Lease's version from before the first read: a coordinator that begins in between writes its run
/// onto the Lease first.
pub fn judge_holder(
    lease: &ObservedLease,
    reads: Option<(&ObservedHolder, &ObservedHolder)>,
) -> HolderStatus {
    let Some((first, second)) = reads else {
        return judge_without_node(lease);
    };
    let reads = HolderReads {
        nodes: [first.as_evidence(), second.as_evidence()],
        apart: MIN_HOLDER_READ_INTERVAL,
    };
    if let Some(evidence) = lock::find_break_evidence(lease, &reads) {
        return HolderStatus::Nobody {
            evidence: evidence.to_string(),
        };
    }
    match (first.node_if_present(), second.node_if_present()) {
        (Some(first), Some(second)) if first.uid == second.uid => {
            judge_present_node(lease, first, second)
        }
        (Some(_) | None, _) => HolderStatus::Somebody {
            what: "its Node has just been created or deleted".into(),
            instead: "run this command again in a moment".into(),
        },
    }
}

fn judge_without_node(lease: &ObservedLease) -> HolderStatus {
    let holder = lease.holder.as_ref().map_or("", |holder| holder.as_str());
    let instead = match holder.split_once('/') {
        Some(("api", host)) => {
            format!(
                "the caller that locked {host} must unlock it: POST /api/v1/unlock with hostname={host}"
            )
        }
        Some(("fleetlock", _)) => {
            "its host unlocks it after its reboot: POST /v1/steady-state".into()
        }
        Some(_) | None => "ask the person or program that took it".into(),
    };
    HolderStatus::Somebody {
        what:
            "its holder is not a Node that could be read, so nothing proves that the holder is done"
                .into(),
        instead,
    }
}

fn judge_present_node(
    lease: &ObservedLease,
    first: &ObservedNode,
    second: &ObservedNode,
) -> HolderStatus {
    let name = &second.name;
    if let Some(record) = second.record.get().or(first.record.get()) {
        return HolderStatus::Somebody {
            what: format!("Node {name} is {}", record.phase.as_str()),
            instead: format!(
                "dogwatch explain {name}; to stop its reboot and free the lock: dogwatch abort {name}"
            ),
        };
    }
    let unreadable = [first, second]
        .iter()
        .any(|node| node.record != ParsedAnnotation::Absent);
    if unreadable {
        return HolderStatus::Somebody {
            what: format!("the record on Node {name} cannot be read"),
            instead: "repair annotation dogwatch.dev/reboot, or remove it".into(),
        };
    }
    if first.api_lock || second.api_lock {
        return HolderStatus::Somebody {
            what: format!("the lock API has taken Node {name} out of service"),
            instead: format!(
                "the caller that locked it must unlock it: POST /api/v1/unlock with hostname={name}"
            ),
        };
    }
    let Some(record) = &lease.record else {
        return HolderStatus::Somebody {
            what: "its record cannot be read, so it is unknown for which Node object of that name the lock was taken"
                .into(),
            instead: format!("look at the log of the coordinator on {name}"),
        };
    };
    if let Some(run) = record
        .runs
        .iter()
        .find(|run| !run.as_str().starts_with("coordinator/"))
    {
        return HolderStatus::Somebody {
            what: format!("{run} still uses it"),
            instead: "the caller that locked it must unlock it".into(),
        };
    }
    HolderStatus::Nobody {
        evidence: format!("Node {name} has no reboot under way (two reads)"),
    }
}

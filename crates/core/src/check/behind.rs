//! Whether there is anybody behind a held lock. Source: specification §2.2.

use crate::lock::{self, BETWEEN_HOLDER_READS, HolderNode, HolderReads, LeaseSeen};
use crate::reboot::{NodeSeen, Parsed};

/// What a fresh read of the holder's Node found.
#[derive(Debug, Clone, PartialEq)]
pub enum HolderFound {
    /// It is there.
    There(Box<NodeSeen>),
    /// There is no Node of that name.
    Gone,
}

impl HolderFound {
    fn for_evidence(&self) -> HolderNode {
        match self {
            HolderFound::There(node) => HolderNode::There {
                uid: node.uid.clone(),
            },
            HolderFound::Gone => HolderNode::Gone,
        }
    }

    fn node(&self) -> Option<&NodeSeen> {
        match self {
            HolderFound::There(node) => Some(node),
            HolderFound::Gone => None,
        }
    }
}

/// Who is behind a held lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behind {
    /// Provably nobody: anybody may free it.
    Nobody {
        /// The proof.
        evidence: String,
    },
    /// Somebody, as far as anybody can tell.
    Somebody {
        /// What is known of them.
        what: String,
        /// What gets the lock free in an orderly way.
        instead: String,
    },
}

/// Judges a held Lease by two fresh reads of the Node that it stands for, made
/// [`BETWEEN_HOLDER_READS`] apart; none
/// where its holder names no Node. What coordinators take for proof is proof here; and so is a Node
/// of the right UID with no reboot under way: its record is written before the first bid and
/// removed after the release. The caller's write must rely on the Lease's version from before the
/// first read: a coordinator that begins in between writes its run onto the Lease first.
pub fn behind(lease: &LeaseSeen, reads: Option<(&HolderFound, &HolderFound)>) -> Behind {
    let Some((first, second)) = reads else {
        return no_node(lease);
    };
    let reads = HolderReads {
        nodes: [first.for_evidence(), second.for_evidence()],
        apart: BETWEEN_HOLDER_READS,
    };
    if let Some(evidence) = lock::broken_by(lease, &reads) {
        return Behind::Nobody {
            evidence: evidence.to_string(),
        };
    }
    match (first.node(), second.node()) {
        (Some(first), Some(second)) if first.uid == second.uid => there(lease, first, second),
        (Some(_) | None, _) => Behind::Somebody {
            what: "its Node has just come or gone".into(),
            instead: "look again in a moment".into(),
        },
    }
}

fn no_node(lease: &LeaseSeen) -> Behind {
    let holder = lease.holder.as_ref().map_or("", |holder| holder.as_str());
    let instead = match holder.split_once('/') {
        Some(("api", host)) => {
            format!("whoever locked {host} unlocks it: POST /api/v1/unlock with hostname={host}")
        }
        Some(("fleetlock", _)) => {
            "its host unlocks it when it is up again: POST /v1/steady-state".into()
        }
        Some(_) | None => "ask whoever took it".into(),
    };
    Behind::Somebody {
        what:
            "its holder is no Node that could be looked at, so nothing here proves that it is done"
                .into(),
        instead,
    }
}

fn there(lease: &LeaseSeen, first: &NodeSeen, second: &NodeSeen) -> Behind {
    let name = &second.name;
    if let Some(record) = second.record.get().or(first.record.get()) {
        return Behind::Somebody {
            what: format!("Node {name} is {}", record.phase.as_str()),
            instead: format!(
                "dogwatch explain {name}; to stop its reboot and free the lock: dogwatch abort {name}"
            ),
        };
    }
    let unreadable = [first, second]
        .iter()
        .any(|node| node.record != Parsed::Absent);
    if unreadable {
        return Behind::Somebody {
            what: format!("the record on Node {name} cannot be read"),
            instead: "mend annotation dogwatch.dev/reboot, or remove it".into(),
        };
    }
    if first.api_lock || second.api_lock {
        return Behind::Somebody {
            what: format!("the lock API has taken Node {name} out of service"),
            instead: format!(
                "whoever locked it unlocks it: POST /api/v1/unlock with hostname={name}"
            ),
        };
    }
    let Some(record) = &lease.record else {
        return Behind::Somebody {
            what: "its record cannot be read, so nobody knows for which incarnation of the Node it was taken".into(),
            instead: format!("look at the log of the coordinator on {name}"),
        };
    };
    if let Some(run) = record
        .runs
        .iter()
        .find(|run| !run.as_str().starts_with("coordinator/"))
    {
        return Behind::Somebody {
            what: format!("{run} relies on it"),
            instead: "whoever locked it unlocks it".into(),
        };
    }
    Behind::Nobody {
        evidence: format!("Node {name} has no reboot under way (two reads)"),
    }
}

//! The evidence on which a lock is broken. A clock is never evidence.

use std::fmt;
use std::time::Duration;

use super::{HolderId, HolderNode, LockRecord, ObservedLease};
use crate::name::NodeName;

/// The minimum time between two reads of a holder's Node, whoever makes them: one wrong answer must
/// not be believed twice. Source: specification §2.2.
pub const MIN_HOLDER_READ_INTERVAL: Duration = Duration::from_secs(1);

/// Two fresh reads of a holder's Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderReads {
    /// The two results, the first one first.
    pub nodes: [HolderNode; 2],
    /// From the answer of the first to the request of the second, by the reader's monotonic clock.
    pub apart: Duration,
}

/// Why nobody relies on a held lock any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BreakEvidence {
    /// There is no Node of the holder's name.
    NodeGone { node: NodeName },
    /// The Node of that name is not the one that the lock was taken for.
    OtherNode {
        node: NodeName,
        /// The UID that the lock was taken for.
        held_for: String,
        /// The UID of the present Node.
        found: String,
    },
}

impl fmt::Display for BreakEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BreakEvidence::NodeGone { node } => write!(f, "Node {node} does not exist (two reads)"),
            BreakEvidence::OtherNode {
                node,
                held_for,
                found,
            } => {
                write!(
                    f,
                    "Node {node} has UID {found}, the lock was taken for {held_for} (two reads)"
                )
            }
        }
    }
}

/// The Node that a held Lease stands for, if any waiter may judge it: the record's Node if it
/// agrees with the holder, otherwise the Node in the holder's name. `None` for a free Lease, a
/// holder with another prefix, and a hashed name without a record.
pub fn holder_node_name(lease: &ObservedLease) -> Option<NodeName> {
    let holder = lease.holder.as_ref().filter(|holder| holder.is_node())?;
    match record_of_holder_node(lease) {
        Some(record) => record.node.clone(),
        None if holder.is_hashed() => None,
        None => NodeName::new(holder.as_str().strip_prefix("node/")?).ok(),
    }
}

/// The record, if it names the Node that holds the Lease.
fn record_of_holder_node(lease: &ObservedLease) -> Option<&LockRecord> {
    let holder = lease.holder.as_ref()?;
    lease.record.as_ref().filter(|record| {
        record
            .node
            .as_ref()
            .is_some_and(|name| HolderId::for_node(name) == *holder)
    })
}

/// Whether two fresh reads of the holder's Node (see [`holder_node_name`]) prove that nobody relies
/// on the lock: both must agree, and be some time apart. Without a readable UID only a missing Node
/// is evidence.
pub fn find_break_evidence(lease: &ObservedLease, reads: &HolderReads) -> Option<BreakEvidence> {
    let node = holder_node_name(lease).filter(|_| reads.apart >= MIN_HOLDER_READ_INTERVAL)?;
    match (&reads.nodes[0], &reads.nodes[1]) {
        (HolderNode::Gone, HolderNode::Gone) => Some(BreakEvidence::NodeGone { node }),
        (HolderNode::There { uid: first }, HolderNode::There { uid: second })
            if first == second =>
        {
            let held_for = record_of_holder_node(lease)?.node_uid.clone()?;
            let found = first.clone();
            (held_for != found).then_some(BreakEvidence::OtherNode {
                node,
                held_for,
                found,
            })
        }
        (HolderNode::There { .. }, HolderNode::There { .. } | HolderNode::Gone)
        | (HolderNode::Gone, HolderNode::There { .. }) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{free, held, record};
    use super::*;

    fn reads(first: &HolderNode, second: &HolderNode) -> HolderReads {
        HolderReads {
            nodes: [first.clone(), second.clone()],
            apart: MIN_HOLDER_READ_INTERVAL,
        }
    }

    #[test]
    fn two_reads_of_the_same_moment_prove_nothing() {
        let lease = held(0, "n1", &[]);
        for (millis, breaks) in [(0, false), (999, false), (1000, true)] {
            let apart = Duration::from_millis(millis);
            let reads = HolderReads {
                apart,
                ..reads(&HolderNode::Gone, &HolderNode::Gone)
            };
            assert_eq!(
                find_break_evidence(&lease, &reads).is_some(),
                breaks,
                "{millis} ms"
            );
        }
    }

    fn there(uid: &str) -> HolderNode {
        HolderNode::There { uid: uid.into() }
    }

    #[test]
    fn two_reads_that_agree_break_a_lock_and_nothing_less() {
        let lease = held(0, "n1", &[]);
        let table = [
            (HolderNode::Gone, HolderNode::Gone, true),
            (there("new"), there("new"), true),
            (there("uid-n1"), there("uid-n1"), false),
            (HolderNode::Gone, there("uid-n1"), false),
            (HolderNode::Gone, there("new"), false),
            (there("new"), HolderNode::Gone, false),
            (there("new"), there("newer"), false),
        ];
        for (first, second, breaks) in table {
            assert_eq!(
                find_break_evidence(&lease, &reads(&first, &second)).is_some(),
                breaks,
                "{first:?} {second:?}"
            );
        }
    }

    #[test]
    fn without_a_record_only_a_missing_node_is_evidence() {
        let lease = ObservedLease {
            record: None,
            ..held(0, "n1", &[])
        };
        assert_eq!(
            find_break_evidence(&lease, &reads(&there("new"), &there("new"))),
            None
        );
        assert!(
            find_break_evidence(&lease, &reads(&HolderNode::Gone, &HolderNode::Gone)).is_some()
        );
    }

    #[test]
    fn a_holder_that_is_no_node_is_never_broken_by_a_waiter() {
        for holder in ["api/host", "fleetlock/default/x", "remedy"] {
            let lease = ObservedLease {
                holder: HolderId::new(holder).ok(),
                ..held(0, "n1", &[])
            };
            assert_eq!(
                find_break_evidence(&lease, &reads(&HolderNode::Gone, &HolderNode::Gone)),
                None,
                "{holder}"
            );
        }
        assert_eq!(
            find_break_evidence(&free(0), &reads(&HolderNode::Gone, &HolderNode::Gone)),
            None
        );
    }

    #[test]
    fn a_record_of_another_node_is_not_believed() {
        let lease = ObservedLease {
            record: Some(record("n2", &[])),
            ..held(0, "n1", &[])
        };
        assert_eq!(holder_node_name(&lease).unwrap().as_str(), "n1");
        assert_eq!(
            find_break_evidence(&lease, &reads(&there("uid-n1"), &there("uid-n1"))),
            None
        );
    }

    #[test]
    fn a_hashed_holder_is_judged_by_its_record_only() {
        let long = format!("n{}", "x".repeat(200));
        let lease = held(0, &long, &[]);
        assert_eq!(holder_node_name(&lease).unwrap().as_str(), long);
        assert_eq!(
            holder_node_name(&ObservedLease {
                record: None,
                ..lease
            }),
            None
        );
    }
}

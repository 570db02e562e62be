//! On which evidence a lock is broken: never by a clock.

use std::fmt;
use std::time::Duration;

use super::{HolderId, HolderNode, LeaseSeen, LockRecord};
use crate::name::NodeName;

/// How far apart two reads of a holder's Node have to be, whoever makes them: one wrong answer must not
/// be believed twice. Source: specification §2.2.
pub const BETWEEN_HOLDER_READS: Duration = Duration::from_secs(1);

/// Two fresh reads of a holder's Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderReads {
    /// What they said, the first one first.
    pub nodes: [HolderNode; 2],
    /// From the answer of the first to the question of the second, by the reader's monotonic clock.
    pub apart: Duration,
}

/// Why a held lock has nobody behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// There is no Node of the holder's name.
    NodeGone {
        /// That name.
        node: NodeName,
    },
    /// There is one, but another one.
    OtherNode {
        /// The name.
        node: NodeName,
        /// The UID that the lock was taken for.
        held_for: String,
        /// The UID that is there now.
        found: String,
    },
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Evidence::NodeGone { node } => write!(f, "Node {node} does not exist (two reads)"),
            Evidence::OtherNode {
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

/// The Node that a held Lease stands for, if any waiter may judge it: the record's, where it agrees
/// with the holder, else the one in the holder's name. `None` for a free Lease, a holder of another
/// prefix, and a hashed name without a record.
pub fn holder_node_name(lease: &LeaseSeen) -> Option<NodeName> {
    let holder = lease.holder.as_ref().filter(|holder| holder.is_node())?;
    match own_record(lease) {
        Some(record) => record.node.clone(),
        None if holder.is_hashed() => None,
        None => NodeName::new(holder.as_str().strip_prefix("node/")?).ok(),
    }
}

/// The record, if it is of the very Node that holds.
fn own_record(lease: &LeaseSeen) -> Option<&LockRecord> {
    let holder = lease.holder.as_ref()?;
    lease.record.as_ref().filter(|record| {
        record
            .node
            .as_ref()
            .is_some_and(|name| HolderId::node(name) == *holder)
    })
}

/// Whether two fresh reads of the holder's Node (see [`holder_node_name`]) prove that the lock has
/// nobody behind it: both must say the same, and not at the same moment. Without a readable UID only a
/// missing Node proves anything.
pub fn broken_by(lease: &LeaseSeen, reads: &HolderReads) -> Option<Evidence> {
    let node = holder_node_name(lease).filter(|_| reads.apart >= BETWEEN_HOLDER_READS)?;
    match (&reads.nodes[0], &reads.nodes[1]) {
        (HolderNode::Gone, HolderNode::Gone) => Some(Evidence::NodeGone { node }),
        (HolderNode::There { uid: first }, HolderNode::There { uid: second })
            if first == second =>
        {
            let held_for = own_record(lease)?.node_uid.clone()?;
            let found = first.clone();
            (held_for != found).then_some(Evidence::OtherNode {
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
            apart: BETWEEN_HOLDER_READS,
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
            assert_eq!(broken_by(&lease, &reads).is_some(), breaks, "{millis} ms");
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
                broken_by(&lease, &reads(&first, &second)).is_some(),
                breaks,
                "{first:?} {second:?}"
            );
        }
    }

    #[test]
    fn without_a_record_only_a_missing_node_is_evidence() {
        let lease = LeaseSeen {
            record: None,
            ..held(0, "n1", &[])
        };
        assert_eq!(
            broken_by(&lease, &reads(&there("new"), &there("new"))),
            None
        );
        assert!(broken_by(&lease, &reads(&HolderNode::Gone, &HolderNode::Gone)).is_some());
    }

    #[test]
    fn a_holder_that_is_no_node_is_never_broken_by_a_waiter() {
        for holder in ["api/host", "fleetlock/default/x", "remedy"] {
            let lease = LeaseSeen {
                holder: HolderId::new(holder).ok(),
                ..held(0, "n1", &[])
            };
            assert_eq!(
                broken_by(&lease, &reads(&HolderNode::Gone, &HolderNode::Gone)),
                None,
                "{holder}"
            );
        }
        assert_eq!(
            broken_by(&free(0), &reads(&HolderNode::Gone, &HolderNode::Gone)),
            None
        );
    }

    #[test]
    fn a_record_of_another_node_is_not_believed() {
        let lease = LeaseSeen {
            record: Some(record("n2", &[])),
            ..held(0, "n1", &[])
        };
        assert_eq!(holder_node_name(&lease).unwrap().as_str(), "n1");
        assert_eq!(
            broken_by(&lease, &reads(&there("uid-n1"), &there("uid-n1"))),
            None
        );
    }

    #[test]
    fn a_hashed_holder_is_judged_by_its_record_only() {
        let long = format!("n{}", "x".repeat(200));
        let lease = held(0, &long, &[]);
        assert_eq!(holder_node_name(&lease).unwrap().as_str(), long);
        assert_eq!(
            holder_node_name(&LeaseSeen {
                record: None,
                ..lease
            }),
            None
        );
    }
}

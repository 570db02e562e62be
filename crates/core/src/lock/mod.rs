//! The rules of the cluster-wide reboot lock: one Lease per slot, taken by server-side apply.
//!
//! Source: specification §2.2. The API server refuses the second holder. This module decides who
//! bids when ([`decide_bid`]), who went over budget and gives back ([`count_unavailable`],
//! [`decide_budget`]), which runs rely on a lock ([`lock_ownership`], [`plan_release`]), which
//! waiters a releasing holder names ([`order_next_waiters`]) and on which evidence a lock is broken
//! ([`find_break_evidence`]).
//!
//! Why no group goes over budget (S1): a Lease is held from before the count until the node is
//! back, and the count is read after the Lease was won. So of two nodes, the one that won last
//! counts the other.

pub mod api_lock;
mod bid;
mod bid_turn;
mod budget;
mod evidence;
#[cfg(test)]
mod model;
mod observed_lease;
mod ownership;
mod queue_order;
mod types;

pub use bid::{decide_bid, find_held_lease};
pub use bid_turn::{BidPause, CALLED_BID_INTERVAL};
pub use budget::{
    BudgetReads, BudgetVerdict, COUNT_VALIDITY, GroupMember, HeldLockLease, RECOUNT_PAUSE,
    RemediationHold, WAIT_FOR_HIGHER_SLOT, count_unavailable, count_unavailable_for_node,
    decide_budget,
};
pub use dogwatch_api::lease::{MAX_SLOTS, parse_slot_number};
pub use evidence::{
    BreakEvidence, HolderReads, MIN_HOLDER_READ_INTERVAL, find_break_evidence, holder_node_name,
};
pub use observed_lease::merge_observed_lease;
pub use ownership::{LockOwnership, LockReleasePlan, adopt_record, lock_ownership, plan_release};
pub use queue_order::{MAX_NEXT_WAITERS, compare_waiters, order_next_waiters};
pub(crate) use types::list_holders;
pub use types::{
    BidDecision, FIELD_MANAGER_LIMIT, GroupBudget, HolderId, HolderIdTooLong, HolderNode,
    LockRecord, LockWaiter, ObservedLease, UnavailableCount, UnavailableMember,
};

/// The first 32 hexadecimal digits of the text's SHA-256, for names that would be too long.
pub fn name_digest(text: &str) -> String {
    use sha2::Digest as _;
    use std::fmt::Write as _;
    let hash = sha2::Sha256::digest(text.as_bytes());
    hash.iter()
        .take(16)
        .fold(String::new(), |mut digits, byte| {
            write!(digits, "{byte:02x}").expect("a String takes everything");
            digits
        })
}

#[cfg(test)]
pub(crate) mod testkit {
    //! Leases and records for tests.

    use super::{HolderId, LockRecord, ObservedLease};
    use crate::name::{GroupName, NodeName, RunId};

    pub(crate) fn node(name: &str) -> HolderId {
        HolderId::for_node(&NodeName::new(name).unwrap())
    }

    pub(crate) fn run(text: &str) -> RunId {
        RunId::new(text).unwrap()
    }

    pub(crate) fn free(slot: u32) -> ObservedLease {
        ObservedLease {
            name: format!("dogwatch-default-{slot}"),
            slot,
            uid: format!("uid-{slot}"),
            resource_version: "1".into(),
            holder: None,
            record: None,
            next_waiters: Vec::new(),
            yield_count: 0,
            leftover: false,
            freed_at: None,
            room_since: None,
        }
    }

    pub(crate) fn record(name: &str, runs: &[&str]) -> LockRecord {
        LockRecord {
            node: Some(NodeName::new(name).unwrap()),
            node_uid: Some(format!("uid-{name}")),
            boot_id: None,
            group: GroupName::default_group(),
            max: 1,
            since: jiff::Timestamp::UNIX_EPOCH,
            runs: runs.iter().map(|text| run(text)).collect(),
        }
    }

    pub(crate) fn held(slot: u32, name: &str, runs: &[&str]) -> ObservedLease {
        ObservedLease {
            holder: Some(node(name)),
            record: Some(record(name, runs)),
            ..free(slot)
        }
    }

    pub(crate) fn held_under_max(slot: u32, name: &str, max: u32) -> ObservedLease {
        let of_holder = record(name, &[]);
        ObservedLease {
            record: Some(LockRecord { max, ..of_holder }),
            ..held(slot, name, &[])
        }
    }
}

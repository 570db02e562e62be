//! The rules of the cluster-wide reboot lock: one Lease per slot, taken by server-side apply.
//!
//! Source: specification §2.2. The API server refuses the second holder; what is decided here is
//! who asks when ([`when_to_bid`]), who went over budget and gives back ([`count`], [`verdict`]),
//! which runs rely on a lock ([`standing`], [`release_plan`]), whom a leaver calls ([`hint`]) and on
//! which evidence a lock is broken ([`broken_by`]).
//!
//! Why nobody goes over budget (S1): a Lease is held from before the count until after the node is
//! back, and the count is read after the Lease was won. So of two nodes, the one that won last
//! counts the other.

pub mod api_lock;
mod bid;
mod budget;
mod evidence;
mod hint;
#[cfg(test)]
mod model;
mod run;
mod seen;
mod types;

pub use bid::{
    GIVE_BACK_LONGEST, GIVE_BACK_SHORTEST, HINT_STEP, give_back_pause, held_by, when_to_bid,
};
pub use budget::{
    HeldSeen, NodeRow, RECOUNT_PAUSE, Reads, RemediationHeld, Verdict, WAIT_FOR_HIGHER_SLOT, count,
    count_for, verdict,
};
pub use evidence::{BETWEEN_HOLDER_READS, Evidence, HolderReads, broken_by, holder_node_name};
pub use hint::{HINT_LENGTH, hint};
pub use run::{Release, Standing, adopted, release_plan, standing};
pub use seen::seen_again;
pub use types::{
    Bid, Budget, Count, FIELD_MANAGER_LIMIT, HolderId, HolderNode, LeaseSeen, LockRecord,
    NameTooLong, Unavailable, Waiter,
};

/// How many slots a group can have: their numbers are below this.
pub const SLOTS: u32 = 1000;

/// The number of a slot as it stands in its Lease's name. There is one way to write it: a second one would
/// be a second Lease for the same slot. Source: specification §6.
pub fn slot_number(text: &str) -> Option<u32> {
    let canonical = text == "0" || !text.starts_with('0');
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number: u32 = text.parse().ok().filter(|_| canonical && digits)?;
    (number < SLOTS).then_some(number)
}

/// The first 32 hexadecimal digits of the text's SHA-256, for names that would be too long.
pub fn digest(text: &str) -> String {
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
    //! Leases and records for tables.

    use super::{HolderId, LeaseSeen, LockRecord};
    use crate::name::{GroupName, NodeName, RunId};

    pub(crate) fn node(name: &str) -> HolderId {
        HolderId::node(&NodeName::new(name).unwrap())
    }

    pub(crate) fn run(text: &str) -> RunId {
        RunId::new(text).unwrap()
    }

    pub(crate) fn free(slot: u32) -> LeaseSeen {
        LeaseSeen {
            name: format!("dogwatch-default-{slot}"),
            slot,
            uid: format!("uid-{slot}"),
            resource_version: "1".into(),
            holder: None,
            record: None,
            hint: Vec::new(),
            given_back: 0,
            leftover: false,
            freed_at: None,
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

    pub(crate) fn held(slot: u32, name: &str, runs: &[&str]) -> LeaseSeen {
        LeaseSeen {
            holder: Some(node(name)),
            record: Some(record(name, runs)),
            ..free(slot)
        }
    }
}

//! What is seen of the lock, and the words of its rules.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::name::{BootId, GroupName, NodeName, RunId};

/// The longest field manager that an API server accepts, in bytes. Measured: 129 is answered 422.
pub const FIELD_MANAGER_LIMIT: usize = 128;

/// Who holds or asks for a lock. It is also the field manager of every write to the Lease.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HolderId(String);

/// A holder's identity that is too long and was not hashed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("holder identity is longer than {FIELD_MANAGER_LIMIT} bytes or empty")]
pub struct NameTooLong;

impl HolderId {
    /// The identity as a Lease shows it. Foreign ones are accepted as they are, up to the limit.
    pub fn new(text: impl Into<String>) -> Result<Self, NameTooLong> {
        let text = text.into();
        if text.is_empty() || text.len() > FIELD_MANAGER_LIMIT {
            return Err(NameTooLong);
        }
        Ok(Self(text))
    }

    /// `node/NAME`; the name is replaced by a hash of it where it would pass the limit.
    pub fn node(name: &NodeName) -> Self {
        let plain = format!("node/{name}");
        if plain.len() <= FIELD_MANAGER_LIMIT {
            return Self(plain);
        }
        Self(format!("node/sha256-{}", super::digest(name.as_str())))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the name in it was replaced by its hash, and can only be read from the record.
    pub fn is_hashed(&self) -> bool {
        self.0
            .strip_prefix("node/sha256-")
            .is_some_and(|rest| rest.len() == 32)
    }

    /// Whether this is a node's coordinator (prefix `node/`).
    pub fn is_node(&self) -> bool {
        self.0.starts_with("node/")
    }
}

impl TryFrom<String> for HolderId {
    type Error = NameTooLong;
    fn try_from(text: String) -> Result<Self, NameTooLong> {
        Self::new(text)
    }
}

impl From<HolderId> for String {
    fn from(holder: HolderId) -> String {
        holder.0
    }
}

impl fmt::Display for HolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One slot's Lease, as last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseSeen {
    /// `dogwatch-GROUP-SLOT`.
    pub name: String,
    /// The slot's number, from 0.
    pub slot: u32,
    /// The object's UID: a bid for another incarnation must fail.
    pub uid: String,
    /// What every bid and release carries, so that no late duplicate does anything.
    pub resource_version: String,
    /// Who holds it; `None` is free.
    pub holder: Option<HolderId>,
    /// The holder's record. `None` while free, or where it cannot be read.
    pub record: Option<LockRecord>,
    /// Who was called by the one who left, first one first.
    pub hint: Vec<HolderId>,
    /// How many winners in a row found the group over budget and gave it back. 0: the last holder
    /// was done with it. While it counts up, everybody backs off together.
    pub given_back: u32,
    /// It is free, and yet fields of an older holder were left behind (half a release, a person's
    /// patch): they would refuse every bid, so the bidder clears them first.
    pub leftover: bool,
    /// When this process saw it change from held to free. `None`: it was free when first seen, or
    /// is held. A newcomer bids at once, one who waited goes by the hint.
    pub freed_at: Option<Duration>,
}

/// What stands beside the holder on the Lease (annotations of the holder's own field manager).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockRecord {
    /// The Node that is held for; absent for a host that is none.
    pub node: Option<NodeName>,
    /// Its UID: another Node of the same name is another Node.
    pub node_uid: Option<String>,
    /// The boot in which the lock was taken.
    pub boot_id: Option<BootId>,
    /// The group it was taken for.
    pub group: GroupName,
    /// The holder's own maximum; the smallest among bidder and holders rules.
    pub max: u32,
    /// Since when it is held, by the holder's clock. For people; nothing is decided by it.
    pub since: Timestamp,
    /// Everything of this holder that relies on the lock. The last one out frees.
    pub runs: Vec<RunId>,
}

/// When to ask for which slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bid {
    /// Ask for this Lease now.
    Now {
        /// Which.
        lease: LeaseSeen,
    },
    /// Ask at this monotonic moment, if nobody was seen to take it before.
    Later {
        /// When.
        at: Duration,
        /// Which.
        lease: LeaseSeen,
    },
    /// Every slot is held by somebody else.
    AllHeld,
}

/// How many may be out at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The bidder's own maximum, already resolved from a percentage; at least 1.
    pub max: u32,
}

/// Who counts as unavailable among the **other** members of the group, by reads that were sent
/// after the lock was won.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    /// The `resource_version` of our own Lease at the time the reads were sent: a count taken for
    /// an earlier win proves nothing.
    pub for_resource_version: String,
    /// Everybody else who is out, with the reason.
    pub unavailable: Vec<Unavailable>,
    /// How many members the group has, this node among them and ignored ones not.
    pub members: u32,
    /// The maxima of the other holders in the group. One whose record cannot be read counts as 1.
    pub maxima: Vec<u32>,
    /// Whether a holder of a higher slot of this group has not cordoned its node yet: it gives
    /// back before us.
    pub higher_slot_undecided: bool,
}

/// One node that is out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unavailable {
    /// Its name (or the holder, where it is no Node).
    pub name: String,
    /// `not ready`, `unschedulable`, or `holds LEASE`.
    pub why: String,
}

/// What two fresh reads say about a holder's Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HolderNode {
    /// It is there, with this UID.
    There {
        /// `metadata.uid`.
        uid: String,
    },
    /// There is no Node of that name.
    Gone,
}

/// A node that waits, as the leaver sees it when it makes the hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    /// Who would bid.
    pub holder: HolderId,
    /// Control-plane nodes go last.
    pub control_plane: bool,
    /// Its zone, where the group goes one zone after the other.
    pub zone: Option<String>,
    /// Since when it waits (its own record); unreadable ones go after all others of their kind.
    pub since: Option<Timestamp>,
}

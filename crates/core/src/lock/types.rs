//! The types of the lock: observed Leases, records, counts and decisions.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::name::{BootId, GroupName, NodeName, RunId};

/// The longest field manager that an API server accepts, in bytes. Measured: 129 is answered 422.
pub const FIELD_MANAGER_LIMIT: usize = 128;

/// The identity that holds or asks for a lock. It is also the field manager of every write to the
/// Lease.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HolderId(String);

/// The identity of a holder is empty or too long, and was not hashed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("holder identity is longer than {FIELD_MANAGER_LIMIT} bytes or empty")]
pub struct HolderIdTooLong;

impl HolderId {
    /// Takes an identity from a Lease. Foreign ones are accepted as they are, up to the limit.
    pub fn new(text: impl Into<String>) -> Result<Self, HolderIdTooLong> {
        let text = text.into();
        if text.is_empty() || text.len() > FIELD_MANAGER_LIMIT {
            return Err(HolderIdTooLong);
        }
        Ok(Self(text))
    }

    /// The identity of the Node that a Lease is held for; without a Node, its holder.
    pub(super) fn of_node_or(node: Option<&NodeName>, holder: &Self) -> Self {
        node.map_or_else(|| holder.clone(), Self::for_node)
    }

    /// `node/NAME`; the name is replaced by its hash if the identity would be too long.
    pub fn for_node(name: &NodeName) -> Self {
        let plain = format!("node/{name}");
        if plain.len() <= FIELD_MANAGER_LIMIT {
            return Self(plain);
        }
        Self(format!("node/sha256-{}", super::name_digest(name.as_str())))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the name was replaced by its hash: then only the record tells the name.
    pub fn is_hashed(&self) -> bool {
        self.0
            .strip_prefix("node/sha256-")
            .is_some_and(|rest| rest.len() == 32)
    }

    /// Whether it belongs to a node's coordinator (prefix `node/`).
    pub fn is_node(&self) -> bool {
        self.0.starts_with("node/")
    }
}

impl TryFrom<String> for HolderId {
    type Error = HolderIdTooLong;
    fn try_from(text: String) -> Result<Self, HolderIdTooLong> {
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

/// The Lease of one slot, as last observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedLease {
    /// `dogwatch-GROUP-SLOT`.
    pub name: String,
    /// The slot's number, from 0.
    pub slot: u32,
    /// A bid for another object of the same name must fail.
    pub uid: String,
    /// The precondition of every bid and release, so that a late duplicate has no effect.
    pub resource_version: String,
    pub holder: Option<HolderId>,
    /// The holder's record. `None` while free, or if it cannot be read.
    pub record: Option<LockRecord>,
    /// The waiters that the last holder named on release, first one first.
    pub next_waiters: Vec<HolderId>,
    /// How many winners in a row found the group over budget and gave the Lease back. 0: the last
    /// holder was done with it. While it counts up, all waiters back off together.
    pub yield_count: u32,
    /// The Lease is free, but fields of an older holder were left behind (half a release, a
    /// person's patch): they would refuse every bid, so the bidder clears them first.
    pub leftover: bool,
    /// When this process saw it change from held to free. `None`: it was free when first observed,
    /// or is held. A new waiter bids at once, one that has waited bids in the order of
    /// `next_waiters`.
    pub freed_at: Option<Duration>,
    /// When this process last saw its holder make room for another one: by a release that was not
    /// over budget (even if the Lease is held again since), or by a higher maximum in its record.
    /// `None`: not seen.
    pub room_since: Option<Duration>,
}

impl ObservedLease {
    /// The identity of the Node that the Lease is held for; without a Node, the holder.
    pub fn effective_holder(&self) -> Option<HolderId> {
        let node = self.record.as_ref().and_then(|record| record.node.as_ref());
        Some(HolderId::of_node_or(node, self.holder.as_ref()?))
    }
}

/// `LEASE by HOLDER` of each held Lease, for messages; empty if none is held.
pub(crate) fn list_holders(leases: &[ObservedLease]) -> String {
    let held =
        |lease: &ObservedLease| Some(format!("{} by {}", lease.name, lease.holder.as_ref()?));
    let held: Vec<String> = leases.iter().filter_map(held).collect();
    held.join(", ")
}

/// The annotations beside the holder on the Lease (owned by the holder's field manager).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockRecord {
    /// The Node that the Lease is held for; absent for a host that is no Node.
    pub node: Option<NodeName>,
    /// The Node's UID: another Node of the same name is another Node.
    pub node_uid: Option<String>,
    /// The boot in which the lock was taken.
    pub boot_id: Option<BootId>,
    /// The group that the lock was taken for.
    pub group: GroupName,
    /// The holder's own maximum; the smallest among bidder and holders applies.
    pub max: u32,
    /// Since when it is held, by the holder's clock. For people; nothing is decided by it.
    pub since: Timestamp,
    /// All runs of this holder that rely on the lock. The last one frees it.
    pub runs: Vec<RunId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BidDecision {
    Now {
        lease: ObservedLease,
    },
    /// Bid at this monotonic moment, unless somebody is seen to take the Lease before.
    Later {
        at: Duration,
        lease: ObservedLease,
    },
    /// Every slot is held by somebody else.
    AllHeld,
    /// A slot is free, but as many others hold one as the smallest maximum among the bidder and them
    /// allows.
    MaxReached {
        max: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupBudget {
    /// The bidder's own maximum, already computed from a percentage; at least 1.
    pub max: u32,
}

/// The unavailable **other** members of the group, by reads that were sent after the lock was won.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnavailableCount {
    /// The `resource_version` of the bidder's own Lease when the reads were sent: a count for an
    /// earlier win proves nothing.
    pub for_resource_version: String,
    pub unavailable: Vec<UnavailableMember>,
    /// The number of members of the group, with this node and without ignored ones.
    pub members: u32,
    /// The maxima of the other holders in the group. An unreadable record counts as 1.
    pub maxima: Vec<u32>,
    /// Whether a holder of a higher slot of this group has not cordoned its node yet: that holder
    /// gives back first.
    pub higher_slot_undecided: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnavailableMember {
    /// The member's name (or the holder, if it is no Node).
    pub name: String,
    /// `not ready`, `unschedulable`, or `holds LEASE`.
    pub why: String,
}

/// A holder's Node as one fresh read shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HolderNode {
    There { uid: String },
    Gone,
}

/// A waiting node, as the releasing holder observes it when it names the next ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockWaiter {
    pub holder: HolderId,
    /// Control-plane nodes go last.
    pub control_plane: bool,
    /// Its zone, if the group goes one zone after the other.
    pub zone: Option<String>,
    /// Since when it waits (by its own record). `None`: unreadable; it goes after all others of its
    /// kind.
    pub since: Option<Timestamp>,
}

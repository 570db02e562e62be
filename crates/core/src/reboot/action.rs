//! What a node's coordinator may do, and look at, as data.

use std::time::Duration;

use super::record::{LastReboot, Record};
use crate::lock::{LeaseSeen, LockRecord};
use crate::name::GroupName;
use crate::policy::{Gate, ReturnGate};
use crate::selector::LabelSelector;

/// One write. The loop performs a decision's actions in order and stops at the first that fails.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// One conditional patch of our own Node.
    PatchNode(Box<NodePatch>),
    /// Ask for the lock: server-side apply, never forced. Also takes it over from an older run of
    /// ourselves.
    Bid {
        /// The Lease as it was seen; uid and resourceVersion go with the bid.
        lease: Box<LeaseSeen>,
        /// What to write beside the holder.
        record: Box<LockRecord>,
    },
    /// Give the lock up.
    Release {
        /// The Lease as it was seen.
        lease: Box<LeaseSeen>,
        /// Whether this is a give-back over budget (then back off before the next bid).
        over_budget: bool,
    },
    /// Clear a lock whose holder is proved gone.
    Break {
        /// The Lease as it was seen.
        lease: Box<LeaseSeen>,
        /// The proof, in words.
        evidence: String,
    },
    /// Start the reboot command.
    Reboot {
        /// For which attempt.
        attempt: u32,
    },
    /// A newer run of this coordinator has taken over: stop acting.
    Stop {
        /// Who.
        by: String,
    },
}

/// One conditional patch of our own Node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodePatch {
    /// The precondition.
    pub resource_version: String,
    /// `spec.unschedulable`, if it changes.
    pub unschedulable: Option<bool>,
    /// The record.
    pub record: RecordChange,
    /// Label `dogwatch.dev/reboot=waiting`: set, removed, or left.
    pub waiting_label: Option<bool>,
    /// Annotation `dogwatch.dev/last-reboot`, if it is written.
    pub last: Option<LastReboot>,
    /// Remove `dogwatch.dev/reboot-requested`: it was served.
    pub remove_request: bool,
    /// Remove `dogwatch.dev/abort-requested`: it was served.
    pub remove_abort: bool,
}

/// What happens to the record.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "always inside a patch, which is boxed"
)]
pub enum RecordChange {
    /// It is written.
    Set(Record),
    /// It is removed.
    Remove,
}

/// Facts a decision wants kept fresh.
#[derive(Debug, Clone, PartialEq)]
pub enum Look {
    /// The slots of a group: made where missing, listed, watched.
    Locks {
        /// Which group: that of the lock we hold, else that of the Node.
        group: GroupName,
        /// How many slots there should be.
        slots: u32,
    },
    /// How many members the group has.
    GroupSize {
        /// Which group.
        group: GroupName,
    },
    /// The budget, by reads sent after `newer_than`, for our Lease at its version.
    Count {
        /// Our Lease, as it was won.
        lease: Box<LeaseSeen>,
        /// An older count will not do.
        newer_than: Duration,
    },
    /// The Node that somebody else holds a Lease for, read twice afresh.
    Holder {
        /// The Lease.
        lease: Box<LeaseSeen>,
    },
    /// The drain: evicting while it is looked at.
    Drain {
        /// Delete instead of evict.
        delete: bool,
        /// Pods that stay.
        exclude: Option<LabelSelector>,
    },
    /// The gates that the policy puts before a reboot; asked again as long as they are looked at.
    StartGates {
        /// Which.
        gates: Vec<Gate>,
    },
    /// VolumeAttachments of the drained pods.
    Attachments {
        /// The pods' claims, `namespace/name`.
        claims: Vec<String>,
    },
    /// The return gates.
    Gates {
        /// Which of them.
        gates: Vec<ReturnGate>,
        /// Budgets that covered the drained pods, `namespace/name`.
        budgets: Vec<String>,
    },
}

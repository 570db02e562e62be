//! What a node's coordinator may do and observe, as data.

use std::time::Duration;

use super::record::{LastReboot, RebootRecord};
use crate::drain::PodRules;
use crate::lock::{LockRecord, ObservedLease};
use crate::name::GroupName;
use crate::policy::{PolicyGate, ReturnGate};

/// One write. The loop performs a decision's actions in order and stops at the first that fails.
#[derive(Debug, Clone, PartialEq)]
pub enum RebootAction {
    PatchNode(Box<NodePatch>),
    /// Bid for the lock: server-side apply, never forced. Also takes it over from an older run of
    /// this coordinator.
    Bid {
        /// The Lease as last seen; its UID and resourceVersion go with the bid.
        lease: Box<ObservedLease>,
        /// The annotation to write with the holder.
        record: Box<LockRecord>,
    },
    Release {
        lease: Box<ObservedLease>,
        /// Whether the lock is given back because the group is over budget; the next bid then waits
        /// for a back-off.
        over_budget: bool,
    },
    /// Clear a lock whose holder is proved gone.
    Break {
        lease: Box<ObservedLease>,
        /// The proof, as a sentence.
        evidence: String,
    },
    Reboot {
        attempt: u32,
    },
    /// A newer run of this coordinator has taken over: stop acting.
    Stop {
        /// The run id of the newer run.
        by: String,
    },
}

/// One conditional patch of our own Node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodePatch {
    pub resource_version: String,
    /// `spec.unschedulable`, if it changes.
    pub unschedulable: Option<bool>,
    pub record: RecordChange,
    /// Label `dogwatch.dev/reboot=waiting`: set, removed, or (`None`) left as it is.
    pub waiting_label: Option<bool>,
    /// Label `k8saas.nvidia.com/ManagedByNVSentinel=false`: set, removed, or (`None`) left as it is.
    pub mute_label: Option<bool>,
    /// Annotation `dogwatch.dev/last-reboot`, if it is written.
    pub last: Option<LastReboot>,
    /// Remove these labels, which asked for the reboot: they were served.
    pub remove_labels: Vec<String>,
    /// Remove `dogwatch.dev/reboot-requested`: it was served.
    pub remove_request: bool,
    /// Remove `dogwatch.dev/abort-requested`: it was served.
    pub remove_abort: bool,
}

/// The change of annotation `dogwatch.dev/reboot`.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "always inside a patch, which is boxed"
)]
pub enum RecordChange {
    Set(RebootRecord),
    Remove,
}

/// Facts that a decision needs. They are kept up to date while decisions name them.
#[derive(Debug, Clone, PartialEq)]
pub enum RebootObserve {
    /// The slots of a group: missing Leases are created, all are listed and watched.
    Locks {
        /// The group of the lock that we hold, else that of the Node.
        group: GroupName,
        /// How many slots there should be.
        slots: u32,
    },
    GroupSize {
        group: GroupName,
    },
    /// The budget count for our Lease at its resourceVersion, from reads sent after `newer_than`.
    Count {
        /// Our Lease, as it was won.
        lease: Box<ObservedLease>,
        /// Monotonic time; an older count is not accepted.
        newer_than: Duration,
    },
    /// The Node for which somebody else holds a Lease, read twice from the API server.
    Holder {
        lease: Box<ObservedLease>,
    },
    /// The drain. It evicts pods for as long as decisions name it.
    Drain {
        /// Delete pods instead of evicting them.
        delete: bool,
        /// What happens to which pods.
        rules: PodRules,
    },
    /// The policy's gates, asked again and again for as long as decisions name them.
    StartGates {
        gates: Vec<PolicyGate>,
    },
    /// VolumeAttachments of the drained pods.
    Attachments {
        /// The claims of these pods, `namespace/name`.
        claims: Vec<String>,
    },
    Gates {
        gates: Vec<ReturnGate>,
        /// Budgets that covered the drained pods, `namespace/name`.
        budgets: Vec<String>,
    },
}

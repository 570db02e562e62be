//! What the decision about one node's reboot is made from.

use std::collections::BTreeMap;
use std::time::Duration;

use super::memory::HeldBack;
use super::record::{Abort, Fingerprint, LastReboot, Parsed, Record, Request};
use crate::condition::Condition;
use crate::drain::Progress;
use crate::lock::{Count, HolderId, HolderReads, LeaseSeen};
use crate::name::{BootId, NodeName, RunId};
use crate::policy::{Gate, Policies, ReturnGate};
use crate::selector::LabelSelector;

/// Everything that was seen. Facts that a [`super::Look`] asks for are `None` until they were
/// looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Our own Node.
    pub node: NodeFact,
    /// Our own host.
    pub host: HostSeen,
    /// The cluster's RebootPolicies.
    pub policies: Policies,
    /// The lock.
    pub lock: LockSeen,
    /// What the policy's gates said last.
    pub start_gates: Option<StartGatesSeen>,
    /// The drain, while one is looked at.
    pub drain: Option<DrainSeen>,
    /// Names of VolumeAttachments of the drained pods that are still there.
    pub attachments: Option<Vec<String>>,
    /// What keeps the return gates shut; empty is open.
    pub gates: Option<Vec<String>>,
    /// What keeps observers from their work, by what they look at: refused calls, a server away.
    pub trouble: BTreeMap<&'static str, String>,
    /// What this process did and remembers. Nothing that safety rests on.
    pub run: RunSeen,
}

/// Our own Node, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeFact {
    /// Not seen yet.
    NotYet,
    /// The API server says that there is no such Node.
    Gone,
    /// It is there.
    There(Box<NodeSeen>),
}

/// A Node, as the watch shows it.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a Node's own yes-or-no fields"
)]
pub struct NodeSeen {
    /// Its name.
    pub name: NodeName,
    /// Its UID.
    pub uid: String,
    /// The precondition of our next patch.
    pub resource_version: String,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// Condition `Ready` is `True`.
    pub ready: bool,
    /// `status.nodeInfo.bootID`, as the kubelet last posted it.
    pub boot_id: Option<BootId>,
    /// Its labels: they choose the policy that rules it, and with it its group.
    pub labels: BTreeMap<String, String>,
    /// Annotation `dogwatch.dev/keep-cordoned`.
    pub keep_cordoned: bool,
    /// Annotation `host.metal3.io/external-remediation`, whatever its value: somebody wants this
    /// machine fenced.
    pub needs_remediation: bool,
    /// Taint `node.kubernetes.io/out-of-service`, whoever set it.
    pub out_of_service: bool,
    /// Annotation `dogwatch.dev/fencing`: the remediator has this machine in hand.
    pub fenced: bool,
    /// `status.nodeInfo.systemUUID`: what the machine's own firmware says it is.
    pub system_uuid: Option<String>,
    /// `spec.providerID`: what the provider of machines calls it.
    pub provider_id: Option<String>,
    /// Label `dogwatch.dev/reboot=waiting`.
    pub waiting_label: bool,
    /// Annotation `dogwatch.dev/reboot`.
    pub record: Parsed<Record>,
    /// Annotation `dogwatch.dev/reboot-requested`.
    pub request: Parsed<Request>,
    /// The request's text: what identifies it.
    pub request_fingerprint: Option<Fingerprint>,
    /// Annotation `dogwatch.dev/abort-requested`: a person wants the reboot under way stopped.
    pub abort: Parsed<Abort>,
    /// Annotation `dogwatch.dev/api-lock`: somebody is taking this node out by the lock API.
    pub api_lock: bool,
    /// Annotation `dogwatch.dev/last-reboot`.
    pub last: Parsed<LastReboot>,
    /// Its conditions.
    pub conditions: Vec<Condition>,
}

/// Our own host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSeen {
    /// The kernel's boot id, or why it could not be read.
    pub boot_id: Result<BootId, String>,
    /// Sentinel files and commands.
    pub triggers: Vec<TriggerSeen>,
}

/// One sentinel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerSeen {
    /// `sentinel:PATH` or `command`.
    pub source: String,
    /// What it says.
    pub state: TriggerState,
}

/// What a sentinel says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriggerState {
    /// Reboot.
    Present {
        /// Which appearance of it this is.
        fingerprint: Fingerprint,
        /// Its first 1 KiB.
        reason: String,
    },
    /// Do not.
    Absent,
    /// It could not be found out: never "not needed".
    Unknown {
        /// Why, and what to do.
        why: String,
    },
}

/// The lock.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LockSeen {
    /// The group's slots, from a list and a watch.
    pub leases: Option<Vec<LeaseSeen>>,
    /// The newest count.
    pub count: Option<CountSeen>,
    /// Two fresh reads of a holder's Node.
    pub holder: Option<HolderSeen>,
    /// How many members the group has; looked at where the maximum is a percentage.
    pub group_size: Option<u32>,
    /// When this process first saw the lock as its own.
    pub won: Option<Duration>,
    /// A bid whose end is unknown (Lease name): it may still land, and is settled by another one.
    pub unsettled: Option<String>,
}

/// A count, and when it was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountSeen {
    /// What was counted.
    pub count: Count,
    /// When its reads were sent.
    pub taken: Duration,
}

/// Two fresh reads of the Node that a Lease is held for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderSeen {
    /// The Lease.
    pub lease: String,
    /// Its version when they were made.
    pub resource_version: String,
    /// What they said.
    pub reads: HolderReads,
    /// When.
    pub taken: Duration,
}

/// What the gates of a policy said.
#[derive(Debug, Clone, PartialEq)]
pub struct StartGatesSeen {
    /// Which gates were looked at: an answer to others proves nothing.
    pub gates: Vec<Gate>,
    /// What keeps them shut, in words; empty is open. What cannot be asked is shut.
    pub shut: Vec<String>,
    /// When the first question was sent.
    pub taken: Duration,
}

/// The drain.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DrainSeen {
    /// Where it stands.
    pub progress: Progress,
    /// Since when it is drained without a break.
    pub drained_since: Option<Duration>,
}

/// What this process remembers of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSeen {
    /// Its run id.
    pub id: RunId,
    /// The identity it bids as.
    pub holder: HolderId,
    /// A number in 0..1, drawn anew for each wait.
    pub jitter: f64,
    /// Since when it has owned the record: another owner then is a newer one.
    pub owned: Option<Duration>,
    /// Since when the record's phase lasts.
    pub phase: Option<PhaseSeen>,
    /// The answer to the patch that wrote `rebooting`.
    pub permit: Option<Permit>,
    /// The attempt that stood in a record taken over in phase `rebooting`: an older run may have
    /// started its command.
    pub adopted_attempt: Option<u32>,
    /// The reboot command.
    pub command: CommandSeen,
    /// Since when the Node is Ready with our boot id without a break.
    pub ready_since: Option<Duration>,
    /// After giving a lock back over budget: not to bid before.
    pub bid_after: Option<Duration>,
    /// The last decision was that the policy does not allow a reboot.
    pub refused: bool,
    /// Since when the policy allows one that did not before.
    pub leave_since: Option<Duration>,
    /// How much of this wait the policy's calendar has held back.
    pub held_back: HeldBack,
    /// Whether this process has seen its group's Leases without one that is held in its name: a bid
    /// of a run before it may have landed after that run was gone.
    pub swept: bool,
    /// Since when this process waits for a lock that is held.
    pub waiting_since: Option<Duration>,
    /// The API server has refused this process the right to clear a lock whose holder is gone: that is
    /// left to the controller.
    pub may_not_break: bool,
    /// The version of the Node that a patch of ours went out for without an answer: while the Node
    /// stands at it, that patch may still arrive.
    pub unanswered: Option<String>,
}

/// How long the record's phase lasts, told from one sight of it: what the wall clock does after
/// that moves no deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseSeen {
    /// The record's `since`: another one is another phase.
    pub since: jiff::Timestamp,
    /// How long it had lasted when it was seen first, by the wall clock; zero if we began it.
    pub before: Duration,
    /// When that was.
    pub seen: Duration,
}

/// The right to start the command once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permit {
    /// For which attempt.
    pub attempt: u32,
    /// When the patch was answered.
    pub answered: Duration,
}

/// The reboot command, as far as this process started it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandSeen {
    /// This process started none.
    None,
    /// It was started.
    Started {
        /// For which attempt.
        attempt: u32,
        /// How it ended, if it did: `exit status: 1`.
        ended: Option<CommandEnd>,
    },
    /// It could not be started at all.
    FailedToStart {
        /// For which attempt.
        attempt: u32,
        /// Why, and what to do.
        why: String,
    },
}

/// How the reboot command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandEnd {
    /// With status 0.
    Success,
    /// Otherwise, in words.
    Failure(String),
}

/// What was configured by flags; a policy goes before it. See [`crate::policy::rule`].
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// How many of the group may be out.
    pub max_unavailable: crate::limit::Limit,
    /// How long a drain may take.
    pub drain_timeout: Duration,
    /// What then.
    pub on_drain_timeout: OnTimeout,
    /// Pods that stay.
    pub exclude: Option<LabelSelector>,
    /// How long drained volumes may take to detach.
    pub volume_detach_timeout: Duration,
    /// How long after the command a new boot is waited for.
    pub reboot_timeout: Duration,
    /// How often the command may be run in all.
    pub reboot_attempts: u32,
    /// How long the Node must be Ready.
    pub settle: Duration,
    /// What the return waits for.
    pub return_gates: Vec<ReturnGate>,
    /// How long the return gates may take.
    pub gate_timeout: Duration,
    /// What then.
    pub on_gate_timeout: OnGateTimeout,
}

impl Default for Config {
    /// Every default of specification §2.
    fn default() -> Self {
        Self {
            max_unavailable: crate::limit::Limit::Count(1),
            drain_timeout: Duration::from_hours(1),
            on_drain_timeout: OnTimeout::Abort,
            exclude: None,
            volume_detach_timeout: Duration::from_mins(2),
            reboot_timeout: Duration::from_mins(30),
            reboot_attempts: 2,
            settle: Duration::from_secs(30),
            return_gates: ReturnGate::ALL.to_vec(),
            gate_timeout: Duration::from_mins(15),
            on_gate_timeout: OnGateTimeout::Keep,
        }
    }
}

/// What to do when a drain has taken too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTimeout {
    /// Undo, release, queue again.
    Abort,
    /// Delete what is left.
    Delete,
    /// Reboot anyway.
    Force,
}

/// What to do when the return gates stay shut for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnGateTimeout {
    /// Keep the lock, loudly.
    Keep,
    /// Release it.
    Release,
}

/// Triggers that want a reboot now, by source.
pub type Wanted = BTreeMap<String, (Fingerprint, super::record::Trigger)>;

//! The input of the decision about one node's reboot.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::memory::HeldBackTime;
use super::record::{
    AbortRequest, LastReboot, ParsedAnnotation, RebootPhase, RebootRecord, RebootRequest,
    TriggerFingerprint,
};
use crate::condition::CurrentCondition;
use crate::drain::DrainProgress;
use crate::lock::{BidPause, HolderId, HolderReads, ObservedLease, UnavailableCount};
use crate::name::{BootId, NodeName, RunId};
use crate::policy::{ClusterPolicies, PolicyGate};
use crate::resource_version::is_older_version;

/// Facts that a [`super::RebootObserve`] asks for are `None` until they have been read.
#[derive(Debug, Clone, PartialEq)]
pub struct RebootSnapshot {
    pub node: OwnNodeState,
    pub host: ObservedOwnHost,
    pub policies: ClusterPolicies,
    pub lock: ObservedLock,
    /// The latest answers of the policy's gates.
    pub start_gates: Option<ObservedStartGates>,
    /// The drain, while decisions ask for it.
    pub drain: Option<ObservedDrain>,
    /// Names of VolumeAttachments of the drained pods that still exist.
    pub attachments: Option<Vec<String>>,
    /// What keeps the return gates shut; empty means open.
    pub gates: Option<Vec<String>>,
    /// Why observers cannot read, by what they observe: refused calls, an unreachable API server.
    pub observation_errors: BTreeMap<&'static str, String>,
    /// What this process did and remembers. No safety promise rests on it alone.
    pub run: RunMemory,
}

#[derive(Debug, Clone, PartialEq)]
pub enum OwnNodeState {
    NotYet,
    /// The API server says that there is no such Node.
    Gone,
    There(Box<ObservedNode>),
}

impl OwnNodeState {
    /// Whether both show the same Node, and this is an earlier version of it.
    #[must_use]
    pub fn is_older_version_of(&self, known: &Self) -> bool {
        let (Self::There(node), Self::There(known)) = (self, known) else {
            return false;
        };
        node.uid == known.uid && is_older_version(&node.resource_version, &known.resource_version)
    }
}

/// A Node, as the watch shows it.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a Node's own yes-or-no fields"
)]
pub struct ObservedNode {
    pub name: NodeName,
    pub uid: String,
    /// The precondition of our next patch.
    pub resource_version: String,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// Condition `Ready` is `True`.
    pub ready: bool,
    /// `status.nodeInfo.bootID`, as the kubelet last posted it.
    pub boot_id: Option<BootId>,
    /// Labels select the policy, and with it the group.
    pub labels: BTreeMap<String, String>,
    /// Annotation `dogwatch.dev/keep-cordoned`.
    pub keep_cordoned: bool,
    /// Annotation `quarantineHealthEvent`: NVSentinel has quarantined the node. An uncordon by
    /// anybody else would cancel the quarantine.
    pub quarantined: bool,
    /// Annotation `host.metal3.io/external-remediation`, whatever its value: somebody asks for this
    /// machine to be fenced.
    pub needs_remediation: bool,
    /// Taint `node.kubernetes.io/out-of-service`, whoever set it.
    pub out_of_service: bool,
    /// Annotation `dogwatch.dev/fencing`: the remediator is fencing this machine.
    pub being_fenced: bool,
    /// `status.nodeInfo.systemUUID`: the UUID that the machine's firmware reports.
    pub system_uuid: Option<String>,
    /// `spec.providerID`: the machine's id at its infrastructure provider.
    pub provider_id: Option<String>,
    /// Label `dogwatch.dev/reboot=waiting`.
    pub waiting_label: bool,
    /// Annotation `dogwatch.dev/reboot`.
    pub record: ParsedAnnotation<RebootRecord>,
    /// Annotation `dogwatch.dev/reboot-requested`.
    pub request: ParsedAnnotation<RebootRequest>,
    /// Identifies the request by its text.
    pub request_fingerprint: Option<TriggerFingerprint>,
    /// Annotation `dogwatch.dev/estimated-start`: the controller's estimate of the start, while it is
    /// near.
    pub estimated_start: Option<Timestamp>,
    /// Annotation `dogwatch.dev/abort-requested`: a person wants the reboot under way stopped.
    pub abort: ParsedAnnotation<AbortRequest>,
    /// Annotation `dogwatch.dev/api-lock`: somebody is taking this node out of service through the
    /// lock API.
    pub api_lock: bool,
    /// Annotation `dogwatch.dev/last-reboot`.
    pub last_reboot: ParsedAnnotation<LastReboot>,
    pub conditions: Vec<CurrentCondition>,
    pub taint_keys: Vec<String>,
    /// Names of allocatable resources above zero, without those that every Node has.
    pub extended_resources: Vec<String>,
}

impl ObservedNode {
    /// A Node that is Ready in this boot, with nothing else on it.
    pub fn ready_node(name: NodeName, uid: String, boot_id: BootId) -> Self {
        Self {
            name,
            uid,
            resource_version: "1".into(),
            unschedulable: false,
            ready: true,
            boot_id: Some(boot_id),
            labels: BTreeMap::new(),
            keep_cordoned: false,
            quarantined: false,
            needs_remediation: false,
            out_of_service: false,
            being_fenced: false,
            system_uuid: None,
            provider_id: None,
            waiting_label: false,
            record: ParsedAnnotation::Absent,
            request: ParsedAnnotation::Absent,
            request_fingerprint: None,
            estimated_start: None,
            abort: ParsedAnnotation::Absent,
            api_lock: false,
            last_reboot: ParsedAnnotation::Absent,
            conditions: Vec::new(),
            taint_keys: Vec::new(),
            extended_resources: Vec::new(),
        }
    }

    /// Whether the reboot that waits is near, by the controller's estimate. A time that an earlier
    /// reboot left behind says nothing.
    pub fn is_start_near(&self) -> bool {
        let record = self.record.get();
        let waiting = record.filter(|record| record.phase == RebootPhase::Waiting);
        let start = self.estimated_start;
        waiting.is_some_and(|record| start.is_some_and(|at| at >= record.since))
    }

    /// Whether the node's cordon outlives a reboot that set it.
    pub fn stays_cordoned(&self) -> bool {
        self.keep_cordoned || self.quarantined
    }

    /// Whether Dogwatch set the node's cordon and is to remove it. With an unreadable record the
    /// cordon counts as somebody else's.
    pub fn is_cordon_ours(&self) -> bool {
        let by_record = self
            .record
            .get()
            .is_some_and(|record| record.cordoned_by_us);
        !self.quarantined && (self.api_lock || by_record && !self.keep_cordoned)
    }

    /// Kubernetes' own condition, which the kubelet and the node controller write.
    pub fn ready_condition(&self) -> Option<&CurrentCondition> {
        let mut conditions = self.conditions.iter();
        conditions.find(|condition| condition.kind == "Ready")
    }
}

/// The host that this coordinator runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedOwnHost {
    /// The kernel's boot id, or why it could not be read.
    pub boot_id: Result<BootId, String>,
    /// systemd's `SoftRebootsCount`: how often userspace was restarted in this boot. `None`: not
    /// known.
    pub soft_reboots: Option<u32>,
    /// Sentinel files and commands.
    pub triggers: Vec<ObservedTrigger>,
}

/// One sentinel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedTrigger {
    /// `sentinel:PATH` or `command`.
    pub source: String,
    pub state: TriggerState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriggerState {
    Present {
        /// Identifies this appearance of the sentinel.
        fingerprint: TriggerFingerprint,
        /// Its first 1 KiB.
        reason: String,
    },
    Absent,
    /// The sentinel could not be read. This never counts as "no reboot needed".
    Unknown {
        /// Why, and what to do about it.
        why: String,
    },
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ObservedLock {
    /// The group's slots, from a list and a watch.
    pub leases: Option<Vec<ObservedLease>>,
    /// The newest count.
    pub count: Option<ObservedBudgetCount>,
    /// Two fresh reads of a holder's Node.
    pub holder: Option<ObservedHolderNode>,
    /// Number of nodes in the group; read only if `maxUnavailable` is a percentage.
    pub group_size: Option<u32>,
    /// When this process first saw that it holds the lock, in monotonic time.
    pub won_at: Option<Duration>,
    /// Lease name of a bid whose result is unknown. It may still land; another bid settles it.
    pub unsettled_bid: Option<String>,
    /// The latest release that this process sent and that was not answered.
    pub unanswered_release: Option<UnansweredRelease>,
}

/// A release of our Lease that may still arrive for as long as the Lease has the resourceVersion
/// for which it was sent. Until then nothing may rely on the Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnansweredRelease {
    /// The name of the Lease.
    pub lease: String,
    pub resource_version: String,
    pub over_budget: bool,
}

impl UnansweredRelease {
    pub fn sent_for(lease: &ObservedLease, over_budget: bool) -> Self {
        Self {
            lease: lease.name.clone(),
            resource_version: lease.resource_version.clone(),
            over_budget,
        }
    }

    pub fn may_still_free(&self, lease: &ObservedLease) -> bool {
        (&self.lease, &self.resource_version) == (&lease.name, &lease.resource_version)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedBudgetCount {
    pub count: UnavailableCount,
    /// When its reads were sent, in monotonic time.
    pub taken: Duration,
    /// When its answers were here. A slow API server takes longer than a count is valid.
    pub arrived: Duration,
}

/// Two fresh reads of the Node that a Lease is held for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedHolderNode {
    /// The name of the Lease.
    pub lease: String,
    /// The Lease's resourceVersion when the Node was read.
    pub resource_version: String,
    pub reads: HolderReads,
    /// Monotonic time.
    pub taken: Duration,
}

/// The answers of a policy's gates.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedStartGates {
    /// The gates that were asked: an answer of other gates proves nothing.
    pub gates: Vec<PolicyGate>,
    /// Why gates are shut, in words; empty means open. A gate that cannot be asked is shut.
    pub shut: Vec<String>,
    /// When the first question was sent, in monotonic time.
    pub taken: Duration,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ObservedDrain {
    pub progress: DrainProgress,
    /// Since when the node has been drained without a break, in monotonic time.
    pub drained_since: Option<Duration>,
}

/// What this process remembers about its own work.
#[derive(Debug, Clone, PartialEq)]
pub struct RunMemory {
    pub id: RunId,
    /// The identity with which it bids.
    pub holder: HolderId,
    /// A number in 0..1, drawn again for each wait.
    pub jitter: f64,
    /// Since when this process has owned the record. A different owner seen after that is a newer
    /// run.
    pub owned_since: Option<Duration>,
    pub phase: Option<ObservedPhase>,
    /// The record's `usable`, timed like a phase.
    pub usable: Option<ObservedPhase>,
    /// The answer to the patch that wrote `rebooting`.
    pub permit: Option<RebootPermit>,
    /// The attempt in a record that was taken over in phase `rebooting`: an older run may have
    /// started its command.
    pub adopted_attempt: Option<u32>,
    pub command: RebootCommandState,
    /// Since when the Node has been Ready with our boot id without a break.
    pub ready_since: Option<Duration>,
    /// When this process bids again, after it gave the lock back over budget.
    pub bid_pause: Option<BidPause>,
    /// The last decision was that the policy does not allow a reboot.
    pub refused: bool,
    /// Since when the policy has allowed a reboot again after it had not, or more nodes than before.
    pub permission_since: Option<Duration>,
    /// How much of this wait is due to the policy's windows, pause or `minInterval`.
    pub held_back: HeldBackTime,
    /// Whether this process has seen that no Lease of its group is held in its name without a
    /// record. A bid of an earlier run may have landed after that run ended.
    pub leftover_lock_released: bool,
    /// Since when this process has waited for a lock that others hold.
    pub waiting_since: Option<Duration>,
    /// The API server refused this process the right to clear a lock whose holder is gone. The
    /// controller does it instead.
    pub break_forbidden: bool,
    /// The Node's resourceVersion for which a patch of ours was sent and not answered. While the
    /// Node still has this version, the patch may still arrive.
    pub unanswered_patch_version: Option<String>,
}

/// How long the record's phase has lasted, measured from when it was first seen: later changes of
/// the wall clock move no deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedPhase {
    /// The record's `since`: a different value means a different phase.
    pub since: jiff::Timestamp,
    /// How long the phase had lasted when it was first seen, by the wall clock; zero if this
    /// process began it.
    pub before: Duration,
    /// When the phase was first seen, in monotonic time.
    pub seen: Duration,
}

impl ObservedPhase {
    /// `now`: in monotonic time.
    pub fn elapsed_until(&self, now: Duration) -> Duration {
        self.before.saturating_add(now.saturating_sub(self.seen))
    }
}

/// The right to start the reboot command once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RebootPermit {
    pub attempt: u32,
    /// When the patch was answered, in monotonic time.
    pub answered: Duration,
}

/// The state of the reboot command, as far as this process started it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RebootCommandState {
    /// This process has started no command.
    None,
    Started {
        attempt: u32,
        /// How the command ended; `None` while it runs.
        ended: Option<CommandEnd>,
    },
    FailedToStart {
        attempt: u32,
        /// Why, and what to do about it.
        why: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandEnd {
    /// Exit status 0.
    Success,
    /// Any other end, as text: `exit status: 1`.
    Failure(String),
}

/// Triggers that want a reboot now, by source.
pub type ActiveTriggers = BTreeMap<String, (TriggerFingerprint, super::record::RebootTrigger)>;

//! What a planned reboot writes on its Node. The JSON names are public (specification §2.5).

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_api::node_reboot::RebootMethod;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::reboot_limits::RebootLimits;
use crate::json_default::is_default;
use crate::name::{BootId, RunId, is_dns_name};
use crate::printable::one_line;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RebootPhase {
    /// A reboot is wanted; the node waits for the lock. Nothing was touched.
    Waiting,
    /// The lock is held, the node is cordoned, its pods are leaving.
    Draining,
    /// Drained, and held out of service until the request for it is withdrawn.
    Holding,
    /// The command may have been started. From here only a new boot id proves the reboot.
    Rebooting,
    /// A new boot id was seen; the node is on its way back into service.
    Returning,
}

impl RebootPhase {
    pub const ALL: [RebootPhase; 5] = [
        RebootPhase::Waiting,
        RebootPhase::Draining,
        RebootPhase::Holding,
        RebootPhase::Rebooting,
        RebootPhase::Returning,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            RebootPhase::Waiting => "waiting",
            RebootPhase::Draining => "draining",
            RebootPhase::Holding => "holding",
            RebootPhase::Rebooting => "rebooting",
            RebootPhase::Returning => "returning",
        }
    }
}

/// Identifies one appearance of a trigger: a file's identity and time, or a hash. It is compared
/// for equality only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TriggerFingerprint(pub String);

/// A NodeReboot that a reboot serves.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeRebootRef {
    pub name: String,
    pub uid: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RebootTrigger {
    /// `sentinel:PATH`, `command`, or `request`.
    pub source: String,
    /// The reason that the trigger gave.
    #[serde(default)]
    pub reason: String,
    /// Who asked, for a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub method: RebootMethod,
    /// The NodeReboots that are served.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_reboots: Vec<NodeRebootRef>,
}

/// Annotation `dogwatch.dev/reboot`: the planned reboot under way. Written before each step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a field of the annotation"
)]
pub struct RebootRecord {
    pub phase: RebootPhase,
    /// The run of the coordinator that owns the record.
    pub run: RunId,
    /// When the phase began, by the node's clock.
    pub since: Timestamp,
    /// When a reboot was first wanted.
    pub planned: Timestamp,
    pub trigger: RebootTrigger,
    /// The boot that the reboot is to end.
    pub boot_id: BootId,
    /// Whether Dogwatch set the cordon and has to remove it.
    pub cordoned_by_us: bool,
    /// The Lease that is held, from `draining` on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// How many times the reboot command was, or may have been, started.
    #[serde(default)]
    pub attempts: u32,
    /// systemd's `SoftRebootsCount` when the last attempt was announced, if it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft_reboots: Option<u32>,
    /// The node returns from a soft reboot, which its policy accepts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub soft: bool,
    /// One sentence for people.
    #[serde(default)]
    pub message: String,
    /// Fingerprints of the triggers this reboot serves, by source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub serves: BTreeMap<String, TriggerFingerprint>,
    /// How many times in a row the reboot was given up and queued again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub failures: u32,
    /// The reboot is not tried again before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Timestamp>,
    /// Dogwatch has set label `k8saas.nvidia.com/ManagedByNVSentinel=false`, and has to remove it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub muted: bool,
    /// The drain was cut short on purpose (`onTimeout: force`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// The remaining pods are deleted instead of evicted (`onTimeout: delete`, past the deadline).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
    /// `namespace/name` of the PodDisruptionBudgets that covered a pod of this drain. The return
    /// waits until each of them has enough healthy pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<String>,
    /// When `return.ready` let the node be uncordoned. The return gates have their time from then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usable: Option<Timestamp>,
    /// How many seconds after its start the drain's timeout begins: the drain waits that long for
    /// pods that may end by themselves.
    #[serde(default, skip_serializing_if = "is_default")]
    pub drain_wait_seconds: u64,
    /// From `rebooting` on: the limits by which the coordinator judges the reboot.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: RebootLimits,
    /// When each phase began most recently.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub began: BTreeMap<RebootPhase, Timestamp>,
}

/// The most budgets of one drain that are checked: a node has fewer pods.
const MAX_RECORD_BUDGETS: usize = 500;

impl RebootRecord {
    /// A reboot that is planned now; nothing was touched.
    pub fn new_waiting(
        run: RunId,
        trigger: RebootTrigger,
        serves: BTreeMap<String, TriggerFingerprint>,
        boot_id: BootId,
        now: Timestamp,
    ) -> Self {
        Self {
            phase: RebootPhase::Waiting,
            run,
            since: now,
            planned: now,
            trigger,
            boot_id,
            cordoned_by_us: false,
            lease: None,
            attempts: 0,
            soft_reboots: None,
            soft: false,
            message: String::new(),
            serves,
            failures: 0,
            retry_after: None,
            muted: false,
            forced: false,
            deleting: false,
            budgets: Vec::new(),
            usable: None,
            drain_wait_seconds: 0,
            limits: RebootLimits::default(),
            began: BTreeMap::new(),
        }
    }

    /// Whether a new boot ends what is under way. A power cycle is not served by a boot that came
    /// before it began, and a hold by none: somebody works on the machine.
    pub fn ends_with_new_boot(&self) -> bool {
        match (self.phase, self.trigger.method) {
            (RebootPhase::Waiting | RebootPhase::Draining, RebootMethod::Reboot)
            | (RebootPhase::Rebooting, _) => true,
            (
                RebootPhase::Waiting | RebootPhase::Draining,
                RebootMethod::PowerCycle | RebootMethod::Hold,
            )
            | (RebootPhase::Holding | RebootPhase::Returning, _) => false,
        }
    }

    /// The outcome once the node is back in service.
    pub(super) fn outcome_of_return(&self) -> RebootOutcome {
        match self.trigger.method {
            RebootMethod::Reboot | RebootMethod::PowerCycle => RebootOutcome::Rebooted,
            RebootMethod::Hold => RebootOutcome::Released,
        }
    }

    /// How long the phase `draining` may last. Deleting the remaining pods may take `timeout` once
    /// more.
    pub(crate) fn drain_time_limit(&self, timeout: Duration) -> Duration {
        let parts = if self.deleting { 2 } else { 1 };
        Duration::from_secs(self.drain_wait_seconds).saturating_add(timeout.saturating_mul(parts))
    }

    /// The budgets that the return checks. Whoever can write this Node chooses their names, and
    /// each becomes part of a request path: names that are not `namespace/name` of DNS names are
    /// left out, and so are those beyond the first 500.
    pub fn budgets_to_check(&self) -> Vec<String> {
        let named = self.budgets.iter().filter(|budget| is_budget_name(budget));
        named.take(MAX_RECORD_BUDGETS).cloned().collect()
    }
}

fn is_budget_name(text: &str) -> bool {
    let parts = text.split_once('/');
    parts.is_some_and(|(namespace, name)| is_dns_name(namespace) && is_dns_name(name))
}

/// Annotation `dogwatch.dev/reboot-requested`: somebody asks for a reboot of this Node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RebootRequest {
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub requester: String,
    /// The reboot must not begin before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub method: RebootMethod,
    /// The NodeReboots that this request serves. Empty: a person wrote it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_reboots: Vec<NodeRebootRef>,
}

/// Annotation `dogwatch.dev/abort-requested`: a person wants the reboot under way stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AbortRequest {
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub requester: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RebootOutcome {
    /// A new boot id was seen, or a soft reboot that the policy accepts, and the node is back in
    /// service.
    Rebooted,
    /// Every trigger went away before the command was started; the node was not rebooted.
    TriggerGone,
    /// A person stopped the reboot. Its triggers count as served.
    Aborted,
    /// The node was held out of service, as asked, and is back.
    Released,
}

impl RebootOutcome {
    /// The JSON value; also the reason of the conditions afterwards.
    pub fn as_str(self) -> &'static str {
        match self {
            RebootOutcome::Rebooted => "Rebooted",
            RebootOutcome::TriggerGone => "TriggerGone",
            RebootOutcome::Aborted => "Aborted",
            RebootOutcome::Released => "Released",
        }
    }
}

/// Annotation `dogwatch.dev/last-reboot`: the result of the last planned reboot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastReboot {
    pub outcome: RebootOutcome,
    /// When the reboot was first wanted.
    pub planned: Timestamp,
    pub finished: Timestamp,
    pub old_boot_id: BootId,
    /// Equals `old_boot_id` if the node was not rebooted, or by a soft reboot.
    pub new_boot_id: BootId,
    /// It was a soft reboot, which the policy accepts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub soft: bool,
    pub trigger: RebootTrigger,
    /// Fingerprints of the triggers it served, by source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fingerprints: BTreeMap<String, TriggerFingerprint>,
    /// When each phase began most recently.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub began: BTreeMap<RebootPhase, Timestamp>,
    /// If this one did not reboot the node: when the last real reboot ended. `minInterval` counts
    /// from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebooted: Option<Timestamp>,
}

impl LastReboot {
    /// When the last planned reboot that did reboot this node ended.
    pub fn last_rebooted_at(&self) -> Option<Timestamp> {
        match self.outcome {
            RebootOutcome::Rebooted => Some(self.finished),
            RebootOutcome::TriggerGone | RebootOutcome::Aborted | RebootOutcome::Released => {
                self.rebooted
            }
        }
    }

    /// Whether the triggers were served: by another boot, by a hold, or because a person aborted the
    /// reboot.
    pub fn was_served(&self) -> bool {
        let ended = match self.outcome {
            RebootOutcome::Aborted | RebootOutcome::Released => true,
            RebootOutcome::Rebooted | RebootOutcome::TriggerGone => false,
        };
        ended || self.soft || self.old_boot_id != self.new_boot_id
    }

    /// How long each phase took, by the node's own clock.
    pub fn phase_durations(&self) -> BTreeMap<RebootPhase, Duration> {
        let ends = self.began.values().skip(1).chain([&self.finished]);
        let phases = self.began.iter().zip(ends);
        phases
            .map(|((phase, began), end)| {
                let took = Duration::try_from(end.duration_since(*began));
                (*phase, took.unwrap_or(Duration::ZERO))
            })
            .collect()
    }
}

/// An annotation that holds JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedAnnotation<T> {
    Absent,
    Is(T),
    /// The text cannot be parsed; Dogwatch does not change it.
    Bad {
        why: String,
    },
}

impl<T> ParsedAnnotation<T> {
    pub fn get(&self) -> Option<&T> {
        match self {
            ParsedAnnotation::Is(value) => Some(value),
            ParsedAnnotation::Absent | ParsedAnnotation::Bad { .. } => None,
        }
    }
}

impl<T: for<'de> Deserialize<'de>> ParsedAnnotation<T> {
    pub fn from_text(text: Option<&str>) -> Self {
        match text.map(serde_json::from_str) {
            None => ParsedAnnotation::Absent,
            Some(Ok(value)) => ParsedAnnotation::Is(value),
            Some(Err(error)) => ParsedAnnotation::Bad {
                why: one_line(&error.to_string()),
            },
        }
    }
}

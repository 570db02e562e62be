//! What a planned reboot writes on its Node. The JSON names are public (specification §2.5).

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::name::{BootId, RunId, is_dns_name};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RebootPhase {
    /// A reboot is wanted; the node waits for the lock. Nothing was touched.
    Waiting,
    /// The lock is held, the node is cordoned, its pods are leaving.
    Draining,
    /// The command may have been started. From here only a new boot id proves the reboot.
    Rebooting,
    /// A new boot id was seen; the node is on its way back into service.
    Returning,
}

impl RebootPhase {
    pub fn as_str(self) -> &'static str {
        match self {
            RebootPhase::Waiting => "waiting",
            RebootPhase::Draining => "draining",
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
}

/// Annotation `dogwatch.dev/reboot`: the planned reboot under way. Written before each step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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
    /// One sentence for people.
    #[serde(default)]
    pub message: String,
    /// Fingerprints of the triggers this reboot serves, by source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub serves: BTreeMap<String, TriggerFingerprint>,
    /// How many times in a row the reboot was given up and queued again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// The reboot is not tried again before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Timestamp>,
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
    /// When each phase began most recently.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub began: BTreeMap<RebootPhase, Timestamp>,
}

/// The most budgets of one drain that are checked: a node has fewer pods.
const MAX_RECORD_BUDGETS: usize = 500;

impl RebootRecord {
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

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if passes a reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Annotation `dogwatch.dev/reboot-requested`: somebody asks for a reboot of this Node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RebootRequest {
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub requester: String,
    /// The reboot must not begin before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
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
    /// A new boot id was seen, and the node is back in service.
    Rebooted,
    /// Every trigger went away before the command was started; the node was not rebooted.
    TriggerGone,
    /// A person stopped the reboot. Its triggers count as served.
    Aborted,
}

impl RebootOutcome {
    /// The JSON value; also the reason of the conditions afterwards.
    pub fn as_str(self) -> &'static str {
        match self {
            RebootOutcome::Rebooted => "Rebooted",
            RebootOutcome::TriggerGone => "TriggerGone",
            RebootOutcome::Aborted => "Aborted",
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
    /// Equals `old_boot_id` if the node was not rebooted.
    pub new_boot_id: BootId,
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
            RebootOutcome::TriggerGone | RebootOutcome::Aborted => self.rebooted,
        }
    }

    /// Whether the triggers were served: by another boot, or because a person aborted the reboot.
    pub fn was_served(&self) -> bool {
        self.old_boot_id != self.new_boot_id || self.outcome == RebootOutcome::Aborted
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
                why: error.to_string(),
            },
        }
    }
}

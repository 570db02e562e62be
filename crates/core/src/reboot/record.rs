//! What a planned reboot writes on its Node. The JSON names are public (specification §2.5).

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::name::{BootId, RunId, is_dns_name};

/// Where a planned reboot stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// A reboot is wanted; the node waits for the lock. Nothing was touched.
    Waiting,
    /// The lock is held, the node is cordoned, its pods are leaving.
    Draining,
    /// The command may have been started. From here only a new boot id is proof.
    Rebooting,
    /// A new boot id was seen; the node is on its way back into service.
    Returning,
}

impl Phase {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Waiting => "waiting",
            Phase::Draining => "draining",
            Phase::Rebooting => "rebooting",
            Phase::Returning => "returning",
        }
    }
}

/// What identifies one appearance of a trigger: a file's identity and time, or a hash. Only
/// equality means anything.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(pub String);

/// Why this node reboots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    /// `sentinel:PATH`, `command`, or `request`.
    pub source: String,
    /// The reason it gave.
    #[serde(default)]
    pub reason: String,
    /// Who asked, for a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<String>,
}

/// Annotation `dogwatch.dev/reboot`: the planned reboot under way. Written before each step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Where it stands.
    pub phase: Phase,
    /// The run of the coordinator that owns the record.
    pub run: RunId,
    /// Since when in this phase, by the node's clock.
    pub since: Timestamp,
    /// Since when a reboot has been wanted.
    pub planned: Timestamp,
    /// Why.
    pub trigger: Trigger,
    /// The boot that is to be ended.
    pub boot_id: BootId,
    /// Whether the cordon is ours to undo.
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
    pub serves: BTreeMap<String, Fingerprint>,
    /// How many times in a row it was given up and queued again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// Not to be tried again before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Timestamp>,
    /// The drain was cut short on purpose (`onTimeout: force`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// What is left is deleted instead of evicted (`onTimeout: delete`, past the deadline).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
    /// PodDisruptionBudgets (`namespace/name`) that covered a pod of this drain; the return waits
    /// until none of them is short.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<String>,
    /// When each phase began, the last time that it did.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub began: BTreeMap<Phase, Timestamp>,
}

/// The most budgets of one drain that are looked at: a node has fewer pods.
const MOST_BUDGETS: usize = 500;

impl Record {
    /// The budgets that the return looks at. Whoever writes this Node writes their names, and each
    /// becomes part of a request's path: what is no `namespace/name` of DNS names is left out, and so
    /// are those beyond the first 500.
    pub fn budgets_looked_at(&self) -> Vec<String> {
        let named = self.budgets.iter().filter(|budget| is_budget(budget));
        named.take(MOST_BUDGETS).cloned().collect()
    }
}

fn is_budget(text: &str) -> bool {
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
pub struct Request {
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// Who asks.
    #[serde(default)]
    pub requester: String,
    /// Not before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
}

/// Annotation `dogwatch.dev/abort-requested`: a person wants the reboot under way stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Abort {
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// Who asks.
    #[serde(default)]
    pub requester: String,
}

/// How a planned reboot ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// A new boot id, and everything came back.
    Rebooted,
    /// What asked for it went away before the command; nothing happened.
    TriggerGone,
    /// A person stopped it. What asked for it counts as served.
    Aborted,
}

impl Outcome {
    /// As it is written; also the reason of the conditions afterwards.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Rebooted => "Rebooted",
            Outcome::TriggerGone => "TriggerGone",
            Outcome::Aborted => "Aborted",
        }
    }
}

/// Annotation `dogwatch.dev/last-reboot`: what is kept of the last planned reboot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastReboot {
    /// How it ended.
    pub outcome: Outcome,
    /// When it was first wanted.
    pub planned: Timestamp,
    /// When it ended.
    pub finished: Timestamp,
    /// The boot before.
    pub old_boot_id: BootId,
    /// The boot after; the same where nothing was rebooted.
    pub new_boot_id: BootId,
    /// Why it was done.
    pub trigger: Trigger,
    /// Fingerprints of the triggers it served, by source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fingerprints: BTreeMap<String, Fingerprint>,
    /// When each phase began, the last time that it did.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub began: BTreeMap<Phase, Timestamp>,
    /// When the last one that did reboot had ended, where this one did not: `minInterval` counts
    /// from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebooted: Option<Timestamp>,
}

impl LastReboot {
    /// When a planned reboot of this node last was finished.
    pub fn last_rebooted(&self) -> Option<Timestamp> {
        match self.outcome {
            Outcome::Rebooted => Some(self.finished),
            Outcome::TriggerGone | Outcome::Aborted => self.rebooted,
        }
    }

    /// Whether what asked for it was served: by another boot, or by a person's word that it is not
    /// to be.
    pub fn served(&self) -> bool {
        self.old_boot_id != self.new_boot_id || self.outcome == Outcome::Aborted
    }

    /// How long each phase took, by the node's own clock.
    pub fn took(&self) -> BTreeMap<Phase, Duration> {
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

/// An annotation that holds JSON: not there, readable, or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed<T> {
    /// There is none.
    Absent,
    /// It says this.
    Is(T),
    /// It cannot be read, and is left alone.
    Bad {
        /// What is wrong with it.
        why: String,
    },
}

impl<T> Parsed<T> {
    /// What it says, if it can be read.
    pub fn get(&self) -> Option<&T> {
        match self {
            Parsed::Is(value) => Some(value),
            Parsed::Absent | Parsed::Bad { .. } => None,
        }
    }
}

impl<T: for<'de> Deserialize<'de>> Parsed<T> {
    /// Reads an annotation's text.
    pub fn read(text: Option<&str>) -> Self {
        match text.map(serde_json::from_str) {
            None => Parsed::Absent,
            Some(Ok(value)) => Parsed::Is(value),
            Some(Err(error)) => Parsed::Bad {
                why: error.to_string(),
            },
        }
    }
}

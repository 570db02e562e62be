//! What a remediation leaves on the host: its steps, and what has to come back on the Node.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Annotation `dogwatch.dev/remediation` on a host: its newest remediation. Nothing is released by it: it
/// is for people, for the cooldown, and for durations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// `machine/NS/NAME`, `node/NAME` or `powerremediation/NS/NAME`.
    pub subject: String,
    /// The UID of what asked for it.
    pub uid: String,
    /// The Node's name, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Its UID.
    #[serde(default, rename = "nodeUID", skip_serializing_if = "Option::is_none")]
    pub node_uid: Option<String>,
    /// The boot that is ended.
    #[serde(default, rename = "bootID", skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Its steps so far, the oldest first.
    pub steps: Vec<Stamp>,
}

/// When a step was done, by the clock of whoever led then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Which.
    pub step: Step,
    /// When.
    pub at: Timestamp,
}

/// The steps of a remediation, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Step {
    /// It was asked for, and we saw it.
    Requested,
    /// Our key was put on the host.
    KeyAdded,
    /// The host was proved off.
    OffProved,
    /// The Node was deleted, or tainted.
    Released,
    /// Our key was removed.
    KeyRemoved,
    /// The host is on again.
    PoweredOn,
    /// The Node is Ready, with another boot.
    NodeReady,
    /// It was called off before the host was off.
    Withdrawn,
    /// It was given up.
    Failed,
}

impl Step {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Step::Requested => "Requested",
            Step::KeyAdded => "KeyAdded",
            Step::OffProved => "OffProved",
            Step::Released => "Released",
            Step::KeyRemoved => "KeyRemoved",
            Step::PoweredOn => "PoweredOn",
            Step::NodeReady => "NodeReady",
            Step::Withdrawn => "Withdrawn",
            Step::Failed => "Failed",
        }
    }

    /// Nothing comes after it.
    pub fn is_end(self) -> bool {
        matches!(self, Step::NodeReady | Step::Withdrawn | Step::Failed)
    }
}

impl Record {
    /// When this step was done.
    pub fn at(&self, step: Step) -> Option<Timestamp> {
        let mut steps = self.steps.iter();
        steps.find(|stamp| stamp.step == step).map(|stamp| stamp.at)
    }

    /// This step was done, if it was not before.
    pub fn push(&mut self, stamp: Stamp) {
        if self.at(stamp.step).is_none() {
            self.steps.push(stamp);
        }
    }

    /// When it ended.
    pub fn ended(&self) -> Option<Timestamp> {
        let mut steps = self.steps.iter();
        steps
            .find(|stamp| stamp.step.is_end())
            .map(|stamp| stamp.at)
    }
}

/// What others had put on a Node that is deleted. What stands on the new one already wins. Never in it:
/// `dogwatch.dev/…` and the need.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    /// The Node's name.
    pub node: String,
    /// The UID of the deleted Node: another one of that name is the new one.
    pub uid: String,
    /// Its machine, as its kubelet told it: `status.nodeInfo.systemUUID`.
    #[serde(
        default,
        rename = "systemUUID",
        skip_serializing_if = "Option::is_none"
    )]
    pub system_uuid: Option<String>,
    /// Its `spec.providerID`.
    #[serde(
        default,
        rename = "providerID",
        skip_serializing_if = "Option::is_none"
    )]
    pub provider_id: Option<String>,
    /// Labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// Taints that Kubernetes itself does not set and lift.
    #[serde(default)]
    pub taints: Vec<Taint>,
    /// It was cordoned, and not by a planned reboot of ours.
    #[serde(default)]
    pub cordoned: bool,
    /// How many annotations are not in it because they were too long.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u32,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if passes a reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A taint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value.
    #[serde(default)]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

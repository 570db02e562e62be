//! `spec.rollout`, with unparsed texts, and `status.rollout`, which decisions use as it is. Source:
//! specification §10.4.

use jiff::Timestamp;
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use crate::schema::{self, validation_rule};

/// `spec.rollout`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(extend("minProperties" = 1)))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RolloutSpec {
    /// The nodes that reboot before all others. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanarySpec>,
    /// How many nodes may be unavailable at once after the canaries: the first number, then the
    /// next one after that many successful reboots in a row, and so on. maxUnavailable rules where
    /// it is smaller, and alone after the last number. Default: maxUnavailable rules alone.
    #[cfg_attr(test, schemars(schema_with = "ramp_numbers"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp: Option<Vec<u32>>,
    /// After so many failures nothing begins any more, and drains under way are undone, until
    /// somebody runs dogwatch resume. A failure is a reboot that failed, a drain that was given up,
    /// or a node that is not ready in time. Default: failures do not halt the policy.
    #[cfg_attr(test, schemars(range(min = 1, max = 100), extend("format" = "int32")))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halt_after_failures: Option<u32>,
}

#[cfg(test)]
fn ramp_numbers(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let ascending = validation_rule(
        "self.isSorted() && self.all(a, self.exists_one(b, b == a))",
        "write ascending numbers like [1, 2, 4]",
    );
    schemars::json_schema!({
        "type": "array",
        "minItems": 1,
        "maxItems": 20,
        "items": {
            "type": "integer",
            "format": "int32",
            "minimum": 1,
            "maximum": 10_000,
            "description": "A number of nodes.",
        },
        "x-kubernetes-validations": [ascending],
    })
}

/// `spec.rollout.canary`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CanarySpec {
    /// How many nodes. 0: none, and no soak.
    #[cfg_attr(test, schemars(range(min = 0, max = 100), extend("format" = "int32")))]
    pub nodes: u32,
    /// How long nothing begins after the last of them is back. Default: 0s.
    #[cfg_attr(test, schemars(schema_with = "schema::duration_text"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak: Option<String>,
}

/// `status.rollout`: how far the rollout is. Nodes begin nothing beyond it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyRolloutState {
    /// The spec.rollout that this belongs to, in words. Nothing begins under another one.
    pub shape: String,
    /// Which part of the rollout it is in.
    pub phase: RolloutPhase,
    /// The nodes that may go first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub canaries: Vec<CanaryNode>,
    /// When the soak ends, by the controller's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak_ends: Option<Timestamp>,
    /// The number of the ramp that holds; absent when maxUnavailable rules alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// How many numbers of the ramp are done.
    #[serde(default)]
    pub step: u32,
    /// Successful reboots in a row since this number of the ramp holds.
    #[serde(default)]
    pub successes: u32,
    /// The nodes that are rebooting, of which the ramp awaits a success.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub under_way: Vec<RolloutNode>,
    /// How many failures count.
    #[serde(default)]
    pub failures: u32,
    /// The failures that still stand and are not counted again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedRolloutNode>,
    /// Why nothing begins until somebody resumes the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halted: Option<RolloutHalt>,
    /// Since when no node waits or reboots. After an hour the next reboot begins a new rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_since: Option<Timestamp>,
}

/// The part of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub enum RolloutPhase {
    /// The canaries go first.
    Canary,
    /// The canaries are back; nothing begins for a while.
    Soaking,
    /// The other nodes follow, at most so many at once.
    Ramping,
}

impl RolloutPhase {
    /// The value of the field.
    pub fn as_str(self) -> &'static str {
        match self {
            RolloutPhase::Canary => "Canary",
            RolloutPhase::Soaking => "Soaking",
            RolloutPhase::Ramping => "Ramping",
        }
    }
}

/// A node that may go first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CanaryNode {
    /// The Node's name.
    pub node: String,
    /// The Node's UID.
    pub uid: String,
    /// The boot that its reboot is to end.
    pub boot_id: String,
    /// Whether it is back.
    #[serde(default)]
    pub done: bool,
}

/// A node with a reboot under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RolloutNode {
    /// The Node's name.
    pub node: String,
    /// The Node's UID.
    pub uid: String,
    /// The boot that its reboot is to end.
    pub boot_id: String,
}

/// A node whose reboot failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FailedRolloutNode {
    /// The Node's name.
    pub node: String,
    /// The Node's UID.
    pub uid: String,
    /// The boot that its reboot is to end.
    pub boot_id: String,
    /// How it failed, in one word.
    pub reason: String,
    /// Whether it counts in failures, and did not fail before this rollout or its resumption. Absent if
    /// an older version of Dogwatch wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<bool>,
}

/// Why nothing begins any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RolloutHalt {
    /// Since when, by the controller's clock.
    pub since: Timestamp,
    /// Which nodes failed, and how.
    pub reason: String,
}

//! `spec`, with unparsed texts: `dogwatch_k8s::node_reboot` converts it to the types that decisions
//! use.
//!
//! An unknown field is an error and is not ignored: it may be a reason not to reboot.

use jiff::Timestamp;
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RebootMethod;
#[cfg(test)]
use super::crd;
#[cfg(test)]
use crate::schema;

/// Default of `ttlAfterFinished`.
pub const DEFAULT_TTL_AFTER_FINISHED: &str = "24h";
/// Default of `success.within`.
pub const DEFAULT_WITHIN: &str = "10m";
/// The most methods in `escalation`: with `method`, three attempts in all.
pub const MAX_ESCALATIONS: usize = 2;
/// The most conditions in `success`.
#[cfg(test)]
const MAX_CONDITIONS: usize = 16;

/// `spec` of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(
    extend("required" = ["nodeName"]),
    extend("x-kubernetes-validations" = crd::spec_rules()),
))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeRebootSpec {
    /// The Node, by its name.
    #[cfg_attr(test, schemars(schema_with = "schema::object_name"))]
    #[serde(default)]
    pub node_name: String,
    /// The Node's UID: a later Node of the same name is refused.
    #[cfg_attr(test, schemars(length(min = 1, max = 64)))]
    #[serde(default, rename = "nodeUID", skip_serializing_if = "Option::is_none")]
    pub node_uid: Option<String>,
    /// How. Reboot: lock, drain, reboot command, and back into service. PowerCycle: the same, but the
    /// node's BareMetalHost is switched off, which is proved, and on again. Hold: lock, cordon and drain,
    /// and nothing more until this object is deleted or cancelled.
    #[cfg_attr(test, schemars(
        schema_with = "crd::served_method",
        extend("x-default" = RebootMethod::Reboot),
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<RebootMethod>,
    /// The reason; it is shown wherever the request waits.
    #[cfg_attr(test, schemars(length(max = 512)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who asks: a person or a program.
    #[cfg_attr(test, schemars(length(max = 256)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<String>,
    /// The node is not asked before this time.
    #[cfg_attr(test, schemars(length(max = 40)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Given up if the node has not begun to drain by this time.
    #[cfg_attr(test, schemars(length(max = 40)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// What else must be true of the Node after its return. Without it, the reboot is the success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<SuccessSpec>,
    /// The methods of further attempts, one after the other, while success is not reached.
    #[cfg_attr(test, schemars(schema_with = "crd::escalation_methods"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<Vec<RebootMethod>>,
    /// Cancels what has not begun, and ends a hold. It cannot be taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<bool>,
    /// How long the object is kept after its end; a Go duration. 0 deletes it at once.
    #[cfg_attr(test, schemars(
        schema_with = "schema::duration_text",
        extend("x-default" = DEFAULT_TTL_AFTER_FINISHED),
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_after_finished: Option<String>,
}

/// `spec.success`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(extend("required" = ["conditions"])))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SuccessSpec {
    /// Conditions of the Node, all of which must have the given status at the same time.
    #[cfg_attr(test, schemars(
        length(min = 1, max = MAX_CONDITIONS),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]),
    ))]
    #[serde(default)]
    pub conditions: Vec<RequiredCondition>,
    /// How long after the return they may take; a Go duration.
    #[cfg_attr(test, schemars(
        schema_with = "schema::time_limit",
        extend("x-default" = DEFAULT_WITHIN),
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
}

/// A condition of the Node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(extend("required" = ["type", "status"])))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RequiredCondition {
    /// Its type, like Ready or GpuMemWatch.
    #[cfg_attr(test, schemars(length(min = 1, max = 316)))]
    #[serde(default, rename = "type")]
    pub kind: String,
    /// The status that it must have.
    #[cfg_attr(test, schemars(extend("enum" = ["True", "False", "Unknown"])))]
    #[serde(default)]
    pub status: String,
}

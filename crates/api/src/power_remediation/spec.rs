//! `spec`, with unparsed texts: `dogwatch_k8s` converts it to the types that decisions use.
//!
//! An unknown field is an error and is not ignored: it may be a reason not to release anything.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use crate::schema;

/// Default of `retryLimit`.
pub const DEFAULT_RETRY_LIMIT: u32 = 1;
/// The largest `retryLimit`.
pub const MAX_RETRY_LIMIT: u32 = 10;
/// Default of `timeout`.
pub const DEFAULT_TIMEOUT: &str = "10m";

/// `spec` of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PowerRemediationSpec {
    /// How.
    #[cfg_attr(test, schemars(extend("x-default" = {})))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<StrategySpec>,
}

/// `spec.strategy`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StrategySpec {
    /// How workloads are released when the host is proved off. DeleteNode: the Node is deleted, and
    /// registers again. OutOfServiceTaint: the Node stays, with the taint
    /// node.kubernetes.io/out-of-service until it is Ready with a new boot.
    #[cfg_attr(test, schemars(extend("x-default" = StrategyType::DeleteNode)))]
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<StrategyType>,
    /// How often the remediation is tried again: the number of attempts is one more. It may be
    /// changed while the remediation runs.
    #[cfg_attr(test, schemars(
        range(max = MAX_RETRY_LIMIT),
        extend("format" = "int32", "x-default" = DEFAULT_RETRY_LIMIT),
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_limit: Option<u32>,
    /// How long one attempt may take, from the start until the Node is Ready with a new boot; a Go
    /// duration. It may be changed while the remediation runs.
    #[cfg_attr(test, schemars(
        length(max = 32),
        extend("x-default" = DEFAULT_TIMEOUT, "x-kubernetes-validations" = schema::min_time_limit(
            "1m",
            "write at least 1m: off is confirmed by two readings, and a machine has to boot",
        )),
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
}

/// How workloads are released once the host is proved off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub enum StrategyType {
    /// The Node is deleted, and registers again.
    DeleteNode,
    /// The Node gets the taint `node.kubernetes.io/out-of-service`.
    OutOfServiceTaint,
}

impl StrategyType {
    /// The strategy as it is written in the spec.
    pub fn as_str(self) -> &'static str {
        match self {
            StrategyType::DeleteNode => "DeleteNode",
            StrategyType::OutOfServiceTaint => "OutOfServiceTaint",
        }
    }
}

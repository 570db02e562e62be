//! `spec`, with unparsed texts: `dogwatch_k8s` converts it to the types that decisions use.
//!
//! An unknown field is an error and is not ignored: it may be a reason not to release anything.

use serde::{Deserialize, Serialize};

/// Default of `retryLimit`.
pub const DEFAULT_RETRY_LIMIT: u32 = 1;
/// The largest `retryLimit`.
pub const MAX_RETRY_LIMIT: u32 = 10;
/// Default of `timeout`.
pub const DEFAULT_TIMEOUT: &str = "10m";

/// `spec` of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PowerRemediationSpec {
    /// How the machine is remediated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<StrategySpec>,
}

/// `spec.strategy`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StrategySpec {
    /// How workloads are released; default [`StrategyType::DeleteNode`].
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<StrategyType>,
    /// How many attempts may follow the first; default [`DEFAULT_RETRY_LIMIT`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_limit: Option<u32>,
    /// How long one attempt may take, a Go duration; default [`DEFAULT_TIMEOUT`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
}

/// How workloads are released once the host is proved off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

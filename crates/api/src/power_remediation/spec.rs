//! `spec`. Texts stay as they were written: `dogwatch_k8s` makes of them what decisions use.
//!
//! An unknown field is an error and not left out: one that this program does not know may be a reason
//! not to release anything.

pub use dogwatch_core::remedy::StrategyType;
use serde::{Deserialize, Serialize};

/// `retryLimit` where it is not given.
pub const DEFAULT_RETRY_LIMIT: u32 = 1;
/// The largest `retryLimit`.
pub const MAX_RETRY_LIMIT: u32 = 10;
/// `timeout` where it is not given.
pub const DEFAULT_TIMEOUT: &str = "10m";

/// `spec`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PowerRemediationSpec {
    /// How.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
}

/// `strategy`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Strategy {
    /// How workloads are released; [`StrategyType::DeleteNode`] where it is absent.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<StrategyType>,
    /// How often it is tried again; [`DEFAULT_RETRY_LIMIT`] where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_limit: Option<u32>,
    /// How long one attempt may take, a Go duration; [`DEFAULT_TIMEOUT`] where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
}

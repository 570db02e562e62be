//! Explains remediations: which hosts are being fenced, how far each remediation is, and why it
//! waits.
//!
//! The remediator's own functions decide here, from what is on the cluster. Only the controller
//! knows its readings, the proof and its flags; therefore its condition `Remediation` takes
//! precedence.

mod advice;
mod assessment;
mod chain;
mod forecast;
mod guards;
mod lines;
mod node_machines;
mod row;
#[cfg(test)]
mod tests;
mod timeline;
mod waits;

use serde::Serialize;

pub use chain::{ExplainRemediationTarget, explain_remediations};
pub use forecast::{RemediationForecast, forecast_machine, forecast_node};
pub use lines::format_millis;
pub use node_machines::{NodeMachines, machines_of_node};
pub use row::{RemediationRow, remediation_rows};
pub use timeline::StepRow;

use super::{ExplanationLine, ObservedController};
use crate::policy::ClusterPolicies;
use crate::remediation::RemediationSnapshot;

/// Everything that explanations of remediations are made from.
#[derive(Debug, Clone, PartialEq)]
pub struct RemediationReportInput {
    /// Machines, hosts, Nodes, requests and Leases, as read.
    pub snapshot: RemediationSnapshot,
    pub policies: ClusterPolicies,
    /// The holder of the control plane's lock for a planned reboot.
    pub control_plane_lock: Option<String>,
    pub controller: ObservedController,
}

/// Why a remediation is in its present state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RemediationExplanation {
    /// `machine/NS/NAME`, `node/NAME`, `powerremediation/NS/NAME` or `host/NS/NAME`.
    pub subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// `NAMESPACE/NAME` of the host, if one is found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Whether something is requested or under way.
    pub under_way: bool,
    pub summary: String,
    /// From the request to what it waits for.
    pub chain: Vec<ExplanationLine>,
    /// The oldest step first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<StepRow>,
    /// What a person can do; empty when waiting is all.
    pub advice: Vec<String>,
}

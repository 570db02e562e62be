//! Explains a host's power from what is on the cluster.
//!
//! Whatever no reading can change (the host's owner, its BMC addresses, the annotations that are
//! obeyed) is decided here by the power controller's own functions. Everything else comes from what
//! the controller wrote: conditions and `status.power`.

mod advice;
mod chain;
mod forecast;
mod lines;
mod requests;
mod row;
#[cfg(test)]
pub(crate) mod testkit;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use advice::next_step;
pub use chain::explain_host;
pub use requests::{ExplainedAnnotation, WantedPower, explained_annotations, wanted_power};
pub use row::{HostRow, host_row, host_rows, scheme_and_host};

use super::{ExplanationLine, ObservedController};
use crate::condition::CurrentCondition;
use crate::name::NodeName;
use crate::power::{HostName, HostOwner, HostSnapshot};

/// Type of the condition that says whether the power is as wanted.
pub const POWER_AS_WANTED: &str = "PowerAsWanted";
/// Type of the condition that says whether power control would work now.
pub const POWER_CONTROL_READY: &str = "PowerControlReady";

/// Everything that the explanation of a host is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct HostReportInput {
    pub host: HostSnapshot,
    /// [`HostOwner::NotYetKnown`] if it could not be read.
    pub owner: HostOwner,
    /// Other hosts that name one of its devices.
    pub shared_with: Vec<HostName>,
    /// The Node that runs on it, if known.
    pub node: Option<NodeName>,
    pub controller: ObservedController,
}

/// Why a host's power is in its present state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostExplanation {
    /// `NAMESPACE/NAME`.
    pub host: String,
    pub summary: String,
    /// From what is requested to what was done.
    pub chain: Vec<ExplanationLine>,
    /// What a person can do; empty when waiting is all.
    pub advice: Vec<String>,
}

pub fn host_condition<'a>(host: &'a HostSnapshot, kind: &str) -> Option<&'a CurrentCondition> {
    let mut conditions = host.status.conditions.iter();
    conditions.find(|condition| condition.kind == kind)
}

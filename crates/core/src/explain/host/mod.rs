//! Why a host's power is as it is, from what stands on the cluster.
//!
//! What no reading can change (whose host it is, what its address says, which annotations are obeyed)
//! is worked out here by the power controller's own functions. The rest is what its decision wrote:
//! conditions and `status.power`.

mod advice;
mod asked;
mod chain;
mod foretold;
mod lines;
mod row;
#[cfg(test)]
pub(super) mod testkit;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use advice::next_step;
pub use asked::{Asked, Wanted, asked, wanted};
pub use chain::explain_host;
pub use row::{HostRow, host_row, host_rows, place};

use super::{ControllerSeen, Line};
use crate::condition::Condition;
use crate::name::NodeName;
use crate::power::{Host, HostName, Owner};

/// The type of the condition that says whether the power is where it is wanted.
pub const POWER_AS_WANTED: &str = "PowerAsWanted";
/// The type of the condition that says whether power control would work now.
pub const POWER_CONTROL_READY: &str = "PowerControlReady";

/// Everything that an explanation of a host is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct HostView {
    /// The host.
    pub host: Host,
    /// Whose it is; [`Owner::NotYetKnown`]: that could not be looked at.
    pub owner: Owner,
    /// Other hosts that name one of its devices.
    pub shared_with: Vec<HostName>,
    /// The Node that runs on it, where one is known.
    pub node: Option<NodeName>,
    /// Who leads the controllers.
    pub controller: ControllerSeen,
}

/// Why a host's power is as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostExplanation {
    /// Which host: `NAMESPACE/NAME`.
    pub host: String,
    /// One sentence.
    pub summary: String,
    /// From what is asked to what was done.
    pub chain: Vec<Line>,
    /// What a person can do; empty where there is nothing but to wait.
    pub advice: Vec<String>,
}

/// The host's condition of this type.
pub fn host_condition<'a>(host: &'a Host, kind: &str) -> Option<&'a Condition> {
    let mut conditions = host.status.conditions.iter();
    conditions.find(|condition| condition.kind == kind)
}

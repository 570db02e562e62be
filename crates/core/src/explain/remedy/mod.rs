//! Remediations, for people: who is fenced, how far each is, and why it waits.
//!
//! Everything is decided here by the remediator's own functions, from what stands on the cluster. What only
//! the controller sees (its readings, the proof, its flags) is not known here: there its condition
//! `Remediation` says more, and goes first.

mod advice;
mod chain;
mod foreseen;
mod held;
mod judged;
mod lines;
mod row;
#[cfg(test)]
mod tests;
mod timeline;
mod waits;

use serde::Serialize;

pub use chain::{RemedyTarget, explain_remedies};
pub use foreseen::{Foreseen, foreseen, foreseen_machine};
pub use lines::lasted;
pub use row::{RemedyRow, remedy_rows};
pub use timeline::StepRow;

use super::{ControllerSeen, Line};
use crate::policy::Policies;
use crate::remedy::World;

/// Everything that remediations are explained from.
#[derive(Debug, Clone, PartialEq)]
pub struct RemedyView {
    /// Machines, hosts, Nodes, requests and Leases, as they were read.
    pub world: World,
    /// The RebootPolicies.
    pub policies: Policies,
    /// Who holds the control plane's lock for a planned reboot.
    pub control_plane_lock: Option<String>,
    /// Who leads the controllers.
    pub controller: ControllerSeen,
}

/// Why one remediation stands where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RemedyExplanation {
    /// `machine/NS/NAME`, `node/NAME`, `powerremediation/NS/NAME` or `host/NS/NAME`.
    pub subject: String,
    /// The Node's name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// `NAMESPACE/NAME` of its host, if that is found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Whether something is asked, or under way.
    pub under_way: bool,
    /// One sentence.
    pub summary: String,
    /// From what asked to what is waited for.
    pub chain: Vec<Line>,
    /// Its steps, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<StepRow>,
    /// What a person can do; empty where there is nothing but to wait.
    pub advice: Vec<String>,
}

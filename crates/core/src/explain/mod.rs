//! "Why is nothing happening?", answered from what is on the cluster.
//!
//! **For:** [`explain_node`], the chain from a trigger to what the node waits for, with advice for
//! a person; and [`fleet_status`], one row for each node and lock.
//! **May touch:** nothing; what was read and the time are passed in.
//! **Promises:** the reason shown is the one that the node's own decision wrote (its leading
//! condition), never a second guess; what cannot be known from outside the node is marked as such;
//! the same input and time give the same text.
//!
//! Serves S7. Source: specification §7.

mod advice;
mod budget;
mod chain;
mod controller;
mod coordinator;
mod deadline;
mod explanation;
mod fleet;
mod healer;
mod host;
mod human_format;
mod locks;
mod node_reboot;
mod pods;
mod policies;
mod policy;
mod remediation;
mod requested_reboots;
mod schedule;
mod status;
#[cfg(test)]
pub(crate) mod testkit;
#[cfg(test)]
pub(crate) use host::testkit as host_testkit;
#[cfg(test)]
mod tests;

pub use budget::BudgetLine;
pub use chain::explain_node;
pub use controller::ObservedController;
pub use coordinator::CoordinatorSigns;
pub use deadline::{DEFAULT_DRAIN_TIMEOUT, DEFAULT_GATE_TIMEOUT, DEFAULT_REBOOT_TIMEOUT};
pub(crate) use deadline::{last_phase_deadline, phase_deadline};
pub use explanation::{ExplanationLine, ExplanationTopic, NodeExplanation};
pub use fleet::{FleetSnapshot, LeaseRow, NodeReportInput, ObservedCoordinator, leading_condition};
pub use healer::ObservedHealer;
pub use host::{
    ExplainedAnnotation, HostExplanation, HostReportInput, HostRow, POWER_AS_WANTED,
    POWER_CONTROL_READY, WantedPower, explain_host, explained_annotations, host_condition,
    host_row, host_rows, next_step, scheme_and_host, wanted_power,
};
pub(crate) use human_format::{describe_trigger, format_ago};
pub use human_format::{format_age, format_due, format_ordinal, format_time, join_first_names};
pub use node_reboot::{NodeRebootExplanation, explain_node_reboot};
pub use pods::NodePods;
pub use policies::{PolicyRow, WindowRow};
pub use policy::describe_gate;
pub use remediation::{
    ExplainRemediationTarget, NodeMachines, RemediationExplanation, RemediationForecast,
    RemediationReportInput, RemediationRow, StepRow, explain_remediations, forecast_machine,
    forecast_node, format_millis, machines_of_node, remediation_rows,
};
pub use schedule::{
    ScheduleExplanation, ScheduleReportInput, ScheduleRow, explain_schedule, schedule_rows,
};
pub use status::{FleetStatus, LastRebootRow, LockRow, NodeStatusRow, WaitingRow, fleet_status};

//! One view of the whole fleet, for every face that shows it.
//!
//! **For:** `dogwatch status`, `dogwatch top`, the dashboard and scenarios: who is out of service,
//! who waits and why, what a person has to do, and when all of it will be finished.
//! [`build_fleet_view`] makes it.
//! **May touch:** nothing; what was read and the time are passed in.
//! **Promises:** reasons, deadlines and budgets are those of the decisions' own checks; the JSON
//! has a version, [`FLEET_VIEW_VERSION`]; the same input and time give the same view.
//!
//! Serves S7. Source: specification §12.

mod build;
mod counts;
mod estimate;
mod fleet_view;
mod groups;
mod out_nodes;
mod overdue;
mod person_tasks;
mod phase_bars;
mod recent;
mod sentence;
mod start_marks;
#[cfg(test)]
mod tests;
mod waiting_nodes;

pub use build::{FleetViewInput, build_fleet_view};
pub use estimate::{EstimateRollout, FleetEstimate, GroupEstimate, NodeEstimate};
pub use fleet_view::{
    FLEET_VIEW_VERSION, FleetCounts, FleetView, GroupView, OpenWindowSpan, OutNodeRow, PersonTask,
    PhaseBar, RecentOutcome, TakenSlot, WaitingNodeRow,
};
pub use start_marks::{StartMarkPatch, plan_start_marks};

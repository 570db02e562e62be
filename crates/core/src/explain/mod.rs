//! "Why is nothing happening?", answered from what stands on the cluster.
//!
//! **For:** [`explain`], the chain from what asked for a reboot to what is waited for, with what a
//! person can do; and [`status`], one line for each node and lock.
//! **May touch:** nothing; what was read is passed in, and so is the time.
//! **Promises:** the reason shown is the one that the node's own decision wrote (its leading
//! condition), never a guess beside it; what cannot be known from outside the node is said to be so;
//! the same view and time give the same text.
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
mod locks;
mod pods;
mod policies;
mod policy;
mod remedy;
mod schedule;
mod status;
#[cfg(test)]
pub(crate) mod testkit;
#[cfg(test)]
mod tests;
mod words;

pub use budget::BudgetLine;
pub use chain::explain;
pub use controller::ControllerSeen;
pub use coordinator::CoordinatorSigns;
pub use deadline::{DRAIN_TIMEOUT, GATE_TIMEOUT, REBOOT_TIMEOUT};
pub use explanation::{Explanation, Line, Topic};
pub use fleet::{CoordinatorSeen, Fleet, LeaseRow, View, said};
pub use healer::HealerSeen;
pub use host::{
    Asked, HostExplanation, HostRow, HostView, POWER_AS_WANTED, POWER_CONTROL_READY, Wanted, asked,
    explain_host, host_condition, host_row, host_rows, next_step, place, wanted,
};
pub use pods::OnNode;
pub use policies::{PolicyRow, WindowRow};
pub use policy::gate_in_words;
pub use remedy::{
    Foreseen, RemedyExplanation, RemedyRow, RemedyTarget, RemedyView, StepRow, explain_remedies,
    foreseen, foreseen_machine, lasted, remedy_rows,
};
pub use schedule::{
    ScheduleExplanation, ScheduleRow, ScheduleView, explain_schedule, schedule_rows,
};
pub use status::{LastRow, LockRow, NodeRow, Status, WaitingRow, status};
pub(crate) use words::ago;
pub use words::{age, due, moment, ordinal, some};

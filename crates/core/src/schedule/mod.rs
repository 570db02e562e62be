//! Reboots at an appointed time: once or again and again, of nodes and of hosts.
//!
//! **For:** the controller, which waits for the time of a `RebootSchedule` and then issues an
//! immediate request to each of its targets; nothing here reboots anything.
//! **May touch:** nothing.
//! **Promises:**
//! - An occurrence stands in the schedule's status before the first of its requests goes out, and each
//!   target is marked by the very patch that asks it. So a crash loses no request and repeats none (S5).
//! - What is later than `startingDeadline` is not made up for: it is recorded as missed, loudly (S6).
//! - A request that somebody else has made is left as it is, and noted (S3).
//! - A host that may carry a Node is never asked by its power: nobody would drain it (S1).
//! - The time is the wall clock's, read at each look, at least once a minute: a clock that is set is
//!   noticed within that. What was handled stays handled, whatever the clock says.
//!
//! Source: specification §5; metal3's reboot-interface design, "Non-Goals".

mod decide;
mod due;
mod host;
mod outlook;
pub mod reason;
mod record;
mod report;
mod seen;
mod stand;
mod target;
#[cfg(test)]
mod tests;
mod types;
mod when;

pub use decide::{Action, Decision, Look, decide};
pub use host::{Claim, NotByPower};
pub use outlook::{Outlook, outlook};
pub(crate) use report::on_clock;
pub use seen::{Carried, Object, Seen, StandingRequest, TargetsSeen};
pub use target::{Ask, Kind, Mark, Marks, Target};
pub use types::{
    Chosen, Current, HISTORY, Mode, Outcome, Plan, Record, Schedule, ScheduleName, Status,
    TARGETS_LISTED, TargetEnd, TargetResult,
};
pub use when::{BadWhen, Recurrence, When};

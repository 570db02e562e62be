//! Finds what would block a reboot, a drain or a remediation, before it is tried.
//!
//! **For:** [`find_reboot_blockers`], what would block a planned reboot of a node now;
//! [`plan_drain`], what its drain would do with each pod;
//! [`find_restore_contradictions`], every record that contradicts the cluster; [`judge_holder`],
//! whether a held lock still has a holder.
//! **May touch:** nothing; what was read is passed in, and so is the time.
//! **Promises:** pods are judged by the state machine that drains, policies and the budget by the
//! rules that the coordinator decides with; what could not be read is reported and never taken for
//! harmless.
//!
//! Serves S7. Source: specification §1 (last line), §2.2 and §7.

mod controller;
mod drain_plan;
mod finding;
mod findings;
mod lock_holder;
mod pods;
mod remediation;
mod restore;
mod restore_forced;
#[cfg(test)]
mod tests;
mod view;

pub use drain_plan::{PlannedPod, plan_drain};
pub use finding::{CheckFinding, FindingSeverity};
pub use findings::find_reboot_blockers;
pub use lock_holder::{HolderStatus, ObservedHolder, judge_holder};
pub use restore::find_restore_contradictions;
pub use restore_forced::ForcedWork;
pub use view::{CheckView, GateAnswer, GateState, PodFacts};

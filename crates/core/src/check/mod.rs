//! What would stand in the way, before it is tried.
//!
//! **For:** [`findings`], what a planned reboot of a node would run into now; [`after_restore`],
//! every record that the world contradicts; [`behind`], whether anybody is behind a held lock.
//! **May touch:** nothing; what was read is passed in, and so is the time.
//! **Promises:** pods are judged by the machine that drains, policies and the budget by the rules
//! that the coordinator decides with; what could not be looked at is said and never taken for clear.
//!
//! Serves S7. Source: specification §1 (last line), §2.2 and §7.

mod behind;
mod finding;
mod findings;
mod forced;
mod pods;
mod restore;
#[cfg(test)]
mod tests;
mod view;

pub use behind::{Behind, HolderFound, behind};
pub use finding::{Finding, Severity};
pub use findings::findings;
pub use restore::after_restore;
pub use view::{CheckView, GateAnswer, GateState, PodFacts};

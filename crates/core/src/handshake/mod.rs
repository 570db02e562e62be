//! Planned reboots and forced ones know of each other, and others know of ours.
//!
//! **For:** the remediator's Lease, which planned reboots count and which control-plane nodes are
//! excluded by ([`RemedyRecord`], [`control_plane_taken`]); and the marks that keep other health
//! checkers off a node that we reboot ([`wanted`], [`decide`]).
//! **May touch:** nothing.
//! **Promises:** only what carries our own word is taken away (S3); a mark is there only while a
//! planned reboot of ours is under way, and whoever leads finds what a dead leader left (S6).
//!
//! Source: specification §2.2, §4.4; medik8s' `common/pkg/lease`; Cluster API's annotations.

mod remedy;
#[cfg(test)]
mod tests;
mod told;

pub use remedy::{RemedyRecord, control_plane_taken};
pub use told::{
    Action, MARK, MachineMark, NodeLease, Rebooting, SAY_AGAIN, decide, lease_name, wanted,
};

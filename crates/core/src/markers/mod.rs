//! Markers with which planned reboots and remediations see each other, and with which other health
//! checkers see our reboots.
//!
//! **For:** the remediator's Lease, which the budget of planned reboots counts and which lets only
//! one control-plane node be out at a time ([`RemediationLeaseRecord`],
//! [`find_control_plane_conflict`]); and the markers that keep other health checkers off a node
//! that we reboot ([`wanted_markers`], [`decide`]).
//! **May touch:** nothing.
//! **Promises:** only markers with our own value are removed (S3); a marker exists only while a
//! planned reboot of ours is under way, and a new leader finds the markers that a dead leader left
//! (S6).
//!
//! Source: specification §2.2, §4.4; medik8s' `common/pkg/lease`; Cluster API's annotations.

mod maintenance_markers;
mod remediation_lease;
#[cfg(test)]
mod tests;

pub use maintenance_markers::{
    MARKER_REFRESH_INTERVAL, MARKER_VALUE, MachineMarker, MaintenanceLease, MarkerAction,
    RebootingNode, decide, maintenance_lease_name, wanted_markers,
};
pub use remediation_lease::{RemediationLeaseRecord, find_control_plane_conflict};

//! Condition types on Nodes, and on the Machines that carry them.

/// A reboot is wanted and waits for its turn, or is under way. Name from KEP-5683.
pub const MAINTENANCE_PLANNED: &str = "MaintenancePlanned";
/// The node is being drained. Name from KEP-5683.
pub const DRAIN_IN_PROGRESS: &str = "DrainInProgress";
/// The node is drained. Name from KEP-5683.
pub const DRAINED: &str = "Drained";
/// The reboot, until the node is back in service. Name from KEP-5683.
pub const MAINTENANCE_IN_PROGRESS: &str = "MaintenanceInProgress";
/// A trigger is still there, unchanged, after the boot that it caused. Source: specification §2.1.
pub const SENTINEL_SURVIVED_REBOOT: &str = "SentinelSurvivedReboot";
/// A trigger could not be read: whether a reboot is wanted is unknown. Source: specification §2.1.
pub const REBOOT_TRIGGER_UNKNOWN: &str = "RebootTriggerUnknown";
/// On a Machine, a Node or a `PowerRemediation`: whether a remediation is under way, and what it
/// waits for.
pub const REMEDIATION: &str = "Remediation";
/// On a Machine: False hands it back to its owner, who replaces it. Source: Cluster API.
pub const OWNER_REMEDIATED: &str = "OwnerRemediated";

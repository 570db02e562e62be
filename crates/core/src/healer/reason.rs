//! Reasons: one CamelCase word each. A step that the healer takes in place of a coordinator has the
//! reason that the coordinator would give ([`crate::reboot::reason`]).

/// The healer waits to see whether the node's coordinator gives a sign.
pub const WATCHING_COORDINATOR: &str = "WatchingCoordinator";
/// The coordinator gave no sign, so the healer takes its next step.
pub const COORDINATOR_GAVE_NO_SIGN: &str = "CoordinatorGaveNoSign";
/// The node is proved to have booted anew, but its kubelet has not reported since.
pub const AWAITING_KUBELET: &str = "AwaitingKubelet";
/// A lock that was held without being used is released.
pub const LOCK_UNUSED: &str = "LockUnused";
/// A lock is held for a Node that has no reboot under way.
pub const LOCK_WITHOUT_REBOOT: &str = "LockWithoutReboot";
/// Two reads have to show whether the holder's Node still exists.
pub const LOOKING_AT_HOLDER: &str = "LookingAtHolder";
/// A host that is not a Node has held a lock for long.
pub const LOCK_HELD_FOR_LONG: &str = "LockHeldForLong";
/// The request of a lock API process that is gone is removed from its lock.
pub const LOCK_REQUEST_GONE: &str = "LockRequestGone";
/// A node is locked through the lock API, and no Lease is held for it.
pub const API_LOCK_WITHOUT_LEASE: &str = "ApiLockWithoutLease";
/// Annotation `dogwatch.dev/api-lock` cannot be parsed; Dogwatch does not change it.
pub const API_LOCK_UNREADABLE: &str = "ApiLockUnreadable";
/// A process of the lock API is gone; its presence Lease is deleted.
pub const LOCK_API_PROCESS_GONE: &str = "LockApiProcessGone";
/// A reboot that does not happen is handed over to the power controller.
pub const REBOOT_ESCALATED: &str = "RebootEscalated";
/// The reboot cannot be handed over to the power controller.
pub const ESCALATION_BLOCKED: &str = "EscalationBlocked";

//! Reasons: one CamelCase word each. What is done in the place of a coordinator has the reason that
//! the coordinator would give ([`crate::reboot::reason`]).

/// The healer watches whether the node's coordinator gives a sign.
pub const WATCHING: &str = "WatchingCoordinator";
/// The coordinator gave no sign; what it would do is done for it.
pub const NO_SIGN: &str = "CoordinatorGaveNoSign";
/// The node is proved to have booted anew, but its kubelet has not reported since.
pub const AWAITING_KUBELET: &str = "AwaitingKubelet";
/// A lock that was held without being used is taken back.
pub const LOCK_UNUSED: &str = "LockUnused";
/// A lock is held for a Node that has no reboot under way.
pub const LOCK_WITHOUT_REBOOT: &str = "LockWithoutReboot";
/// Two reads say whether the holder's Node is still there.
pub const LOOKING_AT_HOLDER: &str = "LookingAtHolder";
/// A host that is no Node holds for long.
pub const LOCK_STALE: &str = "LockHeldForLong";
/// A request of a lock API process that is gone is taken off its lock.
pub const REQUEST_GONE: &str = "LockRequestGone";
/// A node is locked by the API, and no Lease is held for it.
pub const API_LOCK_LEFT: &str = "ApiLockWithoutLease";
/// Annotation `dogwatch.dev/api-lock` cannot be read; it is left alone.
pub const API_LOCK_UNREADABLE: &str = "ApiLockUnreadable";
/// A process of the lock API is gone; its presence Lease goes.
pub const PRESENCE_GONE: &str = "LockApiProcessGone";
/// A reboot that does not happen is handed over to the power controller.
pub const ESCALATING: &str = "RebootEscalated";
/// It cannot be handed over.
pub const ESCALATION_BLOCKED: &str = "EscalationBlocked";

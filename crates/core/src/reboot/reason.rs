//! Reasons: one CamelCase word each, the same in conditions, Events, metrics, logs and docs.

pub const NO_REBOOT_WANTED: &str = "NoRebootWanted";
/// The admission policies do not know the account that the coordinator runs as.
pub const ACCOUNT_UNKNOWN: &str = "AccountUnknown";
pub const NODE_NOT_SEEN: &str = "NodeNotSeen";
/// The API server says that our Node does not exist.
pub const NODE_GONE: &str = "NodeGone";
/// The host's boot id cannot be read. Without it no reboot can be proved, so none begins.
pub const BOOT_ID_UNREADABLE: &str = "BootIdUnreadable";
/// The record on the Node cannot be parsed; Dogwatch does not change it.
pub const RECORD_UNREADABLE: &str = "RecordUnreadable";
/// The request on the Node cannot be parsed; Dogwatch does not change it.
pub const REQUEST_UNREADABLE: &str = "RequestUnreadable";
/// A sentinel could not be read.
pub const TRIGGER_UNKNOWN: &str = "TriggerUnknown";
/// A trigger is still present after the boot it caused.
pub const SENTINEL_SURVIVED_REBOOT: &str = "SentinelSurvivedReboot";
pub const SUPERSEDED_BY_NEWER_RUN: &str = "SupersededByNewerRun";
/// A trigger appeared; the node starts to wait for its reboot.
pub const REBOOT_PLANNED: &str = "RebootPlanned";
/// This run takes over the record of an older run.
pub const ADOPTING_OLDER_RUN: &str = "AdoptingOlderRun";
pub const LOOKING_AT_POLICIES: &str = "LookingAtPolicies";
/// The RebootPolicies cannot be read: no reboot begins.
pub const POLICIES_UNREADABLE: &str = "PoliciesUnreadable";
/// A field of the policy cannot be parsed: no reboot of its nodes begins.
pub const POLICY_INVALID: &str = "PolicyInvalid";
pub const PAUSED: &str = "Paused";
/// No window of the policy is open.
pub const OUTSIDE_WINDOW: &str = "OutsideWindow";
/// A window is open, but closes before a drain would have to be finished.
pub const WINDOW_TOO_SHORT: &str = "WindowTooShort";
/// The node's last reboot is more recent than the policy's `minInterval`.
pub const REBOOTED_TOO_RECENTLY: &str = "RebootedTooRecently";
pub const LOOKING_AT_GATES: &str = "LookingAtGates";
pub const GATE_SHUT: &str = "GateShut";
/// The lock API has taken this node out of service.
pub const LOCKED_THROUGH_API: &str = "LockedThroughApi";
/// The remediator is fencing this machine.
pub const BEING_FENCED: &str = "BeingFenced";
/// A person stopped the reboot.
pub const ABORTED: &str = "Aborted";
pub const LOOKING_AT_LOCK: &str = "LookingAtLock";
/// Every slot is held by other holders.
pub const LOCK_HELD_BY_OTHER: &str = "LockHeldByOther";
/// Another node is next in line.
pub const NOT_OUR_TURN: &str = "NotOurTurn";
pub const BIDDING: &str = "Bidding";
/// It is unknown whether the last bid succeeded; the node bids again to find out.
pub const SETTLING_BID: &str = "SettlingBid";
/// A Lease whose holder is proved gone is cleared.
pub const BREAKING_LOCK: &str = "BreakingLock";
pub const COUNTING_BUDGET: &str = "CountingBudget";
/// Too many nodes of the group are unavailable.
pub const OVER_BUDGET: &str = "OverBudget";
/// An attempt failed; the next one waits.
pub const BACKING_OFF: &str = "BackingOff";
pub const DRAINING: &str = "Draining";
/// Something keeps the drain from going on for the moment.
pub const DRAIN_BLOCKED: &str = "DrainBlocked";
/// A controller replaces pods on the cordoned node each time they leave; its last pod stays.
pub const PODS_COME_BACK: &str = "PodsComeBack";
/// The remaining pods are deleted, because the deadline has passed.
pub const DELETING_REST: &str = "DeletingRest";
/// Volumes of drained pods are still attached.
pub const DETACHING_VOLUMES: &str = "DetachingVolumes";
/// The drain took longer than `drainTimeout`.
pub const DRAIN_TIMED_OUT: &str = "DrainTimedOut";
/// The eviction of a pod failed for good.
pub const DRAIN_INCOMPLETE: &str = "DrainIncomplete";
/// Somebody uncordoned the node while we drained it.
pub const UNCORDONED_BY_OTHER: &str = "UncordonedByOther";
/// We no longer hold the lock.
pub const LOCK_LOST: &str = "LockLost";
/// Every trigger of this reboot is gone.
pub const TRIGGER_GONE: &str = "TriggerGone";
pub const REBOOTING: &str = "Rebooting";
/// The reboot command was started; the node waits for the new boot.
pub const AWAITING_REBOOT: &str = "AwaitingReboot";
/// The command exited with an error; a delayed shutdown may still come.
pub const REBOOT_COMMAND_FAILED: &str = "RebootCommandFailed";
pub const REBOOT_COMMAND_NOT_STARTED: &str = "RebootCommandNotStarted";
/// The node did not reboot, and no further attempt is safe.
pub const REBOOT_FAILED: &str = "RebootFailed";
pub const NEW_BOOT: &str = "NewBoot";
pub const AWAITING_READY: &str = "AwaitingReady";
/// The Node has to stay Ready for a while.
pub const SETTLING: &str = "Settling";
pub const UNCORDONING: &str = "Uncordoning";
pub const RETURN_GATES_SHUT: &str = "ReturnGatesShut";
/// Names of budgets in the record that cannot be read from the API server.
pub const BUDGETS_IGNORED: &str = "BudgetsIgnored";
/// A return gate stayed shut past its deadline.
pub const RETURN_GATES_TIMED_OUT: &str = "ReturnGatesTimedOut";
pub const RELEASING_LOCK: &str = "ReleasingLock";
/// The reboot is complete and the node is back in service.
pub const REBOOTED: &str = "Rebooted";
/// A needed read fails: the call is refused, or the API server cannot be reached.
pub const CANNOT_LOOK: &str = "CannotLook";

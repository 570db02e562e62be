//! Reasons: one CamelCase word each, the same in conditions, Events, metrics, logs and docs.

/// Nothing wants a reboot.
pub const IDLE: &str = "NoRebootWanted";
/// The admission policies do not know the account that the coordinator runs as.
pub const ACCOUNT_UNKNOWN: &str = "AccountUnknown";
/// Our Node was not seen yet.
pub const NODE_NOT_SEEN: &str = "NodeNotSeen";
/// The API server says that our Node does not exist.
pub const NODE_GONE: &str = "NodeGone";
/// The host's boot id cannot be read: nothing can be proved, so nothing is begun.
pub const BOOT_ID_UNREADABLE: &str = "BootIdUnreadable";
/// The record on the Node cannot be read; it is left alone.
pub const RECORD_UNREADABLE: &str = "RecordUnreadable";
/// The request on the Node cannot be read; it is left alone.
pub const REQUEST_UNREADABLE: &str = "RequestUnreadable";
/// A sentinel could not be read.
pub const TRIGGER_UNKNOWN: &str = "TriggerUnknown";
/// A trigger survived the boot it caused.
pub const SENTINEL_SURVIVED: &str = "SentinelSurvivedReboot";
/// A newer run took over.
pub const SUPERSEDED: &str = "SupersededByNewerRun";
/// A reboot is wanted from now on.
pub const PLANNED: &str = "RebootPlanned";
/// The record of an older run is taken over.
pub const ADOPTING: &str = "AdoptingOlderRun";
/// The RebootPolicies are being looked at.
pub const LOOKING_AT_POLICIES: &str = "LookingAtPolicies";
/// The RebootPolicies cannot be read: nothing begins.
pub const POLICIES_UNREADABLE: &str = "PoliciesUnreadable";
/// The policy has parts that cannot be understood: nothing that it governs begins.
pub const POLICY_INVALID: &str = "PolicyInvalid";
/// The policy is paused.
pub const PAUSED: &str = "Paused";
/// No window of the policy is open.
pub const OUTSIDE_WINDOW: &str = "OutsideWindow";
/// A window is open, but closes before a drain would have to be done.
pub const WINDOW_TOO_SHORT: &str = "WindowTooShort";
/// The node's last reboot is more recent than the policy's `minInterval`.
pub const TOO_SOON: &str = "RebootedTooRecently";
/// The gates of the policy are being asked.
pub const LOOKING_AT_GATES: &str = "LookingAtGates";
/// A gate of the policy is shut.
pub const GATE_SHUT: &str = "GateShut";
/// The lock API has taken this node out of service.
pub const LOCKED_THROUGH_API: &str = "LockedThroughApi";
/// The remediator has this machine in hand.
pub const BEING_FENCED: &str = "BeingFenced";
/// A person stopped the reboot.
pub const ABORTED: &str = "Aborted";
/// The lock's Leases are being looked at.
pub const LOOKING_AT_LOCK: &str = "LookingAtLock";
/// Somebody else holds every slot.
pub const LOCK_HELD: &str = "LockHeldByOther";
/// It is another one's turn first.
pub const NOT_OUR_TURN: &str = "NotOurTurn";
/// A bid was sent.
pub const BIDDING: &str = "Bidding";
/// The end of a bid is unknown.
pub const SETTLING_BID: &str = "SettlingBid";
/// A lock whose holder is proved gone is cleared.
pub const BREAKING_LOCK: &str = "BreakingLock";
/// The budget is being counted.
pub const COUNTING: &str = "CountingBudget";
/// Too many of the group are out.
pub const OVER_BUDGET: &str = "OverBudget";
/// An attempt failed; the next one waits.
pub const BACKING_OFF: &str = "BackingOff";
/// The node is being drained.
pub const DRAINING: &str = "Draining";
/// The drain cannot go on for the moment.
pub const DRAIN_BLOCKED: &str = "DrainBlocked";
/// A controller puts pods back on the cordoned node as often as they leave; the last one stays.
pub const PODS_COME_BACK: &str = "PodsComeBack";
/// What is left is being deleted after the deadline.
pub const DELETING_REST: &str = "DeletingRest";
/// Volumes of drained pods are still attached.
pub const DETACHING: &str = "DetachingVolumes";
/// The drain took longer than `drainTimeout`.
pub const DRAIN_TIMED_OUT: &str = "DrainTimedOut";
/// A pod could not be evicted for good.
pub const DRAIN_INCOMPLETE: &str = "DrainIncomplete";
/// Somebody uncordoned the node while we drained it.
pub const VETOED: &str = "UncordonedByOther";
/// The lock is not ours any more.
pub const LOCK_LOST: &str = "LockLost";
/// What asked for the reboot is gone.
pub const TRIGGER_GONE: &str = "TriggerGone";
/// The reboot command is about to be started.
pub const REBOOTING: &str = "Rebooting";
/// The command was started; the end is awaited.
pub const AWAITING_REBOOT: &str = "AwaitingReboot";
/// The command ended with an error; a delayed shutdown may still come.
pub const COMMAND_FAILED: &str = "RebootCommandFailed";
/// The command could not be started.
pub const COMMAND_NOT_STARTED: &str = "RebootCommandNotStarted";
/// The node did not reboot, and nothing safe is left to try.
pub const REBOOT_FAILED: &str = "RebootFailed";
/// A new boot id was seen.
pub const BOOTED: &str = "NewBoot";
/// The Node is not Ready yet.
pub const AWAITING_READY: &str = "AwaitingReady";
/// The Node has to stay Ready for a while.
pub const SETTLING: &str = "Settling";
/// Our cordon is being undone.
pub const UNCORDONING: &str = "Uncordoning";
/// A return gate is shut.
pub const GATES_SHUT: &str = "ReturnGatesShut";
/// Names of budgets in the record that cannot be looked at.
pub const BUDGETS_IGNORED: &str = "BudgetsIgnored";
/// A return gate stayed shut past its deadline.
pub const GATES_TIMED_OUT: &str = "ReturnGatesTimedOut";
/// The lock is being released.
pub const RELEASING: &str = "ReleasingLock";
/// It is done.
pub const FINISHED: &str = "Rebooted";
/// What has to be looked at cannot be: a refused call, an API server that is away.
pub const TROUBLE: &str = "CannotLook";

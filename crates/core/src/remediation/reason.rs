//! The reasons of remediation decisions: one CamelCase word each, in conditions, Events and
//! metrics.

pub const NOT_NEEDED: &str = "NotNeeded";
/// A request was observed; Dogwatch finds out whether it is needed.
pub const TAKEN_UP: &str = "TakenUp";
/// Lease, fencing annotation and fresh reads, before the key.
pub const PREPARING: &str = "Preparing";
/// The key was added: the host goes off.
pub const POWERING_OFF: &str = "PoweringOff";
/// The power cannot be read: neither on nor off.
pub const POWER_UNKNOWN: &str = "PowerUnknown";
/// The host is off, and its proof is not complete.
pub const PROVING_OFF: &str = "ProvingOff";
/// The host is proved off, but its system UUID cannot be compared with the Node's, so that the Node
/// must be silent for a while.
pub const WAITING_FOR_SILENCE: &str = "WaitingForSilence";
/// The Node is deleted, or its workloads are released.
pub const RELEASED: &str = "Released";
/// The taint is set, and pods or attachments are left.
pub const RELEASING: &str = "Releasing";
/// The key is removed, so that the host comes back.
pub const POWERING_ON: &str = "PoweringOn";
/// The host is on; its Node is not Ready with another boot yet.
pub const WAITING_FOR_NODE: &str = "WaitingForNode";
/// The Node is Ready with another boot.
pub const REMEDIATED: &str = "Remediated";
/// Withdrawn before the host was off.
pub const WITHDRAWN: &str = "Withdrawn";
/// The Node is Ready and has sent heartbeats since the request.
pub const NODE_HEALTHY: &str = "NodeHealthy";
/// An attempt failed: its key is removed, and the next attempt begins.
pub const RETRYING: &str = "Retrying";
/// The Node comes back under its name, so its deletion is not permanent.
pub const NODE_COMES_BACK: &str = "NodeComesBack";
pub const ATTEMPTS_USED_UP: &str = "AttemptsUsedUp";
/// The health check has given up on the remediation.
pub const TIMED_OUT: &str = "TimedOut";
/// Another control-plane host is held off, or in a planned reboot.
pub const CONTROL_PLANE_ONE_BY_ONE: &str = "ControlPlaneOneByOne";
/// `--max-fenced` hosts are held off already.
pub const TOO_MANY_FENCED: &str = "TooManyFenced";
/// This host was remediated a short while ago.
pub const COOLING_DOWN: &str = "CoolingDown";
/// The node is in phase `rebooting` of a planned reboot, and its `rebootTimeout` has not passed.
pub const PLANNED_REBOOT: &str = "PlannedReboot";
pub const NO_HOST: &str = "NoHost";
/// The host that the Machine is linked to does not exist.
pub const HOST_NOT_FOUND: &str = "HostNotFound";
/// The link cannot be parsed, or leads to a host that it may not use.
pub const BAD_HOST_LINK: &str = "BadHostLink";
/// The host's `consumerRef` names somebody else.
pub const HOST_OF_ANOTHER: &str = "HostOfAnother";
/// Two Machines, or two Nodes, are linked to one host.
pub const HOST_SHARED: &str = "HostShared";
/// The marked Node belongs to a Machine, which has to be marked instead.
pub const NODE_OF_A_MACHINE: &str = "NodeOfAMachine";
/// Two Machines claim one Node.
pub const NODE_SHARED: &str = "NodeShared";
/// The host carries no Node, and the request names none that has a host.
pub const NO_NODE: &str = "NoNode";
/// The BMC's system UUID is not the Node's.
pub const WRONG_HOST: &str = "WrongHost";
/// The system UUIDs cannot be compared, and `--require-host-identity` is set.
pub const IDENTITY_UNKNOWN: &str = "IdentityUnknown";
/// The Node sent a heartbeat after its host was read off.
pub const NODE_IS_ALIVE: &str = "NodeIsAlive";
/// The host is not provisioned: the power controller ignores reboot annotations there.
pub const HOST_NOT_PROVISIONED: &str = "HostNotProvisioned";
/// `cluster.x-k8s.io/paused`.
pub const PAUSED: &str = "Paused";
/// The request's spec is invalid, or the cluster does not allow it.
pub const BAD_REQUEST: &str = "BadRequest";
/// Another Node of that name exists.
pub const NODE_REPLACED: &str = "NodeReplaced";
/// A key with our name has a value that is not ours.
pub const FOREIGN_KEY: &str = "ForeignKey";
/// A key whose Machine, Node or request is gone.
pub const ORPHANED_KEY: &str = "OrphanedKey";
/// The backup of the old Node is restored on the new one.
pub const RESTORING: &str = "Restoring";
/// The truth table has no row for the observed state.
pub const NOTHING_TO_DO: &str = "NothingToDo";
/// The API server refused the write.
pub const REFUSED: &str = "Refused";

//! Why a remediation does what it does: one CamelCase word each, in conditions, Events and metrics.

/// Nothing is wanted.
pub const NOT_NEEDED: &str = "NotNeeded";
/// A request was seen; whether it is needed is looked at.
pub const TAKEN_UP: &str = "TakenUp";
/// Lease, mark and fresh reads, before the key.
pub const PREPARING: &str = "Preparing";
/// The key was added: the host goes off.
pub const POWERING_OFF: &str = "PoweringOff";
/// The power cannot be read: neither on nor off.
pub const POWER_UNKNOWN: &str = "PowerUnknown";
/// The host is off, and its proof is not complete.
pub const PROVING_OFF: &str = "ProvingOff";
/// Proved off; the BMC tells no UUID that is the Node's, so that its silence has to last for a while.
pub const WAITING_FOR_SILENCE: &str = "WaitingForSilence";
/// The Node is deleted, or its workloads are released.
pub const RELEASED: &str = "Released";
/// The taint stands, and pods or attachments are left.
pub const RELEASING: &str = "Releasing";
/// The key goes: the host comes back.
pub const POWERING_ON: &str = "PoweringOn";
/// The host is on; its Node is not Ready with another boot yet.
pub const WAITING_FOR_NODE: &str = "WaitingForNode";
/// It is Ready, with another boot.
pub const REMEDIATED: &str = "Remediated";
/// Called off before the host was off.
pub const WITHDRAWN: &str = "Withdrawn";
/// The Node is Ready, with signs of life since the request.
pub const NODE_HEALTHY: &str = "NodeHealthy";
/// An attempt was not enough: its key goes, and the next one begins.
pub const RETRYING: &str = "Retrying";
/// The Node comes back under its name: it is no permanent deletion.
pub const NODE_COMES_BACK: &str = "NodeComesBack";
/// All attempts are used up.
pub const ATTEMPTS_USED_UP: &str = "AttemptsUsedUp";
/// The health check has given up on it.
pub const TIMED_OUT: &str = "TimedOut";
/// Another control-plane host is held off, or rebooted as planned.
pub const CONTROL_PLANE_ONE_BY_ONE: &str = "ControlPlaneOneByOne";
/// `--max-fenced` hosts are held off already.
pub const TOO_MANY_FENCED: &str = "TooManyFenced";
/// This host was remediated a short while ago.
pub const COOLING_DOWN: &str = "CoolingDown";
/// A planned reboot is at its `rebooting`, and its `rebootTimeout` has not passed.
pub const PLANNED_REBOOT: &str = "PlannedReboot";
/// The Machine is linked to no host.
pub const NO_HOST: &str = "NoHost";
/// The host that it is linked to is not there.
pub const HOST_NOT_FOUND: &str = "HostNotFound";
/// The link cannot be read, or leads where it must not.
pub const BAD_HOST_LINK: &str = "BadHostLink";
/// The host says that it is somebody else's.
pub const HOST_OF_ANOTHER: &str = "HostOfAnother";
/// Two Machines, or two Nodes, are linked to one host.
pub const HOST_SHARED: &str = "HostShared";
/// A marked Node is a Machine's: the Machine is to be marked.
pub const NODE_OF_A_MACHINE: &str = "NodeOfAMachine";
/// Two Machines say that they are one Node.
pub const NODE_SHARED: &str = "NodeShared";
/// The host carries no Node, and the request names none that has a host.
pub const NO_NODE: &str = "NoNode";
/// The BMC's system UUID is not the Node's.
pub const WRONG_HOST: &str = "WrongHost";
/// The system UUIDs cannot be compared, and `--require-host-identity` is set.
pub const IDENTITY_UNKNOWN: &str = "IdentityUnknown";
/// The Node gave a sign of life after its host was read off.
pub const NODE_IS_ALIVE: &str = "NodeIsAlive";
/// The host is not provisioned: reboot annotations are not obeyed there.
pub const HOST_NOT_PROVISIONED: &str = "HostNotProvisioned";
/// `cluster.x-k8s.io/paused`.
pub const PAUSED: &str = "Paused";
/// The request's spec, or the cluster, does not allow it.
pub const BAD_REQUEST: &str = "BadRequest";
/// Another Node of that name is there.
pub const NODE_REPLACED: &str = "NodeReplaced";
/// A key of our name with a value that is not ours.
pub const FOREIGN_KEY: &str = "ForeignKey";
/// A key whose Machine, Node or request is gone.
pub const ORPHANED_KEY: &str = "OrphanedKey";
/// What was on the old Node comes back on the new one.
pub const RESTORING: &str = "Restoring";
/// The table says nothing of what is seen.
pub const NOTHING_TO_DO: &str = "NothingToDo";
/// The API server refused the write.
pub const REFUSED: &str = "Refused";

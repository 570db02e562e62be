//! The labels that Dogwatch writes or reads.

/// Node: `waiting` while it waits for the lock, so that the node that releases the lock finds it
/// with one metadata-only list. Source: specification §2.2.
pub const REBOOT: &str = "dogwatch.dev/reboot";
/// Value of [`REBOOT`] while a node waits.
pub const WAITING: &str = "waiting";
/// Node: `true` takes it out of every budget. Source: specification §2.2.
pub const IGNORE: &str = "dogwatch.dev/ignore";
/// Node: it is a control-plane node. Source: Kubernetes.
pub const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// Node: `false` keeps NVSentinel from acting on it. Source: NVSentinel, maintenance operations; its
/// default rule sets read it.
pub const NVSENTINEL_MANAGED: &str = "k8saas.nvidia.com/ManagedByNVSentinel";
/// Value of [`NVSENTINEL_MANAGED`] during a planned reboot.
pub const NVSENTINEL_MUTED: &str = "false";
/// Lease of a slot: its group.
pub const GROUP: &str = "dogwatch.dev/group";
/// RebootPolicy: what created it, and may delete it.
pub const MADE_BY: &str = "dogwatch.dev/made-by";
/// Value of [`MADE_BY`] for a policy that `dogwatch pause --all` created.
pub const MADE_BY_PAUSE: &str = "pause";
/// ConfigMap in Dogwatch's namespace: it holds the backup of a Node that a remediation deletes.
pub const NODE_BACKUP: &str = "dogwatch.dev/node-backup";
/// NodeReboot: the UID of the RebootSchedule that made it.
pub const SCHEDULE_UID: &str = "dogwatch.dev/schedule-uid";

//! Labels.

/// On a Node: `waiting` while it waits for the lock, so that the leaver finds it with one
/// metadata-only list. Source: specification §2.2.
pub const REBOOT: &str = "dogwatch.dev/reboot";
/// The value of [`REBOOT`] while a node waits.
pub const WAITING: &str = "waiting";
/// On a Node: `true` takes it out of every budget. Source: specification §2.2.
pub const IGNORE: &str = "dogwatch.dev/ignore";
/// On a Node: its role. Source: Kubernetes.
pub const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// On a slot's Lease: the group it belongs to.
pub const GROUP: &str = "dogwatch.dev/group";
/// On a RebootPolicy: what made it, and may take it away again.
pub const MADE_BY: &str = "dogwatch.dev/made-by";
/// The value of [`MADE_BY`] where `dogwatch pause --all` made it.
pub const MADE_BY_PAUSE: &str = "pause";
/// On a ConfigMap in Dogwatch's namespace: it keeps what was on a Node that remediation deleted.
pub const NODE_BACKUP: &str = "dogwatch.dev/node-backup";

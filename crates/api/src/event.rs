//! Namespace and reasons of Events.

/// Namespace of Events about Nodes, as for all cluster-scoped objects.
pub const NODE_EVENT_NAMESPACE: &str = "default";

/// Reason of the Event on a Lease, and on the Node that held it, when a person breaks that lock
/// (`dogwatch unlock`). Source: specification §2.2.
pub const LOCK_BROKEN: &str = "LockBrokenByPerson";

//! Events.

/// Where Events about Nodes live, as for all cluster-scoped objects.
pub const NODE_EVENT_NAMESPACE: &str = "default";

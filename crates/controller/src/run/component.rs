//! The components of the controller's process.

/// A component of one replica. Source: specification §7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ControllerComponent {
    /// The healer, policy status and maintenance markers, on the leader.
    Healer,
    /// The lock API, on every replica. Strangers can connect to it: it runs best as a process of
    /// its own.
    Lock,
    /// The power of BareMetalHosts, on the leader.
    Power,
    /// Remediation of failed machines, on the leader; needs [`ControllerComponent::Power`].
    Remediation,
    /// The dashboard, on every replica; `ControllerSetup::web` runs it.
    Web,
}

impl ControllerComponent {
    /// Whether the component acts for the whole cluster, so that only one replica may run it.
    pub(super) fn needs_leader(self) -> bool {
        match self {
            ControllerComponent::Healer
            | ControllerComponent::Power
            | ControllerComponent::Remediation => true,
            ControllerComponent::Lock | ControllerComponent::Web => false,
        }
    }

    /// Whether the component reads Nodes and Leases from the watches.
    pub(super) fn needs_cluster_watch(self) -> bool {
        match self {
            ControllerComponent::Healer | ControllerComponent::Remediation => true,
            ControllerComponent::Lock | ControllerComponent::Power | ControllerComponent::Web => {
                false
            }
        }
    }
}

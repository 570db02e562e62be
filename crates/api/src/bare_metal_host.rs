//! `BareMetalHost` (`metal3.io/v1alpha1`): the power part of metal3's schema, with metal3's names
//! and meanings, and Dogwatch's own fields. Source: specification §3; metal3's
//! `metal3.io_baremetalhosts.yaml`.
//!
//! metal3's other fields stay on the objects: [`host_crd`] preserves unknown fields. Where metal3's
//! own CustomResourceDefinition is installed, ours must not replace it. metal3's drops Dogwatch's
//! fields (`status.power`, the two times); the power controller notices that and reports it.

use serde_json::Value;

use crate::manifest::parse_manifest;

#[cfg(test)]
pub(crate) mod crd;
mod spec;
mod status;
#[cfg(test)]
mod tests;

pub use spec::{
    BareMetalHostSpec, HostBmc, HostConsumerReference, HostPowerDevice, HostPowerLevel,
    HostPowerLevels, MAX_DEVICES, MAX_LEVELS,
};
pub use status::{
    BareMetalHostStatus, HostPowerChange, HostPowerCommandEnd, HostPowerCommandStatus,
    HostPowerStatus, HostProvisioningStatus, MAX_HOLDING_KEYS, MAX_POWER_HISTORY, PowerCommand,
    PowerState,
};

/// API group of the kind.
pub const GROUP: &str = "metal3.io";
/// API version of the kind.
pub const VERSION: &str = "v1alpha1";
/// `GROUP/VERSION`.
pub const API_VERSION: &str = "metal3.io/v1alpha1";
/// Kind of a host.
pub const KIND: &str = "BareMetalHost";
/// Plural, as in URLs and RBAC rules.
pub const PLURAL: &str = "baremetalhosts";
/// Name of the CustomResourceDefinition.
pub const CRD_NAME: &str = "baremetalhosts.metal3.io";
/// The CustomResourceDefinition, a YAML document.
pub const CRD_MANIFEST: &str = include_str!("../../../deploy/crds-hosts/baremetalhosts.yaml");

/// The Lease of metal3's own controller: its holder controls the power of the hosts. It is in the
/// controller's namespace (`POD_NAMESPACE`), else in the namespace that it watches. Source: metal3
/// baremetal-operator `main.go`, `leaderElectionID`.
pub const METAL3_LEADER_LEASE: &str = "baremetal-operator";

/// Types of the conditions that Dogwatch sets on a host.
pub mod condition {
    /// Whether power control would work now. False on the first failure of a check.
    pub const POWER_CONTROL_READY: &str = "PowerControlReady";
    /// Whether the power is as `spec.online` and the reboot annotations want it.
    pub const POWER_AS_WANTED: &str = "PowerAsWanted";
    /// Whether reboot annotations keep the host off, and whose.
    pub const HELD_OFF: &str = "HeldOff";

    /// Every condition type of this module.
    pub const ALL: [&str; 3] = [POWER_CONTROL_READY, POWER_AS_WANTED, HELD_OFF];
}

/// The CustomResourceDefinition.
pub fn host_crd() -> Value {
    parse_manifest(CRD_MANIFEST)
}

//! `BareMetalHost` (`metal3.io/v1alpha1`): the power part of metal3's schema, with metal3's names
//! and meanings, and Dogwatch's own fields. Source: specification §3; metal3's
//! `metal3.io_baremetalhosts.yaml`.
//!
//! metal3's other fields stay on the objects: [`host_crd`] preserves unknown fields. Where metal3's
//! own CustomResourceDefinition is installed, ours must not replace it. metal3's drops Dogwatch's
//! fields (`status.power`, the two times); the power controller notices that and reports it.

use serde_json::Value;

use crate::crd_definition::{AGE_COLUMN, CrdDefinition, PrinterColumn};

mod schema;
#[cfg(test)]
mod tests;

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
/// How many levels a host can have beside `spec.bmc`.
pub const MAX_LEVELS: usize = 4;
/// How many devices a level can have.
pub const MAX_DEVICES: usize = 8;

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

/// The whole CustomResourceDefinition, as in `deploy/crds-hosts`.
pub fn host_crd() -> Value {
    CrdDefinition {
        group: GROUP,
        version: VERSION,
        kind: KIND,
        plural: PLURAL,
        short_names: &["bmh", "bmhost"],
        categories: &[],
        columns: PRINTER_COLUMNS,
        wide: WIDE_COLUMNS,
        schema: schema::root_schema(),
        ..CrdDefinition::dogwatch_defaults()
    }
    .into_crd()
}

/// Columns of `kubectl get baremetalhosts`: heading, type, path, meaning. metal3's own come first,
/// in its order, then ours, then the age.
const PRINTER_COLUMNS: &[PrinterColumn] = &[
    (
        "Status",
        "string",
        ".status.operationalStatus",
        "Operational status",
    ),
    (
        "State",
        "string",
        ".status.provisioning.state",
        "Provisioning status",
    ),
    (
        "Consumer",
        "string",
        ".spec.consumerRef.name",
        "Consumer using this host",
    ),
    (
        "BMC",
        "string",
        ".spec.bmc.address",
        "Address of management controller",
    ),
    (
        "Online",
        "string",
        ".spec.online",
        "Whether the host should be on",
    ),
    (
        "Error",
        "string",
        ".status.errorType",
        "Type of the most recent error",
    ),
    (
        "Power",
        "string",
        ".status.power.state",
        "The last power state that was read",
    ),
    (
        "Held",
        "string",
        ".status.conditions[?(@.type==\"HeldOff\")].status",
        "Whether reboot annotations keep it off",
    ),
    (
        "Why",
        "string",
        ".status.conditions[?(@.type==\"PowerAsWanted\")].reason",
        "Why its power is as it is",
    ),
    (
        "Ready",
        "string",
        ".status.conditions[?(@.type==\"PowerControlReady\")].status",
        "Whether power control would work now",
    ),
    AGE_COLUMN,
];

/// Columns that only `-o wide` shows.
const WIDE_COLUMNS: &[&str] = &["Status", "BMC", "Why", "Ready"];

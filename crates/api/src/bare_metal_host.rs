//! `BareMetalHost` (`metal3.io/v1alpha1`): the power part of metal3's schema, by its names and with its
//! meaning, and ours beside it. Source: specification §3; metal3's `metal3.io_baremetalhosts.yaml`.
//!
//! What metal3 has more stays on the objects: [`crd()`] keeps fields that it does not know. Where
//! metal3's own CustomResourceDefinition is installed, ours must not replace it; that one drops what is
//! ours (`status.power`, the two times), which the power controller notices and says.

use serde_json::Value;

use crate::definition::{AGE, Column, Definition};

mod schema;
#[cfg(test)]
mod tests;

/// Its group.
pub const GROUP: &str = "metal3.io";
/// Its version.
pub const VERSION: &str = "v1alpha1";
/// Its group and version.
pub const API_VERSION: &str = "metal3.io/v1alpha1";
/// Its kind.
pub const KIND: &str = "BareMetalHost";
/// Its plural, as in URLs and RBAC rules.
pub const PLURAL: &str = "baremetalhosts";
/// The name of its CustomResourceDefinition.
pub const CRD_NAME: &str = "baremetalhosts.metal3.io";
/// How many levels a host can have beside `spec.bmc`.
pub const MAX_LEVELS: usize = 4;
/// How many devices a level can have.
pub const MAX_DEVICES: usize = 8;

/// The Lease of metal3's own controller: who holds it owns the power of its hosts. It lies in the
/// controller's namespace (`POD_NAMESPACE`), else in the one that it watches. Source: metal3
/// baremetal-operator `main.go`, `leaderElectionID`.
pub const OPERATOR_LEASE: &str = "baremetal-operator";

/// Types of the conditions on a host that are ours.
pub mod condition {
    /// Whether power control would work now. False on the first failure of a check.
    pub const POWER_CONTROL_READY: &str = "PowerControlReady";
    /// Whether the power is where `spec.online` and the reboot annotations want it.
    pub const POWER_AS_WANTED: &str = "PowerAsWanted";
    /// Whether reboot annotations keep it off, and whose.
    pub const HELD_OFF: &str = "HeldOff";

    /// All of them.
    pub const ALL: [&str; 3] = [POWER_CONTROL_READY, POWER_AS_WANTED, HELD_OFF];
}

/// The whole CustomResourceDefinition, as `deploy/crds-hosts` has it.
pub fn crd() -> Value {
    Definition {
        group: GROUP,
        version: VERSION,
        kind: KIND,
        plural: PLURAL,
        short_names: &["bmh", "bmhost"],
        categories: &[],
        columns: COLUMNS,
        wide: WIDE,
        schema: schema::root(),
        ..Definition::ours()
    }
    .crd()
}

/// What `kubectl get baremetalhosts` shows: heading, type, path, meaning.
/// metal3's own, in its order; then ours, before the age.
const COLUMNS: &[Column] = &[
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
        "What was last said of the power",
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
    AGE,
];

/// Those that only `-o wide` shows.
const WIDE: &[&str] = &["Status", "BMC", "Why", "Ready"];

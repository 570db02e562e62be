//! The CustomResourceDefinition.

use schemars::JsonSchema;
use serde_json::Value;

use super::{BareMetalHostSpec, BareMetalHostStatus, GROUP, KIND, PLURAL, VERSION};
use crate::schema::{self, AGE_COLUMN, CrdDefinition, PrinterColumn, schema_of_kind};

/// A physical machine, as metal3 describes it, and its power.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "dogwatch_k8s has the object, read field by field")]
struct BareMetalHost {
    /// metal3.io/v1alpha1
    api_version: Option<String>,
    /// BareMetalHost
    kind: Option<String>,
    #[schemars(schema_with = "schema::object_metadata", default)]
    metadata: (),
    /// What the host should be.
    spec: BareMetalHostSpec,
    /// What is known about the host.
    status: Option<BareMetalHostStatus>,
}

pub(crate) fn derived_crd() -> Value {
    CrdDefinition {
        group: GROUP,
        version: VERSION,
        kind: KIND,
        plural: PLURAL,
        short_names: &["bmh", "bmhost"],
        categories: &[],
        columns: PRINTER_COLUMNS,
        wide: WIDE_COLUMNS,
        schema: schema_of_kind::<BareMetalHost>(),
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

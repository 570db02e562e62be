//! The columns of `kubectl get` tables.

use serde_json::{Value, json};

use super::kinds::ServedResource;
use super::value::{list_at, number_at, text_at};

/// Name, type, format, and whether the column shows only with `-o wide`.
type TableColumn = (&'static str, &'static str, &'static str, bool);

const NAME_COLUMN: TableColumn = ("Name", "string", "name", false);
const AGE_COLUMN: TableColumn = ("Age", "string", "", false);

const NODE_COLUMNS: &[TableColumn] = &[
    NAME_COLUMN,
    ("Status", "string", "", false),
    ("Roles", "string", "", false),
    AGE_COLUMN,
    ("Version", "string", "", false),
    ("Internal-IP", "string", "", true),
    ("External-IP", "string", "", true),
    ("OS-Image", "string", "", true),
    ("Kernel-Version", "string", "", true),
    ("Container-Runtime", "string", "", true),
];
const POD_COLUMNS: &[TableColumn] = &[
    NAME_COLUMN,
    ("Ready", "string", "", false),
    ("Status", "string", "", false),
    ("Restarts", "string", "", false),
    AGE_COLUMN,
    ("IP", "string", "", true),
    ("Node", "string", "", true),
    ("Nominated Node", "string", "", true),
    ("Readiness Gates", "string", "", true),
];
const LEASE_COLUMNS: &[TableColumn] = &[NAME_COLUMN, ("Holder", "string", "", false), AGE_COLUMN];
const POD_DISRUPTION_BUDGET_COLUMNS: &[TableColumn] = &[
    NAME_COLUMN,
    ("Min Available", "string", "", false),
    ("Max Unavailable", "string", "", false),
    ("Allowed Disruptions", "integer", "", false),
    AGE_COLUMN,
];
const DAEMON_SET_COLUMNS: &[TableColumn] = &[
    NAME_COLUMN,
    ("Desired", "integer", "", false),
    ("Current", "integer", "", false),
    ("Ready", "integer", "", false),
    ("Up-to-date", "integer", "", false),
    ("Available", "integer", "", false),
    ("Node Selector", "string", "", false),
    AGE_COLUMN,
    ("Containers", "string", "", true),
    ("Images", "string", "", true),
    ("Selector", "string", "", true),
];
const REPLICA_SET_COLUMNS: &[TableColumn] = &[
    NAME_COLUMN,
    ("Desired", "integer", "", false),
    ("Current", "integer", "", false),
    ("Ready", "integer", "", false),
    AGE_COLUMN,
    ("Containers", "string", "", true),
    ("Images", "string", "", true),
    ("Selector", "string", "", true),
];
const DEPLOYMENT_COLUMNS: &[TableColumn] = &[
    NAME_COLUMN,
    ("Ready", "string", "", false),
    ("Up-to-date", "string", "", false),
    ("Available", "string", "", false),
    AGE_COLUMN,
    ("Containers", "string", "", true),
    ("Images", "string", "", true),
    ("Selector", "string", "", true),
];
const NAMESPACE_COLUMNS: &[TableColumn] =
    &[NAME_COLUMN, ("Status", "string", "", false), AGE_COLUMN];
const EVENT_COLUMNS: &[TableColumn] = &[
    ("Last Seen", "string", "", false),
    ("Type", "string", "", false),
    ("Reason", "string", "", false),
    ("Object", "string", "", false),
    ("Subobject", "string", "", true),
    ("Source", "string", "", true),
    ("Message", "string", "", false),
    ("First Seen", "string", "", true),
    ("Count", "string", "", true),
    ("Name", "string", "name", true),
];
const VOLUME_ATTACHMENT_COLUMNS: &[TableColumn] = &[
    NAME_COLUMN,
    ("Attacher", "string", "name", false),
    ("PV", "string", "", false),
    ("Node", "string", "", false),
    ("Attached", "boolean", "", false),
    AGE_COLUMN,
];
const DEFINITION_COLUMNS: &[TableColumn] = &[NAME_COLUMN, ("Created At", "date", "", false)];
const CONFIG_MAP_COLUMNS: &[TableColumn] =
    &[NAME_COLUMN, ("Data", "string", "", false), AGE_COLUMN];
const SECRET_COLUMNS: &[TableColumn] = &[
    NAME_COLUMN,
    ("Type", "string", "", false),
    ("Data", "string", "", false),
    AGE_COLUMN,
];
const OTHER_COLUMNS: &[TableColumn] = &[NAME_COLUMN, AGE_COLUMN];
/// Columns of a custom resource that defines none: its age is a time here, not a text.
const CUSTOM_RESOURCE_COLUMNS: &[TableColumn] = &[NAME_COLUMN, ("Age", "date", "", false)];

fn columns_of_resource(resource: &ServedResource) -> &'static [TableColumn] {
    if resource.custom.is_some() {
        return CUSTOM_RESOURCE_COLUMNS;
    }
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "nodes") => NODE_COLUMNS,
        ("", "pods") => POD_COLUMNS,
        ("", "namespaces") => NAMESPACE_COLUMNS,
        ("", "configmaps") => CONFIG_MAP_COLUMNS,
        ("", "secrets") => SECRET_COLUMNS,
        ("" | "events.k8s.io", "events") => EVENT_COLUMNS,
        ("apps", "daemonsets") => DAEMON_SET_COLUMNS,
        ("apps", "replicasets") => REPLICA_SET_COLUMNS,
        ("apps", "deployments") => DEPLOYMENT_COLUMNS,
        ("apps", "statefulsets") => &[NAME_COLUMN, ("Ready", "string", "", false), AGE_COLUMN],
        ("coordination.k8s.io", "leases") => LEASE_COLUMNS,
        ("policy", "poddisruptionbudgets") => POD_DISRUPTION_BUDGET_COLUMNS,
        ("storage.k8s.io", "volumeattachments") => VOLUME_ATTACHMENT_COLUMNS,
        ("apiextensions.k8s.io", "customresourcedefinitions") => DEFINITION_COLUMNS,
        _ => OTHER_COLUMNS,
    }
}

pub(crate) fn additional_printer_columns(resource: &ServedResource) -> Option<&[Value]> {
    let version = resource.custom.as_ref()?;
    Some(list_at(version, &["additionalPrinterColumns"])).filter(|columns| !columns.is_empty())
}

pub(crate) fn column_definitions(resource: &ServedResource) -> Value {
    let entry = |(name, kind, format, wide): &TableColumn| json!({ "name": name, "type": kind, "format": format, "description": "", "priority": i32::from(*wide) });
    let Some(printed) = additional_printer_columns(resource) else {
        return columns_of_resource(resource).iter().map(entry).collect();
    };
    let custom = printed.iter().map(|column| {
        let word = |field: &str| text_at(column, &[field]);
        json!({
            "name": word("name"), "type": word("type"), "format": word("format"),
            "description": word("description"), "priority": number_at(column, &["priority"]),
        })
    });
    [entry(&NAME_COLUMN)].into_iter().chain(custom).collect()
}

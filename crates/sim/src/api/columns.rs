//! Which columns a table has.

use serde_json::{Value, json};

use super::kinds::Resource;
use super::value::{items, number, text};

/// A column: name, type, format, whether it shows only with `-o wide`.
type Column = (&'static str, &'static str, &'static str, bool);

const NAME: Column = ("Name", "string", "name", false);
const AGE: Column = ("Age", "string", "", false);

const NODE: &[Column] = &[
    NAME,
    ("Status", "string", "", false),
    ("Roles", "string", "", false),
    AGE,
    ("Version", "string", "", false),
    ("Internal-IP", "string", "", true),
    ("External-IP", "string", "", true),
    ("OS-Image", "string", "", true),
    ("Kernel-Version", "string", "", true),
    ("Container-Runtime", "string", "", true),
];
const POD: &[Column] = &[
    NAME,
    ("Ready", "string", "", false),
    ("Status", "string", "", false),
    ("Restarts", "string", "", false),
    AGE,
    ("IP", "string", "", true),
    ("Node", "string", "", true),
    ("Nominated Node", "string", "", true),
    ("Readiness Gates", "string", "", true),
];
const LEASE: &[Column] = &[NAME, ("Holder", "string", "", false), AGE];
const BUDGET: &[Column] = &[
    NAME,
    ("Min Available", "string", "", false),
    ("Max Unavailable", "string", "", false),
    ("Allowed Disruptions", "integer", "", false),
    AGE,
];
const DAEMON_SET: &[Column] = &[
    NAME,
    ("Desired", "integer", "", false),
    ("Current", "integer", "", false),
    ("Ready", "integer", "", false),
    ("Up-to-date", "integer", "", false),
    ("Available", "integer", "", false),
    ("Node Selector", "string", "", false),
    AGE,
    ("Containers", "string", "", true),
    ("Images", "string", "", true),
    ("Selector", "string", "", true),
];
const REPLICA_SET: &[Column] = &[
    NAME,
    ("Desired", "integer", "", false),
    ("Current", "integer", "", false),
    ("Ready", "integer", "", false),
    AGE,
    ("Containers", "string", "", true),
    ("Images", "string", "", true),
    ("Selector", "string", "", true),
];
const DEPLOYMENT: &[Column] = &[
    NAME,
    ("Ready", "string", "", false),
    ("Up-to-date", "string", "", false),
    ("Available", "string", "", false),
    AGE,
    ("Containers", "string", "", true),
    ("Images", "string", "", true),
    ("Selector", "string", "", true),
];
const NAMESPACE: &[Column] = &[NAME, ("Status", "string", "", false), AGE];
const EVENT: &[Column] = &[
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
const VOLUME_ATTACHMENT: &[Column] = &[
    NAME,
    ("Attacher", "string", "name", false),
    ("PV", "string", "", false),
    ("Node", "string", "", false),
    ("Attached", "boolean", "", false),
    AGE,
];
const DEFINITION: &[Column] = &[NAME, ("Created At", "date", "", false)];
const CONFIG_MAP: &[Column] = &[NAME, ("Data", "string", "", false), AGE];
const SECRET: &[Column] = &[
    NAME,
    ("Type", "string", "", false),
    ("Data", "string", "", false),
    AGE,
];
const OTHER: &[Column] = &[NAME, AGE];
/// Of a custom resource that names none: its age is a time here, not a text.
const CUSTOM: &[Column] = &[NAME, ("Age", "date", "", false)];

fn layout(resource: &Resource) -> &'static [Column] {
    if resource.custom.is_some() {
        return CUSTOM;
    }
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "nodes") => NODE,
        ("", "pods") => POD,
        ("", "namespaces") => NAMESPACE,
        ("", "configmaps") => CONFIG_MAP,
        ("", "secrets") => SECRET,
        ("" | "events.k8s.io", "events") => EVENT,
        ("apps", "daemonsets") => DAEMON_SET,
        ("apps", "replicasets") => REPLICA_SET,
        ("apps", "deployments") => DEPLOYMENT,
        ("apps", "statefulsets") => &[NAME, ("Ready", "string", "", false), AGE],
        ("coordination.k8s.io", "leases") => LEASE,
        ("policy", "poddisruptionbudgets") => BUDGET,
        ("storage.k8s.io", "volumeattachments") => VOLUME_ATTACHMENT,
        ("apiextensions.k8s.io", "customresourcedefinitions") => DEFINITION,
        _ => OTHER,
    }
}

/// The columns of a custom resource.
pub(crate) fn printed(resource: &Resource) -> Option<&[Value]> {
    let version = resource.custom.as_ref()?;
    Some(items(version, &["additionalPrinterColumns"])).filter(|columns| !columns.is_empty())
}

/// `columnDefinitions`.
pub(crate) fn columns(resource: &Resource) -> Value {
    let entry = |(name, kind, format, wide): &Column| json!({ "name": name, "type": kind, "format": format, "description": "", "priority": i32::from(*wide) });
    let Some(printed) = printed(resource) else {
        return layout(resource).iter().map(entry).collect();
    };
    let custom = printed.iter().map(|column| {
        let word = |field: &str| text(column, &[field]);
        json!({
            "name": word("name"), "type": word("type"), "format": word("format"),
            "description": word("description"), "priority": number(column, &["priority"]),
        })
    });
    [entry(&NAME)].into_iter().chain(custom).collect()
}

//! Reads writes from a kube-apiserver's audit log: one `audit.k8s.io/v1` Event a line, at level
//! `RequestResponse` for nodes and leases.

use serde::Deserialize;
use serde_json::Value;

use super::history::{ClusterWrite, LeaseState, NodeState, WriteSource, WrittenObject};
use crate::lock::LockRecord;
use crate::reboot::ParsedAnnotation;
use dogwatch_api::{annotation, label, lease};

/// Why a line cannot be read. Each error names what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuditLineError {
    #[error(
        "line {line} is no JSON object of an audit log ({why}): give the API server's own log, one Event a line"
    )]
    Unreadable { line: usize, why: String },
    #[error("line {line} is longer than {MAX_LINE_BYTES} bytes: this is no line of an audit log")]
    TooLong { line: usize },
    #[error(
        "line {line} has no response object ({verb} of {resource} {name}): log nodes and leases at level RequestResponse"
    )]
    NoResponse {
        line: usize,
        verb: String,
        resource: String,
        name: String,
    },
}

/// Longer than any Event about a Node or Lease: etcd refuses objects beyond 1.5 MiB, and an Event
/// carries one twice.
pub const MAX_LINE_BYTES: usize = 4 << 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuditLogEvent {
    stage: String,
    verb: String,
    #[serde(default)]
    user: AuditLogUser,
    #[serde(default)]
    object_ref: AuditLogObject,
    #[serde(default)]
    response_status: AuditStatus,
    /// With the query: `dryRun=All` of a patch, for instance.
    #[serde(default, rename = "requestURI")]
    request_uri: String,
    /// Of a delete: its options.
    #[serde(default)]
    request_object: Option<Value>,
    #[serde(default)]
    response_object: Option<Value>,
    #[serde(default)]
    stage_timestamp: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AuditLogUser {
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AuditLogObject {
    resource: String,
    subresource: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AuditStatus {
    code: u16,
}

const WRITE_VERBS: [&str; 4] = ["create", "update", "patch", "delete"];

/// The write that a line tells of; `None` for reads, refused writes, dry runs, and other objects.
pub fn read_audit_line(
    file: usize,
    line: usize,
    text: &str,
) -> Result<Option<ClusterWrite>, AuditLineError> {
    if text.len() > MAX_LINE_BYTES {
        return Err(AuditLineError::TooLong { line });
    }
    if text.trim().is_empty() {
        return Ok(None);
    }
    let event: AuditLogEvent = serde_json::from_str(text).map_err(|error| {
        let why = error.to_string();
        AuditLineError::Unreadable { line, why }
    })?;
    let of = &event.object_ref;
    let ours = match of.resource.as_str() {
        "nodes" => true,
        "leases" => is_lock_lease(&of.name) || of.name.is_empty(),
        _ => false,
    };
    let accepted = (200..300).contains(&event.response_status.code);
    let wrote = WRITE_VERBS.contains(&event.verb.as_str()) && event.stage == "ResponseComplete";
    if !ours
        || !accepted
        || !wrote
        || is_dry_run(&event)
        || !matches!(of.subresource.as_str(), "" | "status")
    {
        return Ok(None);
    }
    let source = WriteSource {
        file,
        line,
        who: event.user.username.clone(),
        at: event.stage_timestamp.clone(),
    };
    if event.verb == "delete" {
        return Ok(Some(read_deletion(of, source)));
    }
    let Some(object) = &event.response_object else {
        return Err(AuditLineError::NoResponse {
            line,
            verb: event.verb,
            resource: event.object_ref.resource,
            name: event.object_ref.name,
        });
    };
    Ok(read_object(&of.resource, object, source))
}

/// An accepted dry run is answered like a write, and nothing is stored. A delete may ask for it in its
/// options, as kubectl does; every other write asks in the address.
fn is_dry_run(event: &AuditLogEvent) -> bool {
    let query = event.request_uri.split_once('?').map_or("", |(_, it)| it);
    let is_in_query = query
        .split('&')
        .filter_map(|part| part.strip_prefix("dryRun="))
        .any(|value| !value.is_empty());
    let options = event.request_object.as_ref();
    let options = options.filter(|_| event.verb == "delete");
    let stages = options.and_then(|options| options.get("dryRun")?.as_array());
    is_in_query || stages.is_some_and(|stages| !stages.is_empty())
}

fn read_deletion(of: &AuditLogObject, source: WriteSource) -> ClusterWrite {
    let name = of.name.clone();
    let object = if of.resource == "nodes" {
        WrittenObject::Node { name, after: None }
    } else {
        WrittenObject::Lease { name, after: None }
    };
    ClusterWrite {
        version: 0,
        relies_on: None,
        object,
        source,
    }
}

fn is_lock_lease(name: &str) -> bool {
    name.starts_with(lease::PREFIX)
}

fn read_object(resource: &str, object: &Value, source: WriteSource) -> Option<ClusterWrite> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let name = text("/metadata/name")?.to_owned();
    let version = text("/metadata/resourceVersion")?.parse().ok()?;
    let object = match resource {
        "nodes" => WrittenObject::Node {
            name,
            after: Some(Box::new(read_node_state(object))),
        },
        _ if is_lock_lease(&name) => WrittenObject::Lease {
            after: Some(Box::new(read_lease_state(object))),
            name,
        },
        _ => return None,
    };
    Some(ClusterWrite {
        version,
        relies_on: None,
        object,
        source,
    })
}

fn annotation_of<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object
        .get("metadata")?
        .get("annotations")?
        .get(key)?
        .as_str()
}

fn label_of<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get("labels")?.get(key)?.as_str()
}

fn parsed<T: for<'de> Deserialize<'de>>(object: &Value, key: &str) -> Option<T> {
    match ParsedAnnotation::from_text(annotation_of(object, key)) {
        ParsedAnnotation::Is(value) => Some(value),
        ParsedAnnotation::Absent | ParsedAnnotation::Bad { .. } => None,
    }
}

fn read_node_state(node: &Value) -> NodeState {
    let text = |path: &str| {
        node.pointer(path)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let cordoned = node.pointer("/spec/unschedulable").and_then(Value::as_bool);
    NodeState {
        uid: text("/metadata/uid").unwrap_or_default(),
        unschedulable: cordoned.unwrap_or(false),
        boot_id: text("/status/nodeInfo/bootID"),
        record: parsed(node, annotation::REBOOT),
        last_reboot: parsed(node, annotation::LAST_REBOOT),
        api_lock: annotation_of(node, annotation::API_LOCK).is_some(),
        ignored: label_of(node, label::IGNORE) == Some("true"),
    }
}

fn read_lease_state(lease: &Value) -> LeaseState {
    let holder = lease
        .pointer("/spec/holderIdentity")
        .and_then(Value::as_str);
    LeaseState {
        holder: holder
            .filter(|holder| !holder.is_empty())
            .map(str::to_owned),
        record: parsed::<LockRecord>(lease, annotation::HOLDER),
        remediation: parsed(lease, annotation::HOLDER),
    }
}

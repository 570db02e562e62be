//! Reads writes from a kube-apiserver's audit log: one `audit.k8s.io/v1` Event a line, at level
//! `RequestResponse` for nodes and leases.

use serde::Deserialize;
use serde_json::Value;

use super::history::{
    ClusterWrite, CordonChange, LeaseState, NodeState, WriteSource, WrittenKind, WrittenObject,
};
use crate::lock::LockRecord;
use crate::lock::api_lock::ApiLock;
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
    /// Of a delete: its options. Of a patch: the patch.
    #[serde(default)]
    request_object: Option<Value>,
    #[serde(default)]
    response_object: Option<Value>,
    #[serde(default)]
    request_received_timestamp: String,
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
/// An answer of the type to which kube-apiserver has reduced the object, as the client asked.
const METADATA_KIND: &str = "PartialObjectMetadata";

/// How a request ended.
enum WriteEnd {
    Stored,
    Refused,
    /// An error of the server: the write may be stored.
    Unknown,
}

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
    if !is_own_write(&event) || is_dry_run(&event) {
        return Ok(None);
    }
    let of = &event.object_ref;
    let source = WriteSource {
        file,
        line,
        who: event.user.username.clone(),
        at: event.stage_timestamp.clone(),
    };
    match end_of_write(&event) {
        WriteEnd::Refused => return Ok(None),
        WriteEnd::Unknown => return Ok(read_unknown_end(&event, source)),
        WriteEnd::Stored => {}
    }
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
    Ok(read_object(&event, object, source))
}

/// Whether it is a write of a Node or of a Lease of Dogwatch, and has ended.
fn is_own_write(event: &AuditLogEvent) -> bool {
    let of = &event.object_ref;
    let ours = match of.resource.as_str() {
        "nodes" => true,
        "leases" => is_lock_lease(&of.name) || of.name.is_empty(),
        _ => false,
    };
    ours && WRITE_VERBS.contains(&event.verb.as_str())
        && matches!(of.subresource.as_str(), "" | "status")
        && matches!(event.stage.as_str(), "ResponseComplete" | "Panic")
}

fn end_of_write(event: &AuditLogEvent) -> WriteEnd {
    let code = event.response_status.code;
    if event.stage == "Panic" || code >= 500 {
        WriteEnd::Unknown
    } else if (200..300).contains(&code) {
        WriteEnd::Stored
    } else {
        WriteEnd::Refused
    }
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

fn kind_of(of: &AuditLogObject) -> WrittenKind {
    if of.resource == "nodes" {
        WrittenKind::Node
    } else {
        WrittenKind::Lease
    }
}

fn read_deletion(of: &AuditLogObject, source: WriteSource) -> ClusterWrite {
    let name = of.name.clone();
    let object = match kind_of(of) {
        WrittenKind::Node => WrittenObject::Node { name, after: None },
        WrittenKind::Lease => WrittenObject::Lease { name, after: None },
    };
    write_without_version(object, source)
}

/// The object may be another one as soon as the request was received.
fn read_unknown_end(event: &AuditLogEvent, source: WriteSource) -> Option<ClusterWrite> {
    let of = &event.object_ref;
    let object = WrittenObject::Unknown {
        kind: kind_of(of),
        name: Some(of.name.clone()).filter(|name| !name.is_empty())?,
    };
    let received = &event.request_received_timestamp;
    let at = if received.is_empty() {
        source.at
    } else {
        received.clone()
    };
    Some(write_without_version(object, WriteSource { at, ..source }))
}

fn write_without_version(object: WrittenObject, source: WriteSource) -> ClusterWrite {
    ClusterWrite {
        version: 0,
        relies_on: None,
        from_decision_log: false,
        object,
        source,
    }
}

fn is_lock_lease(name: &str) -> bool {
    name.starts_with(lease::PREFIX)
}

fn read_object(event: &AuditLogEvent, object: &Value, source: WriteSource) -> Option<ClusterWrite> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let name = text("/metadata/name")?.to_owned();
    let version = text("/metadata/resourceVersion")?.parse().ok()?;
    let is_metadata = text("/kind") == Some(METADATA_KIND);
    let object = match kind_of(&event.object_ref) {
        WrittenKind::Node if is_metadata => WrittenObject::NodeMetadata {
            name,
            after: Box::new(read_node_state(object)),
            cordon: requested_cordon(event),
        },
        WrittenKind::Node => WrittenObject::Node {
            name,
            after: Some(Box::new(read_node_state(object))),
        },
        WrittenKind::Lease if !is_lock_lease(&name) => return None,
        kind @ WrittenKind::Lease if is_metadata => WrittenObject::Unknown { kind, name },
        WrittenKind::Lease => WrittenObject::Lease {
            after: Some(Box::new(read_lease_state(object))),
            name,
        },
    };
    Some(ClusterWrite {
        version,
        relies_on: relied_version(event),
        from_decision_log: false,
        object,
        source,
    })
}

/// The resourceVersion that the request has as its precondition.
fn relied_version(event: &AuditLogEvent) -> Option<u64> {
    let request = event.request_object.as_ref()?;
    let version = request.pointer("/metadata/resourceVersion")?.as_str()?;
    version.parse().ok().filter(|version| *version != 0)
}

/// What the request says about the cordon. A field that a merge patch does not have, or that an
/// apply does not have, stays as it is.
fn requested_cordon(event: &AuditLogEvent) -> CordonChange {
    let request = event.request_object.as_ref();
    let Some(request) = request.filter(|request| request.is_object()) else {
        return CordonChange::Unknown;
    };
    match request.pointer("/spec/unschedulable") {
        Some(Value::Bool(cordoned)) => CordonChange::Set(*cordoned),
        None if event.verb == "patch" => CordonChange::Unchanged,
        Some(Value::Null) | None => CordonChange::Set(false),
        Some(_) => CordonChange::Unknown,
    }
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
        api_lease: parsed::<ApiLock>(node, annotation::API_LOCK)
            .and_then(|lock| lock.cordoned_by_us.then_some(lock.lease)),
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

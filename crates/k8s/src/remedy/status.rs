//! `status` of a request: read from an object, and as it is written.

use dogwatch_api::power_remediation::{self as api, PowerRemediationStatus};
use dogwatch_core::condition::Write;
use dogwatch_core::power::HostName;
use dogwatch_core::remedy::{Attempt, PowerRequest, ProofNote, RequestStatus, Stamp, Step};
use jiff::{Timestamp, Unit};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{self as meta, Time};
use serde_json::{Value, json};

use crate::condition;
use crate::field::name_absent;

/// What a status leaves out when it is empty; a merge patch has to say so, or an older one would stay.
const OPTIONAL: [&str; 11] = [
    "observedGeneration",
    "phase",
    "startedAt",
    "endedAt",
    "attempt",
    "host",
    "node",
    "taintedAt",
    "offProof",
    "timeline",
    "conditions",
];
/// The same, of its parts.
const OPTIONAL_PARTS: [(&str, &[&str]); 3] = [
    (
        "attempt",
        &["keyAt", "offConfirmedAt", "releasedAt", "keyRemovedAt"],
    ),
    ("node", &["uid", "bootID"]),
    ("offProof", &["command", "by", "reason"]),
];

/// What stands there, or what is wrong with it: taken for none it would begin anew what is under way.
pub(super) fn read(value: &Value) -> Result<RequestStatus, String> {
    let mut value = value.clone();
    match &mut value {
        Value::Null => return Ok(RequestStatus::default()),
        // What is null is absent.
        Value::Object(fields) => fields.retain(|_, field| !field.is_null()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {}
    }
    let status: PowerRemediationStatus =
        serde_json::from_value(value).map_err(|error| format!("status: {error}"))?;
    let (node, node_uid, boot_id) = match status.node {
        Some(node) => (Some(node.name), node.uid, node.boot_id),
        None => (None, None, None),
    };
    Ok(RequestStatus {
        observed_generation: status.observed_generation,
        started_at: status.started_at,
        ended_at: status.ended_at,
        attempt: status.attempt.map(attempt),
        host: status
            .host
            .map(|host| (HostName::new(host.namespace, host.name), host.uid)),
        node,
        node_uid,
        boot_id,
        tainted_at: status.tainted_at,
        proof: status.off_proof.map(proof),
        timeline: status.timeline.iter().filter_map(stamp).collect(),
        conditions: status.conditions.into_iter().map(condition::seen).collect(),
    })
}

fn attempt(attempt: api::Attempt) -> Attempt {
    Attempt {
        number: attempt.number,
        started_at: attempt.started_at,
        key_at: attempt.key_at,
        off_at: attempt.off_confirmed_at,
        released_at: attempt.released_at,
        key_removed_at: attempt.key_removed_at,
    }
}

fn proof(proof: api::OffProof) -> ProofNote {
    ProofNote {
        source: proof.source,
        confirmed_at: proof.confirmed_at,
        by: proof.by,
        reason: proof.reason,
    }
}

/// A step of a later version is for people only, as all of them are.
fn stamp(entry: &api::TimelineEntry) -> Option<Stamp> {
    let step = serde_json::from_value::<Step>(entry.what.clone().into()).ok()?;
    Some(Stamp { step, at: entry.at })
}

/// The patch that makes it so, on the version that was seen. Conditions that are not written stay.
pub(super) fn patch(request: &PowerRequest, status: &RequestStatus, writes: &[Write]) -> Value {
    let conditions = conditions(request, writes);
    let wanted = written(status, conditions);
    let mut body = serde_json::to_value(wanted).expect("numbers, texts and times serialise");
    name_absent(&mut body, &OPTIONAL);
    for (part, fields) in OPTIONAL_PARTS {
        if body[part].is_object() {
            name_absent(&mut body[part], fields);
        }
    }
    json!({
        "metadata": { "uid": request.uid, "resourceVersion": request.resource_version },
        "status": body,
    })
}

fn written(status: &RequestStatus, conditions: Vec<meta::Condition>) -> PowerRemediationStatus {
    let mut written = PowerRemediationStatus {
        observed_generation: status.observed_generation,
        phase: None,
        started_at: status.started_at.map(micros),
        ended_at: status.ended_at.map(micros),
        attempt: status.attempt.map(attempt_written),
        host: status
            .host
            .as_ref()
            .map(|(name, uid)| host_written(name, uid)),
        node: node_written(status),
        tainted_at: status.tainted_at.map(micros),
        off_proof: status.proof.as_ref().map(proof_written),
        timeline: status.timeline.iter().map(stamp_written).collect(),
        conditions,
    };
    written.phase = Some(written.phase_now());
    written
}

fn attempt_written(attempt: Attempt) -> api::Attempt {
    api::Attempt {
        number: attempt.number,
        started_at: micros(attempt.started_at),
        key_at: attempt.key_at.map(micros),
        off_confirmed_at: attempt.off_at.map(micros),
        released_at: attempt.released_at.map(micros),
        key_removed_at: attempt.key_removed_at.map(micros),
    }
}

fn host_written(name: &HostName, uid: &str) -> api::HostReference {
    api::HostReference {
        namespace: name.namespace.clone(),
        name: name.name.clone(),
        uid: uid.to_owned(),
    }
}

fn node_written(status: &RequestStatus) -> Option<api::NodeReference> {
    Some(api::NodeReference {
        name: status.node.clone()?,
        uid: status.node_uid.clone(),
        boot_id: status.boot_id.clone(),
    })
}

fn proof_written(proof: &ProofNote) -> api::OffProof {
    api::OffProof {
        source: proof.source.clone(),
        command: None,
        confirmed_at: micros(proof.confirmed_at),
        by: proof.by.clone(),
        reason: proof.reason.clone(),
    }
}

fn stamp_written(stamp: &Stamp) -> api::TimelineEntry {
    api::TimelineEntry {
        what: stamp.step.as_str().to_owned(),
        at: micros(stamp.at),
    }
}

/// Times have microseconds, as on hosts: what is read back is what was written.
fn micros(time: Timestamp) -> Timestamp {
    time.round(Unit::Microsecond).unwrap_or(time)
}

fn conditions(request: &PowerRequest, writes: &[Write]) -> Vec<meta::Condition> {
    let is_written = |kind: &str| writes.iter().any(|write| write.observation.kind == kind);
    let standing = request.status.conditions.iter();
    let kept = standing.filter(|it| !is_written(&it.kind));
    let kept = kept.map(|it| meta::Condition {
        type_: it.kind.clone(),
        status: it.status.clone(),
        reason: it.reason.clone(),
        message: it.message.clone(),
        last_transition_time: Time(it.last_transition.unwrap_or(Timestamp::UNIX_EPOCH)),
        observed_generation: None,
    });
    let generation = Some(request.generation);
    let new = writes
        .iter()
        .map(|it| condition::written(&it.observation, it.last_transition, generation));
    kept.chain(new).collect()
}

/// What of this is not on the request that the API server answered with.
pub(super) fn dropped(
    answer: &RequestStatus,
    status: &RequestStatus,
    writes: &[Write],
) -> Vec<&'static str> {
    let wanted = written(status, Vec::new());
    let wanted = serde_json::to_value(wanted).expect("numbers, texts and times serialise");
    let wanted = read(&wanted).unwrap_or_default();
    let stands = |write: &Write| condition::stands(&answer.conditions, write);
    let differs = [
        ("startedAt", answer.started_at != wanted.started_at),
        ("endedAt", answer.ended_at != wanted.ended_at),
        ("attempt", answer.attempt != wanted.attempt),
        ("host", answer.host != wanted.host),
        (
            "node",
            (&answer.node, &answer.node_uid, &answer.boot_id)
                != (&wanted.node, &wanted.node_uid, &wanted.boot_id),
        ),
        ("taintedAt", answer.tainted_at != wanted.tainted_at),
        ("offProof", answer.proof != wanted.proof),
        ("timeline", answer.timeline != wanted.timeline),
        ("conditions", !writes.iter().all(stands)),
    ];
    let dropped = differs.into_iter().filter(|(_, differs)| *differs);
    dropped.map(|(name, _)| name).collect()
}

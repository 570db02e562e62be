//! Reads and writes `status` of a request.

use dogwatch_api::power_remediation::{self as api, PowerRemediationStatus};
use dogwatch_core::condition::ConditionWrite;
use dogwatch_core::power::HostName;
use dogwatch_core::remediation::{
    PowerRequest, ProofNote, RemediationAttempt, RemediationStep, RequestStatus, StepStamp,
};
use jiff::{Timestamp, Unit};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{self as meta, Time};
use serde_json::{Value, json};

use crate::condition;
use crate::json_field::null_absent_fields;

/// Fields that an empty status omits; a merge patch has to remove them, because older values would
/// stay.
const OPTIONAL_FIELDS: [&str; 11] = [
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
/// The same for nested objects.
const OPTIONAL_PARTS: [(&str, &[&str]); 3] = [
    (
        "attempt",
        &["keyAt", "offConfirmedAt", "releasedAt", "keyRemovedAt"],
    ),
    ("node", &["uid", "bootID"]),
    ("offProof", &["command", "by", "reason"]),
];

/// The status, or why it cannot be read: treated as empty, it would start a running remediation
/// again.
pub(super) fn parse_status(value: &Value) -> Result<RequestStatus, String> {
    let mut value = value.clone();
    match &mut value {
        Value::Null => return Ok(RequestStatus::default()),
        // Null means absent.
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
        attempt: status.attempt.map(parse_attempt),
        host: status
            .host
            .map(|host| (HostName::new(host.namespace, host.name), host.uid)),
        node,
        node_uid,
        boot_id,
        tainted_at: status.tainted_at,
        proof: status.off_proof.map(parse_proof),
        timeline: status
            .timeline
            .iter()
            .filter_map(parse_timeline_entry)
            .collect(),
        conditions: status
            .conditions
            .into_iter()
            .map(condition::from_meta_condition)
            .collect(),
    })
}

fn parse_attempt(attempt: api::AttemptStatus) -> RemediationAttempt {
    RemediationAttempt {
        number: attempt.number,
        started_at: attempt.started_at,
        key_at: attempt.key_at,
        off_at: attempt.off_confirmed_at,
        released_at: attempt.released_at,
        key_removed_at: attempt.key_removed_at,
    }
}

fn parse_proof(proof: api::OffProofStatus) -> ProofNote {
    ProofNote {
        source: proof.source,
        confirmed_at: proof.confirmed_at,
        by: proof.by,
        reason: proof.reason,
    }
}

/// A step of a later version is skipped: the timeline is only for people.
fn parse_timeline_entry(entry: &api::TimelineEntry) -> Option<StepStamp> {
    let step = serde_json::from_value::<RemediationStep>(entry.what.clone().into()).ok()?;
    Some(StepStamp { step, at: entry.at })
}

/// The patch of the status, with preconditions. Conditions that are not written stay.
pub(super) fn status_patch(
    request: &PowerRequest,
    status: &RequestStatus,
    writes: &[ConditionWrite],
) -> Value {
    let conditions = merged_conditions(request, writes);
    let wanted = status_object(status, conditions);
    let mut body = serde_json::to_value(wanted).expect("numbers, texts and times serialise");
    null_absent_fields(&mut body, &OPTIONAL_FIELDS);
    for (part, fields) in OPTIONAL_PARTS {
        if body[part].is_object() {
            null_absent_fields(&mut body[part], fields);
        }
    }
    json!({
        "metadata": { "uid": request.uid, "resourceVersion": request.resource_version },
        "status": body,
    })
}

fn status_object(
    status: &RequestStatus,
    conditions: Vec<meta::Condition>,
) -> PowerRemediationStatus {
    let mut written = PowerRemediationStatus {
        observed_generation: status.observed_generation,
        phase: None,
        started_at: status.started_at.map(round_to_micros),
        ended_at: status.ended_at.map(round_to_micros),
        attempt: status.attempt.map(attempt_object),
        host: status
            .host
            .as_ref()
            .map(|(name, uid)| host_reference(name, uid)),
        node: node_reference(status),
        tainted_at: status.tainted_at.map(round_to_micros),
        off_proof: status.proof.as_ref().map(proof_object),
        timeline: status.timeline.iter().map(timeline_entry).collect(),
        conditions,
    };
    written.phase = Some(written.current_phase());
    written
}

fn attempt_object(attempt: RemediationAttempt) -> api::AttemptStatus {
    api::AttemptStatus {
        number: attempt.number,
        started_at: round_to_micros(attempt.started_at),
        key_at: attempt.key_at.map(round_to_micros),
        off_confirmed_at: attempt.off_at.map(round_to_micros),
        released_at: attempt.released_at.map(round_to_micros),
        key_removed_at: attempt.key_removed_at.map(round_to_micros),
    }
}

fn host_reference(name: &HostName, uid: &str) -> api::HostReference {
    api::HostReference {
        namespace: name.namespace.clone(),
        name: name.name.clone(),
        uid: uid.to_owned(),
    }
}

fn node_reference(status: &RequestStatus) -> Option<api::NodeReference> {
    Some(api::NodeReference {
        name: status.node.clone()?,
        uid: status.node_uid.clone(),
        boot_id: status.boot_id.clone(),
    })
}

fn proof_object(proof: &ProofNote) -> api::OffProofStatus {
    api::OffProofStatus {
        source: proof.source.clone(),
        command: None,
        confirmed_at: round_to_micros(proof.confirmed_at),
        by: proof.by.clone(),
        reason: proof.reason.clone(),
    }
}

fn timeline_entry(stamp: &StepStamp) -> api::TimelineEntry {
    api::TimelineEntry {
        what: stamp.step.as_str().to_owned(),
        at: round_to_micros(stamp.at),
    }
}

/// Times have microseconds, as on hosts, so that a value is read back as it was written.
fn round_to_micros(time: Timestamp) -> Timestamp {
    time.round(Unit::Microsecond).unwrap_or(time)
}

fn merged_conditions(request: &PowerRequest, writes: &[ConditionWrite]) -> Vec<meta::Condition> {
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
        .map(|it| condition::to_meta_condition(&it.observation, it.last_transition, generation));
    kept.chain(new).collect()
}

/// The names of the written fields that the answered request lacks.
pub(super) fn dropped_fields(
    answer: &RequestStatus,
    status: &RequestStatus,
    writes: &[ConditionWrite],
) -> Vec<&'static str> {
    let wanted = status_object(status, Vec::new());
    let wanted = serde_json::to_value(wanted).expect("numbers, texts and times serialise");
    let wanted = parse_status(&wanted).unwrap_or_default();
    let stands =
        |write: &ConditionWrite| condition::has_written_condition(&answer.conditions, write);
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

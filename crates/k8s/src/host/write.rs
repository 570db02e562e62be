//! Builds the patches of a host and checks their answers.

use dogwatch_api::bare_metal_host::condition;
use dogwatch_core::condition::{ConditionWrite, CurrentCondition};
use dogwatch_core::power::{HostSnapshot, HostStatus, StatusWrite};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};

use super::object::HostObject;
use super::status;
use crate::condition::has_written_condition;
use crate::error::{ApiErrorKind, Error};
use crate::node::format_seconds;

/// Why a write of a host cannot be relied on.
#[derive(Debug, thiserror::Error)]
pub enum HostWriteError {
    /// The host has changed since it was read. Nothing was written; read it again.
    #[error("the host has changed since it was read")]
    Changed {
        /// The API server's answer to the write: an admission webhook, too, may answer as if there
        /// were a conflict. `None`: a read found the change.
        #[source]
        answer: Option<Error>,
    },
    /// The write succeeded, but the answer lacks these fields: the CustomResourceDefinition drops
    /// them.
    #[error("the CustomResourceDefinition of BareMetalHosts in this cluster drops status.{}", .0.join(", status."))]
    Pruned(Vec<&'static str>),
    /// A refusal, or no answer: the write may have been done.
    #[error(transparent)]
    Api(#[from] Error),
}

impl HostWriteError {
    pub(super) fn from_api_error(error: Error) -> Self {
        match error.kind() {
            ApiErrorKind::Conflict => HostWriteError::Changed {
                answer: Some(error),
            },
            ApiErrorKind::NotFound
            | ApiErrorKind::AlreadyExists
            | ApiErrorKind::Gone
            | ApiErrorKind::Forbidden
            | ApiErrorKind::Throttled { .. }
            | ApiErrorKind::Refused
            | ApiErrorKind::Transient => HostWriteError::Api(error),
        }
    }
}

pub(super) fn patch_precondition(host: &HostSnapshot) -> Value {
    json!({ "uid": host.uid, "resourceVersion": host.resource_version })
}

/// Whether the object has to be read before its status is written: a list in a merge patch replaces
/// the whole list, with other writers' conditions; and our first status must contain the fields
/// that metal3 requires.
pub(super) fn needs_object(host: &HostSnapshot, conditions: &[ConditionWrite]) -> bool {
    let foreign = |condition: &CurrentCondition| !is_own_condition(&condition.kind);
    let has_foreign = host.status.conditions.iter().any(foreign);
    host.status.powered_on.is_none() || (has_foreign && !conditions.is_empty())
}

/// The patch of `status`. `object` is the current host, where [`needs_object`] asks for it.
pub(super) fn status_patch_body(
    host: &HostSnapshot,
    write: &StatusWrite,
    conditions: &[ConditionWrite],
    object: Option<&HostObject>,
) -> Value {
    let mut status = status::status_patch(&write.status);
    if let Some(object) = object {
        fill_required_fields(&mut status, &object.status);
    }
    if !conditions.is_empty() {
        let foreign = object.map(|object| foreign_conditions(&object.status));
        let mut all = foreign.unwrap_or_default();
        all.extend(own_conditions(host, conditions));
        status.insert("conditions".into(), Value::Array(all));
    }
    json!({ "metadata": patch_precondition(host), "status": status })
}

/// Adds the fields that metal3's schema requires in a status.
fn fill_required_fields(status: &mut Map<String, Value>, standing: &Value) {
    for (name, default) in [
        ("operationalStatus", json!("OK")),
        ("errorCount", json!(0)),
        ("errorMessage", json!("")),
    ] {
        if standing[name].is_null() {
            status.insert(name.to_owned(), default);
        }
    }
    let provisioning = &mut status["provisioning"];
    for name in ["ID", "state"] {
        if standing["provisioning"][name].is_null() && provisioning[name].is_null() {
            provisioning[name] = json!("");
        }
    }
    if standing["poweredOn"].is_null() {
        // Never false without a reading.
        status.entry("poweredOn").or_insert(json!(true));
    }
}

fn is_own_condition(kind: &str) -> bool {
    condition::ALL.contains(&kind)
}

fn foreign_conditions(status: &Value) -> Vec<Value> {
    let all = status["conditions"].as_array().into_iter().flatten();
    let is_foreign = |condition: &&Value| !condition["type"].as_str().is_some_and(is_own_condition);
    all.filter(is_foreign).cloned().collect()
}

fn own_conditions(host: &HostSnapshot, writes: &[ConditionWrite]) -> Vec<Value> {
    let written = |kind: &str| writes.iter().any(|write| write.observation.kind == kind);
    let standing = host.status.conditions.iter();
    let kept = standing.filter(|it| is_own_condition(&it.kind) && !written(&it.kind));
    let kept = kept.map(|it| {
        let since = it.last_transition.unwrap_or(Timestamp::UNIX_EPOCH);
        condition_value(&it.kind, &it.status, &it.reason, &it.message, since)
    });
    let new = writes.iter().map(|write| {
        let it = &write.observation;
        let status = it.status.as_str();
        condition_value(
            it.kind,
            status,
            &it.reason,
            &it.message,
            write.last_transition,
        )
    });
    kept.chain(new).collect()
}

fn condition_value(
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    since: Timestamp,
) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": format_seconds(since),
    })
}

/// The names of our fields that the answered host lacks.
pub(super) fn dropped_fields(
    answer: &HostSnapshot,
    write: &StatusWrite,
    conditions: &[ConditionWrite],
) -> Vec<&'static str> {
    let wanted = as_read_back(&write.status);
    let (there, power) = (&answer.status, &answer.status.power);
    let differs = [
        (
            "poweredOn",
            wanted.powered_on.is_some() && there.powered_on != wanted.powered_on,
        ),
        (
            "provisioning.state",
            wanted.provisioning.is_some() && there.provisioning != wanted.provisioning,
        ),
        (
            "provisioning.lastPoweredOn",
            there.last_powered_on != wanted.last_powered_on,
        ),
        (
            "provisioning.pendingRebootSince",
            there.pending_reboot_since != wanted.pending_reboot_since,
        ),
        ("power.state", power.state != wanted.power.state),
        (
            "power.observedAt",
            power.observed_at != wanted.power.observed_at,
        ),
        (
            "power.offConfirmedAt",
            power.off_confirmed_at != wanted.power.off_confirmed_at,
        ),
        (
            "power.confirmedFor",
            power.confirmed_for != wanted.power.confirmed_for,
        ),
        ("power.command", power.command != wanted.power.command),
        ("power.obeyedIn", power.obeyed_in != wanted.power.obeyed_in),
        (
            "power.externallyProvisioned",
            power.externally_provisioned != wanted.power.externally_provisioned,
        ),
        ("power.history", power.history != wanted.power.history),
        (
            "conditions",
            !conditions
                .iter()
                .all(|write| has_written_condition(&there.conditions, write)),
        ),
    ];
    let dropped = differs.into_iter().filter(|(_, differs)| *differs);
    dropped.map(|(name, _)| name).collect()
}

/// The status as it is read back: with microseconds.
fn as_read_back(status: &HostStatus) -> HostStatus {
    status::parse_status(&HostObject {
        metadata: ObjectMeta::default(),
        spec: Value::Null,
        status: Value::Object(status::status_patch(status)),
    })
}

//! What a write of a host is made of, and whether it was done.

use dogwatch_api::bare_metal_host::condition;
use dogwatch_core::condition::{Condition, Write};
use dogwatch_core::power::{Host, HostStatus, StatusWrite};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};

use super::object::HostObject;
use super::status;
use crate::condition::stands;
use crate::error::{Error, Kind};
use crate::node::seconds;

/// Why a write of a host cannot be relied on.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The host is not as it was seen any more: nothing was written. Look anew.
    #[error("the host has changed since it was seen")]
    Changed,
    /// It was written, and these fields are not there: the CustomResourceDefinition drops them.
    #[error("the CustomResourceDefinition of BareMetalHosts in this cluster drops status.{}", .0.join(", status."))]
    Pruned(Vec<&'static str>),
    /// A refusal, or no answer: it may have been written.
    #[error(transparent)]
    Api(#[from] Error),
}

impl WriteError {
    pub(super) fn of(error: Error) -> Self {
        match error.kind() {
            Kind::Conflict => WriteError::Changed,
            Kind::NotFound
            | Kind::AlreadyExists
            | Kind::Gone
            | Kind::Forbidden
            | Kind::Throttled { .. }
            | Kind::Refused
            | Kind::Transient => WriteError::Api(error),
        }
    }
}

/// What a patch of this host relies on.
pub(super) fn precondition(host: &Host) -> Value {
    json!({ "uid": host.uid, "resourceVersion": host.resource_version })
}

/// Whether the object itself has to be looked at before its status is written: a list in a merge patch
/// replaces the whole list, other people's conditions included; and a first status of ours must not
/// lack what metal3 requires of one.
pub(super) fn needs_object(host: &Host, conditions: &[Write]) -> bool {
    let foreign = |condition: &Condition| !is_ours(&condition.kind);
    let has_foreign = host.status.conditions.iter().any(foreign);
    host.status.powered_on.is_none() || (has_foreign && !conditions.is_empty())
}

/// The patch of `status`. `object` is the host as it stands, where [`needs_object`] asks for it.
pub(super) fn patch(
    host: &Host,
    write: &StatusWrite,
    conditions: &[Write],
    object: Option<&HostObject>,
) -> Value {
    let mut status = status::written(&write.status);
    if let Some(object) = object {
        complete(&mut status, &object.status);
    }
    if !conditions.is_empty() {
        let foreign = object.map(|object| foreign_conditions(&object.status));
        let mut all = foreign.unwrap_or_default();
        all.extend(our_conditions(host, conditions));
        status.insert("conditions".into(), Value::Array(all));
    }
    json!({ "metadata": precondition(host), "status": status })
}

/// What metal3's schema requires of a status, where it is not there.
fn complete(status: &mut Map<String, Value>, standing: &Value) {
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

fn is_ours(kind: &str) -> bool {
    condition::ALL.contains(&kind)
}

fn foreign_conditions(status: &Value) -> Vec<Value> {
    let all = status["conditions"].as_array().into_iter().flatten();
    let is_foreign = |condition: &&Value| !condition["type"].as_str().is_some_and(is_ours);
    all.filter(is_foreign).cloned().collect()
}

fn our_conditions(host: &Host, writes: &[Write]) -> Vec<Value> {
    let written = |kind: &str| writes.iter().any(|write| write.observation.kind == kind);
    let standing = host.status.conditions.iter();
    let kept = standing.filter(|it| is_ours(&it.kind) && !written(&it.kind));
    let kept = kept.map(|it| {
        let since = it.last_transition.unwrap_or(Timestamp::UNIX_EPOCH);
        one(&it.kind, &it.status, &it.reason, &it.message, since)
    });
    let new = writes.iter().map(|write| {
        let it = &write.observation;
        let status = it.status.as_str();
        one(
            it.kind,
            status,
            &it.reason,
            &it.message,
            write.last_transition,
        )
    });
    kept.chain(new).collect()
}

fn one(kind: &str, status: &str, reason: &str, message: &str, since: Timestamp) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": seconds(since),
    })
}

/// Which fields of ours are not on the host that the API server answered with.
pub(super) fn dropped(
    answer: &Host,
    write: &StatusWrite,
    conditions: &[Write],
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
                .all(|write| stands(&there.conditions, write)),
        ),
    ];
    let dropped = differs.into_iter().filter(|(_, differs)| *differs);
    dropped.map(|(name, _)| name).collect()
}

/// What is written has microseconds, whatever was decided.
fn as_read_back(status: &HostStatus) -> HostStatus {
    status::read(&HostObject {
        metadata: ObjectMeta::default(),
        spec: Value::Null,
        status: Value::Object(status::written(status)),
    })
}

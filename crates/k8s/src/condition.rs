//! Conditions of objects: as decisions see them, and as they are written.

use dogwatch_core::condition::{Condition, Observation, Write};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{self as meta, Time};
use serde_json::Value;

use crate::field::{text, time};

/// One of an object of any form. Most kinds' have no time of their own for the `last_write`.
pub(crate) fn read(condition: &Value, last_write: Option<Timestamp>) -> Condition {
    Condition {
        kind: text(&condition["type"]),
        status: text(&condition["status"]),
        reason: text(&condition["reason"]),
        message: text(&condition["message"]),
        last_transition: time(&condition["lastTransitionTime"]),
        last_heartbeat: last_write,
    }
}

/// One of a kind of ours.
pub(crate) fn seen(condition: meta::Condition) -> Condition {
    Condition {
        kind: condition.type_,
        status: condition.status,
        reason: condition.reason,
        message: condition.message,
        last_transition: Some(condition.last_transition_time.0),
        last_heartbeat: None,
    }
}

/// What is to be said, as it is written; its status is so `since`.
pub(crate) fn written(
    said: &Observation,
    since: Timestamp,
    generation: Option<i64>,
) -> meta::Condition {
    meta::Condition {
        type_: said.kind.to_owned(),
        status: said.status.as_str().to_owned(),
        reason: said.reason.clone(),
        message: said.message.clone(),
        last_transition_time: Time(since),
        observed_generation: generation,
    }
}

/// Whether what was written stands among them.
pub(crate) fn stands(conditions: &[Condition], write: &Write) -> bool {
    let wanted = &write.observation;
    conditions.iter().any(|there| {
        there.kind == wanted.kind
            && there.status == wanted.status.as_str()
            && there.reason == wanted.reason
    })
}

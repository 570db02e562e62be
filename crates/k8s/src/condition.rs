//! Converts conditions from and to the API.

use dogwatch_core::condition::{ConditionWrite, CurrentCondition, DesiredCondition};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{self as meta, Time};
use serde_json::Value;

use crate::json_field::{parse_text, parse_time};

/// Reads a condition from JSON of any form. Most kinds' conditions have no field for `last_write`.
pub(crate) fn parse_condition(
    condition: &Value,
    last_write: Option<Timestamp>,
) -> CurrentCondition {
    CurrentCondition {
        kind: parse_text(&condition["type"]),
        status: parse_text(&condition["status"]),
        reason: parse_text(&condition["reason"]),
        message: parse_text(&condition["message"]),
        last_transition: parse_time(&condition["lastTransitionTime"]),
        last_heartbeat: last_write,
    }
}

pub(crate) fn from_meta_condition(condition: meta::Condition) -> CurrentCondition {
    CurrentCondition {
        kind: condition.type_,
        status: condition.status,
        reason: condition.reason,
        message: condition.message,
        last_transition: Some(condition.last_transition_time.0),
        last_heartbeat: None,
    }
}

/// `since`: since when the condition has its current status.
pub(crate) fn to_meta_condition(
    said: &DesiredCondition,
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

pub(crate) fn has_written_condition(
    conditions: &[CurrentCondition],
    write: &ConditionWrite,
) -> bool {
    let wanted = &write.observation;
    conditions.iter().any(|there| {
        there.kind == wanted.kind
            && there.status == wanted.status.as_str()
            && there.reason == wanted.reason
    })
}

//! The status of a NodeReboot, which only the leading controller writes.

use dogwatch_api::node_reboot::NodeRebootStatus as StatusObject;
use dogwatch_core::condition::{DesiredCondition, transition_time};
use dogwatch_core::node_reboot::{NodeRebootState, ObservedNodeReboot};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::condition;
use crate::json_field::null_absent_fields;

/// Fields that an empty status omits; a merge patch has to remove them.
const OPTIONAL_FIELDS: [&str; 7] = [
    "observedGeneration",
    "message",
    "nodeUID",
    "attempts",
    "estimatedStart",
    "estimatedFinish",
    "conditions",
];

/// A status that cannot be parsed must not count as empty: the reboot would be asked for again.
pub(super) fn parse_status(value: &Value) -> Result<NodeRebootState, String> {
    if value.is_null() {
        return Ok(NodeRebootState::default());
    }
    let status: StatusObject =
        serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
    let conditions = status.conditions.into_iter();
    Ok(NodeRebootState {
        observed_generation: status.observed_generation,
        phase: status.phase.unwrap_or_default(),
        message: status.message,
        node_uid: status.node_uid,
        attempts: status.attempts,
        estimated_start: status.estimated_start,
        estimated_finish: status.estimated_finish,
        conditions: conditions.map(condition::from_meta_condition).collect(),
    })
}

/// The patch of the status, with preconditions.
pub(super) fn status_patch(
    seen: &ObservedNodeReboot,
    status: &NodeRebootState,
    conditions: &[DesiredCondition],
    now: Timestamp,
) -> Value {
    let wanted = StatusObject {
        observed_generation: status.observed_generation,
        phase: Some(status.phase),
        message: status.message.clone(),
        node_uid: status.node_uid.clone(),
        attempts: status.attempts.clone(),
        estimated_start: status.estimated_start,
        estimated_finish: status.estimated_finish,
        conditions: conditions
            .iter()
            .map(|wanted| {
                let since = transition_time(&seen.status.conditions, wanted, now);
                condition::to_meta_condition(wanted, since, seen.generation)
            })
            .collect(),
    };
    let mut status = serde_json::to_value(wanted).expect("numbers, texts and times serialise");
    null_absent_fields(&mut status, &OPTIONAL_FIELDS);
    json!({
        "metadata": { "uid": seen.uid, "resourceVersion": seen.resource_version },
        "status": status,
    })
}

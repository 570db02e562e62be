//! The status of a schedule: written by the controller that leads.

use dogwatch_api::reboot_schedule::{self as api, Occurrence, RebootScheduleStatus};
use dogwatch_core::condition::{Observation, since};
use dogwatch_core::schedule::{
    Current, Kind, Outcome, Record, Schedule, Status, TargetEnd, TargetResult,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::condition;
use crate::field::name_absent;

/// What a status leaves out when it is empty; a merge patch has to say so.
const OPTIONAL: [&str; 6] = [
    "observedGeneration",
    "nextOccurrence",
    "lastOccurrence",
    "current",
    "history",
    "conditions",
];

/// What stands there. One that cannot be read is none: the marks on the targets say who was asked.
pub(super) fn status_of(value: &Value) -> Status {
    let status: RebootScheduleStatus = serde_json::from_value(value.clone()).unwrap_or_default();
    Status {
        observed_generation: status.observed_generation,
        next: status.next_occurrence,
        last: status.last_occurrence,
        current: status.current.map(|current| Current {
            at: current.at,
            begun: current.begun,
        }),
        history: status.history.into_iter().map(record).collect(),
        conditions: status.conditions.into_iter().map(condition::seen).collect(),
    }
}

/// A word of a later version is no success.
fn record(occurrence: Occurrence) -> Record {
    Record {
        at: occurrence.at,
        ended: occurrence.ended,
        outcome: Outcome::parse(&occurrence.outcome).unwrap_or(Outcome::Failed),
        asked: occurrence.requested,
        noted: occurrence.already_requested,
        failed: occurrence.failed,
        targets: occurrence.targets.into_iter().map(target).collect(),
        message: occurrence.message,
    }
}

fn target(end: api::TargetEnd) -> TargetEnd {
    TargetEnd {
        kind: Kind::parse(&end.kind).unwrap_or(Kind::Host),
        name: end.name,
        result: TargetResult::parse(&end.result).unwrap_or(TargetResult::Failed),
        message: end.message,
    }
}

/// The patch that makes it so, on the version that was seen.
pub(super) fn body(
    seen: &Schedule,
    status: &Status,
    conditions: &[Observation],
    now: Timestamp,
) -> Value {
    let wanted = RebootScheduleStatus {
        observed_generation: status.observed_generation,
        next_occurrence: status.next,
        last_occurrence: status.last,
        current: status.current.map(|current| api::Current {
            at: current.at,
            begun: current.begun,
        }),
        history: status.history.iter().map(occurrence).collect(),
        conditions: conditions
            .iter()
            .map(|wanted| {
                let since = since(&seen.status.conditions, wanted, now);
                condition::written(wanted, since, seen.generation)
            })
            .collect(),
    };
    let mut status = serde_json::to_value(wanted).expect("numbers, texts and times serialise");
    name_absent(&mut status, &OPTIONAL);
    json!({
        "metadata": { "uid": seen.uid, "resourceVersion": seen.resource_version },
        "status": status,
    })
}

fn occurrence(record: &Record) -> Occurrence {
    Occurrence {
        at: record.at,
        ended: record.ended,
        outcome: record.outcome.as_str().to_owned(),
        requested: record.asked,
        already_requested: record.noted,
        failed: record.failed,
        targets: record.targets.iter().map(target_end).collect(),
        message: record.message.clone(),
    }
}

fn target_end(end: &TargetEnd) -> api::TargetEnd {
    api::TargetEnd {
        kind: end.kind.as_str().to_owned(),
        name: end.name.clone(),
        result: end.result.as_str().to_owned(),
        message: end.message.clone(),
    }
}

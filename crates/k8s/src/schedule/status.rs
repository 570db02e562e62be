//! The status of a schedule, which only the leading controller writes.

use dogwatch_api::reboot_schedule::{
    self as api, OccurrenceRebootsStatus, OccurrenceStatus, RebootFailureStatus,
    RebootScheduleStatus, SettledRebootsStatus,
};
use dogwatch_core::condition::{DesiredCondition, transition_time};
use dogwatch_core::schedule::{
    CurrentOccurrence, OccurrenceOutcome, OccurrenceReboots, OccurrenceRecord, RebootFailure,
    Schedule, ScheduleStatus, ScheduleTargetKind, SettledReboots, TargetOutcome, TargetResult,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::condition;
use crate::json_field::null_absent_fields;

/// Fields that an empty status omits; a merge patch has to remove them.
const OPTIONAL_FIELDS: [&str; 9] = [
    "observedGeneration",
    "specSince",
    "specSinceGeneration",
    "specWriteSeen",
    "nextOccurrence",
    "lastOccurrence",
    "current",
    "history",
    "conditions",
];

/// An unreadable status counts as empty: the marks on the targets show who was asked.
pub(super) fn parse_status(value: &Value) -> ScheduleStatus {
    let status: RebootScheduleStatus = serde_json::from_value(value.clone()).unwrap_or_default();
    ScheduleStatus {
        observed_generation: status.observed_generation,
        spec_since: status.spec_since,
        spec_since_generation: status.spec_since_generation,
        spec_write_seen: status.spec_write_seen,
        next: status.next_occurrence,
        last: status.last_occurrence,
        current: status.current.map(|current| CurrentOccurrence {
            at: current.at,
            begun: current.begun,
        }),
        history: status.history.into_iter().map(parse_occurrence).collect(),
        conditions: status
            .conditions
            .into_iter()
            .map(condition::from_meta_condition)
            .collect(),
    }
}

/// An unknown outcome of a later version does not count as success.
fn parse_occurrence(occurrence: OccurrenceStatus) -> OccurrenceRecord {
    OccurrenceRecord {
        at: occurrence.at,
        ended: occurrence.ended,
        outcome: OccurrenceOutcome::parse(&occurrence.outcome).unwrap_or(OccurrenceOutcome::Failed),
        asked: occurrence.requested,
        noted: occurrence.already_requested,
        failed: occurrence.failed,
        targets: occurrence
            .targets
            .into_iter()
            .map(parse_target_end)
            .collect(),
        message: occurrence.message,
        reboots: occurrence.reboots.map(parse_reboots),
    }
}

fn parse_reboots(reboots: OccurrenceRebootsStatus) -> OccurrenceReboots {
    let failures = reboots.failures.into_iter().map(|failure| RebootFailure {
        node: failure.node,
        node_reboot: failure.node_reboot,
        reason: failure.reason,
        message: failure.message,
    });
    OccurrenceReboots {
        made: reboots.made,
        open: reboots.open,
        succeeded: reboots.succeeded,
        failed: reboots.failed,
        given_up: reboots.given_up,
        unknown: reboots.unknown,
        failures: failures.collect(),
        ended: reboots.ended,
        settled: reboots.settled.map(|settled| SettledReboots {
            until: Some(settled.until),
            succeeded: settled.succeeded,
            failed: settled.failed,
            given_up: settled.given_up,
        }),
    }
}

fn parse_target_end(end: api::TargetEndStatus) -> TargetOutcome {
    TargetOutcome {
        kind: ScheduleTargetKind::parse(&end.kind).unwrap_or(ScheduleTargetKind::Host),
        name: end.name,
        result: TargetResult::parse(&end.result).unwrap_or(TargetResult::Failed),
        message: end.message,
        node_reboot: end.node_reboot,
    }
}

/// The patch of the status, with preconditions.
pub(super) fn status_patch(
    seen: &Schedule,
    status: &ScheduleStatus,
    conditions: &[DesiredCondition],
    now: Timestamp,
) -> Value {
    let wanted = RebootScheduleStatus {
        observed_generation: status.observed_generation,
        spec_since: status.spec_since,
        spec_since_generation: status.spec_since_generation,
        spec_write_seen: status.spec_write_seen,
        next_occurrence: status.next,
        last_occurrence: status.last,
        current: status.current.map(|current| api::CurrentOccurrenceStatus {
            at: current.at,
            begun: current.begun,
        }),
        history: status.history.iter().map(occurrence_object).collect(),
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

fn occurrence_object(record: &OccurrenceRecord) -> OccurrenceStatus {
    OccurrenceStatus {
        at: record.at,
        ended: record.ended,
        outcome: record.outcome.as_str().to_owned(),
        requested: record.asked,
        already_requested: record.noted,
        failed: record.failed,
        targets: record.targets.iter().map(target_end_object).collect(),
        message: record.message.clone(),
        reboots: record.reboots.as_ref().map(reboots_object),
    }
}

fn reboots_object(reboots: &OccurrenceReboots) -> OccurrenceRebootsStatus {
    let failures = reboots.failures.iter().map(|failure| RebootFailureStatus {
        node: failure.node.clone(),
        node_reboot: failure.node_reboot.clone(),
        reason: failure.reason.clone(),
        message: failure.message.clone(),
    });
    OccurrenceRebootsStatus {
        made: reboots.made,
        open: reboots.open,
        succeeded: reboots.succeeded,
        failed: reboots.failed,
        given_up: reboots.given_up,
        unknown: reboots.unknown,
        failures: failures.collect(),
        ended: reboots.ended,
        settled: reboots.settled.as_ref().and_then(settled_object),
    }
}

fn settled_object(settled: &SettledReboots) -> Option<SettledRebootsStatus> {
    Some(SettledRebootsStatus {
        until: settled.until?,
        succeeded: settled.succeeded,
        failed: settled.failed,
        given_up: settled.given_up,
    })
}

fn target_end_object(end: &TargetOutcome) -> api::TargetEndStatus {
    api::TargetEndStatus {
        kind: end.kind.as_str().to_owned(),
        name: end.name.clone(),
        result: end.result.as_str().to_owned(),
        message: end.message.clone(),
        node_reboot: end.node_reboot.clone(),
    }
}

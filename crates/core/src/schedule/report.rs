//! Conditions, Events and messages of a schedule.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::due::MissedOccurrences;
use super::reason;
use super::types::{
    OccurrenceOutcome, OccurrenceRecord, Schedule, ScheduleStatus, TargetOutcome, TargetResult,
};
use crate::Now;
use crate::condition::{ConditionStatus as Is, DesiredCondition};
use crate::decision::{DecisionCause, DecisionEvent, DecisionReport, EventSeverity};

/// Events are reported only about what is at most this old: a leader that starts later does not
/// repeat old Events.
const MAX_EVENT_AGE: std::time::Duration = std::time::Duration::from_hours(1);
/// The most targets that a sentence names.
const MAX_NAMED_TARGETS: usize = 3;

/// Why the schedule does what it does now.
pub(super) fn schedule_cause(schedule: &Schedule, status: &ScheduleStatus) -> DecisionCause {
    let plan = match &schedule.plan {
        Ok(plan) => plan,
        Err(problems) => return DecisionCause::new(reason::INVALID, problems.join("; ")),
    };
    if let Some(current) = status.current {
        let at = format_in_zone(current.at, &plan.zone);
        return DecisionCause::new(
            reason::ISSUING,
            format!("the requests of {at} are being issued; those that fail are tried again"),
        );
    }
    if plan.suspend {
        return DecisionCause::new(
            reason::SUSPENDED,
            "spec.suspend is true: no request is issued until you unset it",
        );
    }
    match status.next {
        Some(next) => {
            let next = format_in_zone(next, &plan.zone);
            DecisionCause::new(
                reason::WAITING_FOR_TIME,
                format!("the next occurrence is at {next}"),
            )
        }
        None => DecisionCause::new(reason::COMPLETED, "no occurrence is left"),
    }
}

pub(super) fn build_report(
    schedule: &Schedule,
    status: &ScheduleStatus,
    because: &DecisionCause,
    now: Now,
) -> DecisionReport {
    let mut conditions = vec![accepted_condition(schedule), active_condition(because)];
    conditions.extend(status.history.first().map(last_issued_condition));
    let news = status.history.iter().filter(|record| {
        now.elapsed_since(record.ended) < MAX_EVENT_AGE && record.ended <= now.wall
    });
    let mut events: Vec<DecisionEvent> = news.map(occurrence_event).collect();
    // The oldest first, in the order in which they happened.
    events.reverse();
    if schedule.plan.is_err() {
        events.push(DecisionEvent {
            severity: EventSeverity::Warning,
            reason: reason::INVALID,
            message: because.message.clone(),
        });
    }
    DecisionReport { conditions, events }
}

fn accepted_condition(schedule: &Schedule) -> DesiredCondition {
    match &schedule.plan {
        Ok(_) => build_observation(reason::ACCEPTED, Is::True, reason::VALID, String::new()),
        Err(problems) => {
            let problems = problems.join("; ");
            build_observation(reason::ACCEPTED, Is::False, reason::INVALID, problems)
        }
    }
}

fn active_condition(because: &DecisionCause) -> DesiredCondition {
    let is = matches!(because.reason, reason::WAITING_FOR_TIME | reason::ISSUING);
    let status = if is { Is::True } else { Is::False };
    build_observation(
        reason::ACTIVE,
        status,
        because.reason,
        because.message.clone(),
    )
}

fn last_issued_condition(record: &OccurrenceRecord) -> DesiredCondition {
    let status = match record.outcome {
        OccurrenceOutcome::Requested => Is::True,
        OccurrenceOutcome::PartlyRequested
        | OccurrenceOutcome::Failed
        | OccurrenceOutcome::Missed
        | OccurrenceOutcome::Cancelled
        | OccurrenceOutcome::NoTargets => Is::False,
    };
    let message = describe_record(record);
    build_observation(
        reason::LAST_OCCURRENCE_ISSUED,
        status,
        record.outcome.as_str(),
        message,
    )
}

fn build_observation(
    kind: &'static str,
    status: Is,
    reason: &'static str,
    message: String,
) -> DesiredCondition {
    DesiredCondition {
        kind,
        status,
        reason: reason.into(),
        message,
        heartbeat: false,
    }
}

fn occurrence_event(record: &OccurrenceRecord) -> DecisionEvent {
    let severity = match record.outcome {
        OccurrenceOutcome::Requested | OccurrenceOutcome::Cancelled => EventSeverity::Normal,
        OccurrenceOutcome::PartlyRequested
        | OccurrenceOutcome::Failed
        | OccurrenceOutcome::Missed
        | OccurrenceOutcome::NoTargets => EventSeverity::Warning,
    };
    DecisionEvent {
        severity,
        reason: record.outcome.as_str(),
        message: describe_record(record),
    }
}

fn describe_record(record: &OccurrenceRecord) -> String {
    format!("{}: {}", record.at, record.message)
}

/// The message of a record; `targets` are all of them, those that failed first.
pub(super) fn describe_occurrence(
    record: &OccurrenceRecord,
    targets: &[TargetOutcome],
    why: Option<&str>,
) -> String {
    let mut parts: Vec<String> = why.map(str::to_owned).into_iter().collect();
    if targets.is_empty() {
        parts.push("no node or host was selected".into());
    } else {
        parts.push(format!(
            "{} of {} were requested",
            record.asked,
            targets.len()
        ));
    }
    if record.noted > 0 {
        parts.push(format!("{} had a request already", record.noted));
    }
    if record.failed > 0 {
        parts.push(format!(
            "{} could not be requested: {}",
            record.failed,
            describe_failed_targets(targets)
        ));
    }
    parts.join("; ")
}

fn describe_failed_targets(targets: &[TargetOutcome]) -> String {
    let failed = targets
        .iter()
        .filter(|end| end.result == TargetResult::Failed);
    let named = failed.clone().take(MAX_NAMED_TARGETS);
    let named = named.map(|end| format!("{} {} ({})", end.kind.as_str(), end.name, end.message));
    let more = failed.count().saturating_sub(MAX_NAMED_TARGETS);
    let more = (more > 0).then(|| format!("and {more} more"));
    named.chain(more).collect::<Vec<_>>().join(", ")
}

/// The message of the record of missed occurrences.
pub(super) fn describe_missed(missed: MissedOccurrences) -> String {
    let rule = "no controller issued it before the starting deadline; it is not repeated";
    match missed.count {
        0 | 1 => rule.to_owned(),
        count => format!(
            "{rule}; the same holds for {} before it, from {} on",
            count - 1,
            missed.oldest
        ),
    }
}

/// The time on that zone's clock, with the offset and the zone's name.
pub(crate) fn format_in_zone(at: Timestamp, zone: &TimeZone) -> String {
    if *zone == TimeZone::UTC || zone.iana_name() == Some("UTC") {
        return at.to_string();
    }
    at.to_zoned(zone.clone()).to_string()
}

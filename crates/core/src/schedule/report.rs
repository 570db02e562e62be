//! Conditions, Events and messages of a schedule.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::due::MissedOccurrences;
use super::reason::ScheduleReason;
use super::types::{
    OccurrenceOutcome, OccurrenceRecord, Schedule, ScheduleStatus, TargetOutcome, TargetResult,
};
use crate::Now;
use crate::condition::{ConditionStatus as Is, DesiredCondition};
use crate::decision::{DecisionCause, DecisionEvent, DecisionReport, EventSeverity};
use crate::reason::ReasonSeverity;
use crate::reported_events::is_recent_news;

/// Condition: whether the schedule can be parsed.
const ACCEPTED_CONDITION: &str = "Accepted";
/// Condition: whether an occurrence lies ahead or is being issued.
pub(crate) const ACTIVE_CONDITION: &str = "Active";
/// Condition: whether the last occurrence was issued to all of its targets.
const LAST_OCCURRENCE_ISSUED: &str = "LastOccurrenceIssued";

/// The most targets that a sentence names.
const MAX_NAMED_TARGETS: usize = 3;

/// Why the schedule does what it does now.
pub(super) fn schedule_cause(
    schedule: &Schedule,
    status: &ScheduleStatus,
) -> DecisionCause<ScheduleReason> {
    let plan = match &schedule.plan {
        Ok(plan) => plan,
        Err(problems) => return DecisionCause::new(ScheduleReason::Invalid, problems.join("; ")),
    };
    if let Some(current) = status.current {
        let at = format_in_zone(current.at, &plan.zone);
        return DecisionCause::new(
            ScheduleReason::Issuing,
            format!("the requests of {at} are being issued; those that fail are tried again"),
        );
    }
    if plan.suspend {
        return DecisionCause::new(
            ScheduleReason::Suspended,
            "spec.suspend is true: no request is issued until you unset it",
        );
    }
    match status.next {
        Some(next) => {
            let next = format_in_zone(next, &plan.zone);
            DecisionCause::new(
                ScheduleReason::WaitingForTime,
                format!("the next occurrence is at {next}"),
            )
        }
        None => DecisionCause::new(ScheduleReason::Completed, "no occurrence is left"),
    }
}

pub(super) fn build_report(
    schedule: &Schedule,
    status: &ScheduleStatus,
    because: &DecisionCause<ScheduleReason>,
    now: Now,
) -> DecisionReport {
    let mut conditions = vec![accepted_condition(schedule), active_condition(because)];
    conditions.extend(status.history.first().map(last_issued_condition));
    let history = status.history.iter();
    let news = history.filter(|record| is_recent_news(record.ended, now));
    let mut events: Vec<DecisionEvent> = news.map(occurrence_event).collect();
    // The oldest first, in the order in which they happened.
    events.reverse();
    if schedule.plan.is_err() {
        events.push(DecisionEvent {
            severity: EventSeverity::Warning,
            reason: ScheduleReason::Invalid.as_str(),
            message: because.message.clone(),
        });
    }
    DecisionReport { conditions, events }
}

fn accepted_condition(schedule: &Schedule) -> DesiredCondition {
    match &schedule.plan {
        Ok(_) => build_observation(
            ACCEPTED_CONDITION,
            Is::True,
            ScheduleReason::Valid,
            String::new(),
        ),
        Err(problems) => {
            let problems = problems.join("; ");
            build_observation(
                ACCEPTED_CONDITION,
                Is::False,
                ScheduleReason::Invalid,
                problems,
            )
        }
    }
}

fn active_condition(because: &DecisionCause<ScheduleReason>) -> DesiredCondition {
    let is = matches!(
        because.reason,
        ScheduleReason::WaitingForTime | ScheduleReason::Issuing
    );
    let status = if is { Is::True } else { Is::False };
    build_observation(
        ACTIVE_CONDITION,
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
        LAST_OCCURRENCE_ISSUED,
        status,
        record.outcome.schedule_reason(),
        message,
    )
}

fn build_observation(
    kind: &'static str,
    status: Is,
    reason: ScheduleReason,
    message: String,
) -> DesiredCondition {
    DesiredCondition {
        kind,
        status,
        reason: reason.to_string(),
        message,
        heartbeat: false,
    }
}

fn occurrence_event(record: &OccurrenceRecord) -> DecisionEvent {
    let severity = match record.outcome.schedule_reason().severity() {
        ReasonSeverity::Progress | ReasonSeverity::Waiting => EventSeverity::Normal,
        ReasonSeverity::Warning | ReasonSeverity::Alarm => EventSeverity::Warning,
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

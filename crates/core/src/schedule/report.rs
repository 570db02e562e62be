//! Conditions, Events and messages of a schedule.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::due::MissedOccurrences;
use super::reason::ScheduleReason;
use super::reboot_outcome::{describe_reboots, is_all_rebooted};
use super::types::{
    OccurrenceOutcome, OccurrenceReboots, OccurrenceRecord, Schedule, ScheduleStatus,
    TargetOutcome, TargetResult,
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

/// Condition: whether the NodeReboots of the last occurrence that made any succeeded.
const LAST_OCCURRENCE_REBOOTED: &str = "LastOccurrenceRebooted";

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
    conditions.extend(last_rebooted_condition(status));
    let mut events: Vec<DecisionEvent> = Vec::new();
    // The oldest first.
    for record in status.history.iter().rev() {
        if is_recent_news(record.ended, now) {
            events.push(occurrence_event(record));
        }
        events.extend(reboots_event(record, now));
    }
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

fn last_rebooted_condition(status: &ScheduleStatus) -> Option<DesiredCondition> {
    let mut history = status.history.iter();
    let (record, reboots) = history.find_map(|record| Some((record, record.reboots.as_ref()?)))?;
    let reason = reboots_reason(reboots);
    let status = match (reboots.ended, is_all_rebooted(reboots)) {
        (None, _) => Is::Unknown,
        (Some(_), true) => Is::True,
        (Some(_), false) => Is::False,
    };
    let message = format!("{}: {}", record.at, describe_reboots(reboots));
    Some(build_observation(
        LAST_OCCURRENCE_REBOOTED,
        status,
        reason,
        message,
    ))
}

/// How the NodeReboots of an occurrence ended, or that they have not.
pub(crate) fn reboots_reason(reboots: &OccurrenceReboots) -> ScheduleReason {
    if reboots.ended.is_none() {
        ScheduleReason::AwaitingReboots
    } else if is_all_rebooted(reboots) {
        ScheduleReason::Rebooted
    } else {
        ScheduleReason::NotAllRebooted
    }
}

/// Once all NodeReboots of an occurrence have ended.
fn reboots_event(record: &OccurrenceRecord, now: Now) -> Option<DecisionEvent> {
    let reboots = record.reboots.as_ref()?;
    reboots.ended.filter(|ended| is_recent_news(*ended, now))?;
    let reason = reboots_reason(reboots);
    Some(DecisionEvent {
        severity: event_severity(reason),
        reason: reason.as_str(),
        message: format!("{}: {}", record.at, describe_reboots(reboots)),
    })
}

fn event_severity(reason: ScheduleReason) -> EventSeverity {
    match reason.severity() {
        ReasonSeverity::Progress | ReasonSeverity::Waiting => EventSeverity::Normal,
        ReasonSeverity::Warning | ReasonSeverity::Alarm => EventSeverity::Warning,
    }
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
        shows_reason: false,
    }
}

fn occurrence_event(record: &OccurrenceRecord) -> DecisionEvent {
    DecisionEvent {
        severity: event_severity(record.outcome.schedule_reason()),
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

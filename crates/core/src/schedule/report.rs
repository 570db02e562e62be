//! What a person is told.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::due::Missed;
use super::reason;
use super::types::{Outcome, Record, Schedule, Status, TargetEnd, TargetResult};
use crate::Now;
use crate::condition::{Observation, Status as Is};
use crate::decision::{Because, Event, Report, Severity};

/// An Event is said while what it tells is so young: a leader that comes later repeats no old news.
const NEWS: std::time::Duration = std::time::Duration::from_hours(1);
/// How many targets a sentence names.
const NAMED: usize = 3;

/// Why the schedule does what it does now.
pub(super) fn because(schedule: &Schedule, status: &Status) -> Because {
    let plan = match &schedule.plan {
        Ok(plan) => plan,
        Err(problems) => return Because::new(reason::INVALID, problems.join("; ")),
    };
    if let Some(current) = status.current {
        let at = on_clock(current.at, &plan.zone);
        return Because::new(
            reason::ISSUING,
            format!("the requests of {at} go out; those that cannot are tried again"),
        );
    }
    if plan.suspend {
        return Because::new(
            reason::SUSPENDED,
            "spec.suspend is true: nothing is issued until it is taken out",
        );
    }
    match status.next {
        Some(next) => {
            let next = on_clock(next, &plan.zone);
            Because::new(reason::WAITING, format!("the next occurrence is at {next}"))
        }
        None => Because::new(reason::COMPLETED, "no occurrence lies ahead"),
    }
}

/// Conditions and Events.
pub(super) fn report(schedule: &Schedule, status: &Status, because: &Because, now: Now) -> Report {
    let mut conditions = vec![accepted(schedule), active(because)];
    conditions.extend(status.history.first().map(last_issued));
    let news = status
        .history
        .iter()
        .filter(|record| now.since(record.ended) < NEWS && record.ended <= now.wall);
    let mut events: Vec<Event> = news.map(event).collect();
    // The oldest first, as they happened.
    events.reverse();
    if schedule.plan.is_err() {
        events.push(Event {
            severity: Severity::Warning,
            reason: reason::INVALID,
            message: because.message.clone(),
        });
    }
    Report { conditions, events }
}

fn accepted(schedule: &Schedule) -> Observation {
    match &schedule.plan {
        Ok(_) => observation(reason::ACCEPTED, Is::True, reason::VALID, String::new()),
        Err(problems) => {
            let problems = problems.join("; ");
            observation(reason::ACCEPTED, Is::False, reason::INVALID, problems)
        }
    }
}

fn active(because: &Because) -> Observation {
    let is = matches!(because.reason, reason::WAITING | reason::ISSUING);
    let status = if is { Is::True } else { Is::False };
    observation(
        reason::ACTIVE,
        status,
        because.reason,
        because.message.clone(),
    )
}

fn last_issued(record: &Record) -> Observation {
    let status = match record.outcome {
        Outcome::Requested => Is::True,
        Outcome::PartlyRequested
        | Outcome::Failed
        | Outcome::Missed
        | Outcome::Cancelled
        | Outcome::NoTargets => Is::False,
    };
    let message = told(record);
    observation(
        reason::LAST_ISSUED,
        status,
        record.outcome.as_str(),
        message,
    )
}

fn observation(
    kind: &'static str,
    status: Is,
    reason: &'static str,
    message: String,
) -> Observation {
    Observation {
        kind,
        status,
        reason: reason.into(),
        message,
        heartbeat: false,
    }
}

fn event(record: &Record) -> Event {
    let severity = match record.outcome {
        Outcome::Requested | Outcome::Cancelled => Severity::Normal,
        Outcome::PartlyRequested | Outcome::Failed | Outcome::Missed | Outcome::NoTargets => {
            Severity::Warning
        }
    };
    Event {
        severity,
        reason: record.outcome.as_str(),
        message: told(record),
    }
}

fn told(record: &Record) -> String {
    format!("{}: {}", record.at, record.message)
}

/// What a record says; `targets` are all of them, those that failed first.
pub(super) fn sentence(record: &Record, targets: &[TargetEnd], why: Option<&str>) -> String {
    let mut parts: Vec<String> = why.map(str::to_owned).into_iter().collect();
    if targets.is_empty() {
        parts.push("no node and no host was chosen".into());
    } else {
        parts.push(format!("{} of {} were asked", record.asked, targets.len()));
    }
    if record.noted > 0 {
        parts.push(format!("{} had a request already", record.noted));
    }
    if record.failed > 0 {
        parts.push(format!("{} were not: {}", record.failed, failed(targets)));
    }
    parts.join("; ")
}

fn failed(targets: &[TargetEnd]) -> String {
    let failed = targets
        .iter()
        .filter(|end| end.result == TargetResult::Failed);
    let named = failed.clone().take(NAMED);
    let named = named.map(|end| format!("{} {} ({})", end.kind.as_str(), end.name, end.message));
    let more = failed.count().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("and {more} more"));
    named.chain(more).collect::<Vec<_>>().join(", ")
}

/// What the record of missed occurrences says.
pub(super) fn missed(missed: Missed) -> String {
    let rule = "nobody was there to issue it before the starting deadline; it is not made up for";
    match missed.count {
        0 | 1 => rule.to_owned(),
        count => format!(
            "{rule}; neither are {} before it, from {} on",
            count - 1,
            missed.oldest
        ),
    }
}

/// As that zone's clock shows it, with the offset and its name.
pub(crate) fn on_clock(at: Timestamp, zone: &TimeZone) -> String {
    if *zone == TimeZone::UTC || zone.iana_name() == Some("UTC") {
        return at.to_string();
    }
    at.to_zoned(zone.clone()).to_string()
}

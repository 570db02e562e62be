//! What is to be done about one schedule.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::due::{Due, due, is_late};
use super::reason;
use super::record::{finished, missed_record, record, remember, whole_second};
use super::report;
use super::seen::{Seen, TargetsSeen};
use super::stand::{Stand, stands};
use super::target::{Ask, Target};
use super::types::{Current, Outcome, Plan, Record, Schedule, Status};
use crate::Now;
use crate::condition::Observation;
use crate::decision::{Because, Report, Wake};

/// What was read of targets is believed for so long; a patch relies on the version anyway.
const FRESH: Duration = Duration::from_secs(10);
/// A clock that was set is noticed within this.
const CLOCK_LOOK: Duration = Duration::from_mins(1);

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// The schedule's status as it should stand, on the version that was seen. Its `conditions` stay:
    /// the decision's report says how they should stand.
    WriteStatus(Box<Status>),
    /// Asks one target, and marks it.
    Ask(Box<Ask>),
}

/// What has to be looked at, now and once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// All Nodes and all hosts of the schedule's namespace, as far as the schedule asks for some.
    Targets,
}

/// What a decision about a schedule is.
pub type Decision = crate::Decision<Action, Look>;

/// What is to be done now about one schedule.
pub fn decide(seen: &Seen, now: Now) -> Decision {
    let schedule = &seen.schedule;
    if schedule.deleting {
        let because = Because::new(reason::DELETING, "it is being deleted");
        return rest(because, Report::default());
    }
    let (due, step) = match &schedule.plan {
        Ok(plan) => {
            let due = due(schedule, plan, now.wall);
            let step = step(seen, plan, &due, now);
            (due, step)
        }
        Err(_) => (Due::default(), without_plan(seen, now)),
    };
    let status = status_after(schedule, &due, &step, now);
    let because = report::because(schedule, &status);
    let report = report::report(schedule, &status, &because, now);
    let writes = differs(schedule, &status, &report.conditions);
    let wake = wake(seen, &status, now);
    let mut decision = rest(because, report);
    decision.wake = wake;
    match step {
        _ if writes => decision.actions = vec![Action::WriteStatus(Box::new(status))],
        Step::Rest | Step::Begin(_) | Step::Finish(_) => {}
        Step::Look => decision.looks = vec![Look::Targets],
        Step::Ask(asks) => {
            decision.actions = asks
                .into_iter()
                .map(|ask| Action::Ask(Box::new(ask)))
                .collect();
        }
    }
    decision
}

enum Step {
    /// Nothing.
    Rest,
    /// An occurrence's time has come: the intention.
    Begin(Timestamp),
    /// Whom it asks must be read.
    Look,
    /// The requests.
    Ask(Vec<Ask>),
    /// What came of it.
    Finish(Record),
}

fn step(seen: &Seen, plan: &Plan, due: &Due, now: Now) -> Step {
    let Some(current) = seen.schedule.status.current else {
        return match due.now.filter(|_| !plan.suspend) {
            Some(at) => Step::Begin(at),
            None => Step::Rest,
        };
    };
    let Some(targets) = fresh(seen, now) else {
        return Step::Look;
    };
    let stands = stands(seen, plan, targets, current, now);
    let ends = why_it_ends(plan, due, current, now);
    if ends.is_none()
        && stands
            .values()
            .any(|stand| !matches!(stand, Stand::Settled(..)))
    {
        return Step::Ask(asks(stands));
    }
    Step::Finish(finished(seen, current, stands, ends, now))
}

/// A schedule that cannot be understood any more asks nobody; whom it has asked cannot be told.
fn without_plan(seen: &Seen, now: Now) -> Step {
    match seen.schedule.status.current {
        None => Step::Rest,
        Some(current) => Step::Finish(Record {
            message:
                "the schedule was changed meanwhile, and cannot be understood any more; targets \
                      that were asked before have annotation dogwatch.dev/scheduled"
                    .into(),
            ..record(current.at, Outcome::Cancelled, now)
        }),
    }
}

fn fresh(seen: &Seen, now: Now) -> Option<&TargetsSeen> {
    let targets = seen.targets.as_ref();
    targets.filter(|targets| now.mono.saturating_sub(targets.taken) < FRESH)
}

/// Why nobody is asked any more who was not yet, if that is so.
fn why_it_ends(
    plan: &Plan,
    due: &Due,
    current: Current,
    now: Now,
) -> Option<(Outcome, &'static str)> {
    if plan.suspend {
        return Some((Outcome::Cancelled, "the schedule was suspended meanwhile"));
    }
    if !plan.when.has(current.at) {
        let why = "the schedule was changed meanwhile, and has no such time any more";
        return Some((Outcome::Cancelled, why));
    }
    if is_late(current.at, plan, now.wall) {
        return Some((Outcome::Failed, "the starting deadline has passed"));
    }
    due.now
        .map(|_| (Outcome::Failed, "the time of the next occurrence has come"))
}

fn asks(stands: BTreeMap<Target, Stand>) -> Vec<Ask> {
    let open = stands.into_values().filter_map(|stand| match stand {
        Stand::Open(ask) => Some(*ask),
        Stand::Blocked(_) | Stand::Settled(..) => None,
    });
    open.collect()
}

/// The status once the step is done.
fn status_after(schedule: &Schedule, due: &Due, step: &Step, now: Now) -> Status {
    let mut status = schedule.status.clone();
    let suspended = schedule.plan.as_ref().is_ok_and(|plan| plan.suspend);
    status.observed_generation = schedule.generation;
    status.next = due.next.filter(|_| !suspended);
    if let Some(missed) = due.missed.filter(|_| !suspended) {
        remember(&mut status, missed_record(missed, now));
    }
    match step {
        Step::Rest | Step::Look | Step::Ask(_) => {}
        Step::Begin(at) => {
            let begun = whole_second(now.wall);
            status.current = Some(Current { at: *at, begun });
            status.last = Some(*at);
        }
        Step::Finish(record) => {
            status.current = None;
            remember(&mut status, record.clone());
        }
    }
    status
}

fn differs(schedule: &Schedule, wanted: &Status, conditions: &[Observation]) -> bool {
    let standing = &schedule.status;
    let stands = |wanted: &Observation| {
        let mut there = standing.conditions.iter();
        there.any(|there| {
            there.kind == wanted.kind
                && there.status == wanted.status.as_str()
                && there.reason == wanted.reason
                && there.message == wanted.message
        })
    };
    standing != wanted || !conditions.iter().all(stands)
}

fn wake(seen: &Seen, status: &Status, now: Now) -> Option<Wake> {
    let look = Wake {
        at: now.mono + CLOCK_LOOK,
        why: "whether the clock was set",
    };
    let next = status.next.map(|next| Wake {
        at: now.mono_at(next),
        why: "the next occurrence",
    });
    let current = seen.schedule.status.current.map(|_| Wake {
        at: now.mono + FRESH,
        why: "targets that could not be asked",
    });
    let soonest = Wake::earlier(next, current);
    // Without a time ahead no clock can make one come.
    soonest.map(|soonest| if soonest.at < look.at { soonest } else { look })
}

fn rest(because: Because, report: Report) -> Decision {
    crate::Decision {
        actions: Vec::new(),
        looks: Vec::new(),
        report,
        wake: None,
        because,
    }
}

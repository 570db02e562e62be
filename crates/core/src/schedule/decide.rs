//! Decides what to do about one schedule.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::due::{DueOccurrences, find_due_occurrences, is_late};
use super::made_reboot::{MadeNodeReboots, MadeNodeRebootsRead, NodeRebootDraft};
use super::reason::ScheduleReason;
use super::reboot_outcome::{FOLLOW_INTERVAL, follow_reboots, has_open_reboots, next_follow};
use super::record::{
    add_to_history, empty_record, finish_occurrence, missed_record, truncate_to_second,
};
use super::report;
use super::snapshot::{ObservedTargets, ScheduleSnapshot};
use super::spec_change::record_spec_since;
use super::target::{RebootRequestPatch, ScheduleTarget};
use super::target_state::{OpenRequest, TargetState, resolve_targets};
use super::types::{
    CurrentOccurrence, OccurrenceOutcome, OccurrenceRecord, Schedule, SchedulePlan, ScheduleStatus,
};
use crate::Now;
use crate::condition::{DesiredCondition, are_conditions_standing};
use crate::decision::{DecisionCause, DecisionReport, WakeTime};
use crate::time::SCHEDULE_CLOCK_CHECK_INTERVAL;

/// Reads of targets older than this are repeated. Each patch relies on the resourceVersion anyway.
const MAX_TARGETS_AGE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq)]
pub enum ScheduleAction {
    /// Write the schedule's status on the resourceVersion last seen. Its `conditions` are not
    /// written from here: the decision's report states them.
    WriteStatus(Box<ScheduleStatus>),
    /// Create the NodeReboot of one Node. The Node is marked after it.
    CreateReboot(Box<NodeRebootDraft>),
    /// Send a request to one target, and mark the target; or only mark it.
    Ask(Box<RebootRequestPatch>),
}

/// A fact to read once, now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleObserve {
    /// All Nodes and all hosts of the schedule's namespace, as far as the schedule selects any.
    Targets,
    /// The schedule's NodeReboots.
    Reboots,
}

pub type ScheduleDecision = crate::Decision<ScheduleAction, ScheduleObserve, ScheduleReason>;

pub fn decide(seen: &ScheduleSnapshot, now: Now) -> ScheduleDecision {
    let schedule = &seen.schedule;
    if schedule.deleting {
        let because = DecisionCause::new(ScheduleReason::Deleting, "it is being deleted");
        return decision_without_actions(because, DecisionReport::default());
    }
    let (due, step) = match &schedule.plan {
        Ok(plan) => {
            let due = find_due_occurrences(schedule, plan, now.wall);
            let step = decide_step(seen, plan, &due, now);
            (due, step)
        }
        Err(_) => (DueOccurrences::default(), decide_without_plan(seen, now)),
    };
    let status = status_after_step(seen, &due, &step, now);
    let because = report::schedule_cause(schedule, &status);
    let report = report::build_report(schedule, &status, &because, now);
    let writes = has_status_changed(schedule, &status, &report.conditions);
    let wake = next_wake(seen, &status, now);
    let mut decision = decision_without_actions(because, report);
    decision.wake = wake;
    match step {
        _ if writes => decision.actions = vec![ScheduleAction::WriteStatus(Box::new(status))],
        ScheduleStep::Rest | ScheduleStep::Begin(_) | ScheduleStep::Finish(_) => {
            if must_follow(seen, &status, now) {
                decision.observe.push(ScheduleObserve::Reboots);
            }
        }
        ScheduleStep::Look(what) => decision.observe = what,
        ScheduleStep::Ask(asks) => decision.actions = asks,
    }
    decision
}

/// Whether NodeReboots that have not ended have to be read now.
fn must_follow(seen: &ScheduleSnapshot, status: &ScheduleStatus, now: Now) -> bool {
    has_open_reboots(status) && fresh_reboots(seen, FOLLOW_INTERVAL, now).is_none()
}

enum ScheduleStep {
    Rest,
    /// Write that this occurrence begins.
    Begin(Timestamp),
    /// These must be read.
    Look(Vec<ScheduleObserve>),
    /// Send these requests.
    Ask(Vec<ScheduleAction>),
    /// Record the outcome of the occurrence.
    Finish(OccurrenceRecord),
}

fn decide_step(
    seen: &ScheduleSnapshot,
    plan: &SchedulePlan,
    due: &DueOccurrences,
    now: Now,
) -> ScheduleStep {
    let Some(current) = seen.schedule.status.current else {
        return match due.now.filter(|_| !plan.suspend) {
            Some(at) => ScheduleStep::Begin(at),
            None => ScheduleStep::Rest,
        };
    };
    let Some(targets) = fresh_targets(seen, now) else {
        return ScheduleStep::Look(list_first_reads(plan));
    };
    let unneeded = MadeNodeRebootsRead {
        made: MadeNodeReboots::Known(BTreeMap::new()),
        refused: None,
        taken: now.mono,
    };
    let reboots = match fresh_reboots(seen, MAX_TARGETS_AGE, now) {
        // What is marked on a target was made before the target was read.
        Some(read) if read.taken >= targets.taken => read,
        Some(_) | None if has_nodes(plan, targets) => {
            return ScheduleStep::Look(vec![ScheduleObserve::Reboots]);
        }
        Some(_) | None => &unneeded,
    };
    let stands = resolve_targets(seen, plan, (targets, reboots), current, now);
    let ends = find_end_cause(plan, due, current, now);
    if ends.is_none() && !stands.values().all(is_settled) {
        return ScheduleStep::Ask(open_requests(stands));
    }
    ScheduleStep::Finish(finish_occurrence(seen, current, stands, ends, now))
}

fn is_settled(state: &TargetState) -> bool {
    match state {
        TargetState::Settled(..) | TargetState::Made { mark: None, .. } => true,
        TargetState::Made { mark: Some(_), .. }
        | TargetState::Open(_)
        | TargetState::Blocked(_) => false,
    }
}

/// Only Nodes are asked by NodeReboots.
fn list_first_reads(plan: &SchedulePlan) -> Vec<ScheduleObserve> {
    let reboots = plan.nodes.is_some().then_some(ScheduleObserve::Reboots);
    [ScheduleObserve::Targets]
        .into_iter()
        .chain(reboots)
        .collect()
}

fn has_nodes(plan: &SchedulePlan, targets: &ObservedTargets) -> bool {
    let mut hosts = targets.hosts.iter().flatten();
    plan.nodes.is_some() || hosts.any(|host| host.carries.is_some())
}

/// A schedule that can no longer be parsed asks nobody. The targets that it has asked are unknown.
fn decide_without_plan(seen: &ScheduleSnapshot, now: Now) -> ScheduleStep {
    match seen.schedule.status.current {
        None => ScheduleStep::Rest,
        Some(current) => ScheduleStep::Finish(OccurrenceRecord {
            message:
                "the schedule was changed in the meantime and is invalid now; targets that were \
                      requested before have annotation dogwatch.dev/scheduled"
                    .into(),
            ..empty_record(current.at, OccurrenceOutcome::Cancelled, now)
        }),
    }
}

fn fresh_targets(seen: &ScheduleSnapshot, now: Now) -> Option<&ObservedTargets> {
    let targets = seen.targets.as_ref();
    targets.filter(|targets| now.mono.saturating_sub(targets.taken) < MAX_TARGETS_AGE)
}

fn fresh_reboots(
    seen: &ScheduleSnapshot,
    max_age: Duration,
    now: Now,
) -> Option<&MadeNodeRebootsRead> {
    let reboots = seen.reboots.as_ref();
    reboots.filter(|reboots| now.mono.saturating_sub(reboots.taken) < max_age)
}

/// Why targets that have not been asked yet are not asked any more; `None` if they still are.
fn find_end_cause(
    plan: &SchedulePlan,
    due: &DueOccurrences,
    current: CurrentOccurrence,
    now: Now,
) -> Option<(OccurrenceOutcome, &'static str)> {
    if plan.suspend {
        return Some((
            OccurrenceOutcome::Cancelled,
            "the schedule was suspended in the meantime",
        ));
    }
    if !plan.when.includes_time(current.at) {
        let why = "the schedule was changed in the meantime and no longer has this occurrence";
        return Some((OccurrenceOutcome::Cancelled, why));
    }
    if is_late(current.at, plan, now.wall) {
        return Some((
            OccurrenceOutcome::Failed,
            "the starting deadline has passed",
        ));
    }
    due.now.map(|_| {
        (
            OccurrenceOutcome::Failed,
            "the time of the next occurrence has come",
        )
    })
}

fn open_requests(stands: BTreeMap<ScheduleTarget, TargetState>) -> Vec<ScheduleAction> {
    let open = stands.into_values().filter_map(|stand| match stand {
        TargetState::Open(open) => Some(match *open {
            OpenRequest::Create(draft) => ScheduleAction::CreateReboot(Box::new(draft)),
            OpenRequest::Patch(patch) => ScheduleAction::Ask(Box::new(patch)),
        }),
        TargetState::Made { mark, .. } => mark.map(ScheduleAction::Ask),
        TargetState::Blocked(_) | TargetState::Settled(..) => None,
    });
    open.collect()
}

/// The status once the step is done.
fn status_after_step(
    seen: &ScheduleSnapshot,
    due: &DueOccurrences,
    step: &ScheduleStep,
    now: Now,
) -> ScheduleStatus {
    let schedule = &seen.schedule;
    let mut status = schedule.status.clone();
    let suspended = schedule.plan.as_ref().is_ok_and(|plan| plan.suspend);
    record_spec_since(&mut status, schedule, now.wall);
    status.observed_generation = schedule.generation;
    status.next = due.next.filter(|_| !suspended);
    if let Some(missed) = due.missed.filter(|_| !suspended) {
        add_to_history(&mut status, missed_record(missed, now));
    }
    match step {
        ScheduleStep::Rest | ScheduleStep::Look(_) | ScheduleStep::Ask(_) => {}
        ScheduleStep::Begin(at) => {
            let begun = truncate_to_second(now.wall);
            status.current = Some(CurrentOccurrence { at: *at, begun });
            status.last = Some(*at);
        }
        ScheduleStep::Finish(record) => {
            status.current = None;
            add_to_history(&mut status, record.clone());
        }
    }
    if let Some(read) = fresh_reboots(seen, FOLLOW_INTERVAL, now) {
        follow_reboots(&mut status, &read.made, now);
    }
    status
}

fn has_status_changed(
    schedule: &Schedule,
    wanted: &ScheduleStatus,
    conditions: &[DesiredCondition],
) -> bool {
    let standing = &schedule.status;
    standing != wanted || !are_conditions_standing(&standing.conditions, conditions)
}

fn next_wake(seen: &ScheduleSnapshot, status: &ScheduleStatus, now: Now) -> Option<WakeTime> {
    let look = WakeTime {
        at: now.mono + SCHEDULE_CLOCK_CHECK_INTERVAL,
        why: "whether the clock was set",
    };
    let next = status.next.map(|next| WakeTime {
        at: now.mono_time_of(next),
        why: "the next occurrence",
    });
    let current = seen.schedule.status.current.map(|_| WakeTime {
        at: now.mono + MAX_TARGETS_AGE,
        why: "targets that could not be requested",
    });
    let follow = has_open_reboots(status).then(|| WakeTime {
        at: next_follow(seen.reboots.as_ref().map(|read| read.taken), now),
        why: "NodeReboots that have not ended",
    });
    let soonest = WakeTime::earlier_of(WakeTime::earlier_of(next, current), follow);
    // Without a next time, setting the clock cannot bring one.
    soonest.map(|soonest| if soonest.at < look.at { soonest } else { look })
}

fn decision_without_actions(
    because: DecisionCause<ScheduleReason>,
    report: DecisionReport,
) -> ScheduleDecision {
    crate::Decision {
        actions: Vec::new(),
        observe: Vec::new(),
        report,
        wake: None,
        cause: because,
    }
}

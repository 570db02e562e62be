//! The coming occurrences of a schedule, for people.

use jiff::Timestamp;

use super::due::{OCCURRENCE_SEARCH_AHEAD, find_due_occurrences};
use super::reason::ScheduleReason;
use super::report;
use super::timing::ScheduleTiming;
use super::types::{Schedule, ScheduleStatus};
use crate::Now;
use crate::decision::DecisionCause;

/// The coming occurrences, computed by the functions that the decision uses. Whether a controller
/// runs to issue them is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleForecast {
    /// Why the schedule does what it does now, as its decision would say it.
    pub because: DecisionCause<ScheduleReason>,
    /// A time that has come, is not too late, and that no controller has begun.
    pub come: Option<Timestamp>,
    /// The occurrences after it, in order; none while the schedule is suspended.
    pub ahead: Vec<Timestamp>,
}

/// Lists at most `most` occurrences.
pub fn forecast_schedule(schedule: &Schedule, most: usize, now: Now) -> ScheduleForecast {
    let nothing = |because| ScheduleForecast {
        because,
        come: None,
        ahead: Vec::new(),
    };
    if schedule.deleting {
        return nothing(DecisionCause::new(
            ScheduleReason::Deleting,
            "it is being deleted",
        ));
    }
    let Ok(plan) = &schedule.plan else {
        return nothing(report::schedule_cause(schedule, &schedule.status));
    };
    let due = find_due_occurrences(schedule, plan, now.wall);
    let begun = schedule.status.current.is_some();
    let come = due.now.filter(|_| !plan.suspend && !begun);
    let next = due.next.filter(|_| !plan.suspend);
    let status = ScheduleStatus {
        next,
        ..schedule.status.clone()
    };
    let because = match come {
        Some(at) => DecisionCause::new(
            ScheduleReason::WaitingForTime,
            format!(
                "its time came at {}, and no controller has started it",
                report::format_in_zone(at, &plan.zone)
            ),
        ),
        None => report::schedule_cause(schedule, &status),
    };
    ScheduleForecast {
        because,
        come,
        ahead: next.map_or_else(Vec::new, |next| {
            list_occurrences_from(&plan.when, next, most)
        }),
    }
}

/// This occurrence and those after it.
fn list_occurrences_from(when: &ScheduleTiming, first: Timestamp, most: usize) -> Vec<Timestamp> {
    let later: Box<dyn Iterator<Item = Timestamp>> = match when {
        ScheduleTiming::At(_) => Box::new(std::iter::empty()),
        ScheduleTiming::Recurring(window) => {
            let last = first
                .checked_add(OCCURRENCE_SEARCH_AHEAD)
                .unwrap_or(Timestamp::MAX);
            Box::new(window.begins_between(first, last))
        }
    };
    let later = later.filter(|at| *at > first);
    std::iter::once(first).chain(later).take(most).collect()
}

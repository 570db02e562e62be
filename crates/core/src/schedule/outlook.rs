//! What lies ahead of a schedule, for people.

use jiff::Timestamp;

use super::due::{AHEAD, due};
use super::reason;
use super::report;
use super::types::{Schedule, Status};
use super::when::When;
use crate::Now;
use crate::decision::Because;

/// What lies ahead, by the functions that the decision uses. No controller may be there to do it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// Where the schedule stands, as its decision would say it.
    pub because: Because,
    /// A time that has come, is not too late, and that no controller has begun.
    pub come: Option<Timestamp>,
    /// The occurrences after it, in order; none while it is suspended.
    pub ahead: Vec<Timestamp>,
}

/// What lies ahead of this schedule; at most `most` occurrences.
pub fn outlook(schedule: &Schedule, most: usize, now: Now) -> Outlook {
    let nothing = |because| Outlook {
        because,
        come: None,
        ahead: Vec::new(),
    };
    if schedule.deleting {
        return nothing(Because::new(reason::DELETING, "it is being deleted"));
    }
    let Ok(plan) = &schedule.plan else {
        return nothing(report::because(schedule, &schedule.status));
    };
    let due = due(schedule, plan, now.wall);
    let begun = schedule.status.current.is_some();
    let come = due.now.filter(|_| !plan.suspend && !begun);
    let next = due.next.filter(|_| !plan.suspend);
    let status = Status {
        next,
        ..schedule.status.clone()
    };
    let because = match come {
        Some(at) => Because::new(
            reason::WAITING,
            format!(
                "its time came at {}, and no controller has begun it",
                report::on_clock(at, &plan.zone)
            ),
        ),
        None => report::because(schedule, &status),
    };
    Outlook {
        because,
        come,
        ahead: next.map_or_else(Vec::new, |next| from(&plan.when, next, most)),
    }
}

/// This one and those that come after it.
fn from(when: &When, first: Timestamp, most: usize) -> Vec<Timestamp> {
    let later: Box<dyn Iterator<Item = Timestamp>> = match when {
        When::At(_) => Box::new(std::iter::empty()),
        When::Recurring(window) => {
            let last = first.checked_add(AHEAD).unwrap_or(Timestamp::MAX);
            Box::new(window.begins_between(first, last))
        }
    };
    let later = later.filter(|at| *at > first);
    std::iter::once(first).chain(later).take(most).collect()
}

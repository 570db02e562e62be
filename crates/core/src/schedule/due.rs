//! Which occurrences have come, which were missed, which is next.

use jiff::{SignedDuration, Timestamp};

use super::types::{Plan, Schedule};
use super::when::When;

/// How far ahead a next occurrence is looked for: from one 29 February to the next there can be
/// eight years.
pub(super) const AHEAD: SignedDuration = SignedDuration::from_hours(9 * 366 * 24);
/// How far back what was missed is counted.
const BACK: SignedDuration = SignedDuration::from_hours(400 * 24);

/// Where a schedule stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Due {
    /// The newest occurrence that nobody issued and that is too late now, the oldest one, and how
    /// many there were.
    pub(super) missed: Option<Missed>,
    /// The one whose time has come.
    pub(super) now: Option<Timestamp>,
    /// The one after that.
    pub(super) next: Option<Timestamp>,
}

/// Occurrences that nobody issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missed {
    pub(super) newest: Timestamp,
    pub(super) oldest: Timestamp,
    pub(super) count: u32,
}

/// Of several whose time has come only the newest is issued.
pub(super) fn due(schedule: &Schedule, plan: &Plan, now: Timestamp) -> Due {
    let mut due = Due::default();
    for at in unhandled(schedule, plan, now) {
        if at > now {
            due.next = Some(at);
            break;
        }
        if let Some(older) = due.now.replace(at) {
            due.miss(older);
        }
    }
    if let Some(at) = due.now.filter(|at| is_late(*at, plan, now)) {
        due.now = None;
        due.miss(at);
    }
    due
}

/// Whether it is too late for it.
pub(super) fn is_late(at: Timestamp, plan: &Plan, now: Timestamp) -> bool {
    let late = now.duration_since(at);
    SignedDuration::try_from(plan.starting_deadline).is_ok_and(|most| late > most)
}

impl Due {
    fn miss(&mut self, at: Timestamp) {
        let before = self.missed.unwrap_or(Missed {
            newest: at,
            oldest: at,
            count: 0,
        });
        self.missed = Some(Missed {
            newest: before.newest.max(at),
            oldest: before.oldest.min(at),
            count: before.count.saturating_add(1),
        });
    }
}

/// Occurrences that were not begun or missed before, in order, the future ones too.
fn unhandled<'a>(
    schedule: &'a Schedule,
    plan: &'a Plan,
    now: Timestamp,
) -> Box<dyn Iterator<Item = Timestamp> + 'a> {
    let handled = handled(schedule);
    // A record of the future was made by a clock that was wrong; it hides nothing but itself.
    let floor = handled.iter().copied().filter(|at| *at <= now).max();
    let fresh = move |at: &Timestamp| !handled.contains(at);
    match &plan.when {
        When::At(at) => Box::new(
            Some(*at)
                .into_iter()
                .filter(move |at| floor.is_none_or(|floor| *at > floor))
                .filter(fresh),
        ),
        When::Recurring(window) => {
            let begun = schedule.created.max(schedule.changed.unwrap_or_default());
            let from = floor.map_or(begun, |floor| floor.max(begun));
            let from = from.max(now.checked_sub(BACK).unwrap_or(Timestamp::MIN));
            let last = now.max(from).checked_add(AHEAD).unwrap_or(Timestamp::MAX);
            Box::new(window.begins_between(from, last).filter(fresh))
        }
    }
}

fn handled(schedule: &Schedule) -> Vec<Timestamp> {
    let status = &schedule.status;
    let past = status.history.iter().map(|record| record.at);
    past.chain(status.current.map(|current| current.at))
        .collect()
}

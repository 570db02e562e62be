//! Which occurrences are due, which were missed, and which is next.

use jiff::{SignedDuration, Timestamp};

use super::spec_change::find_spec_since;
use super::timing::ScheduleTiming;
use super::types::{Schedule, SchedulePlan};

/// How far ahead a next occurrence is searched: two 29 Februaries can be eight years apart.
pub(super) const OCCURRENCE_SEARCH_AHEAD: SignedDuration = SignedDuration::from_hours(9 * 366 * 24);
/// How far back missed occurrences are counted.
const MISSED_SEARCH_BACK: SignedDuration = SignedDuration::from_hours(400 * 24);

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct DueOccurrences {
    /// Occurrences that nobody issued and that are too late now.
    pub(super) missed: Option<MissedOccurrences>,
    /// The occurrence whose time has come.
    pub(super) now: Option<Timestamp>,
    /// The occurrence after `now`.
    pub(super) next: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MissedOccurrences {
    pub(super) newest: Timestamp,
    pub(super) oldest: Timestamp,
    pub(super) count: u32,
}

/// Of several occurrences that are due, only the newest is issued.
pub(super) fn find_due_occurrences(
    schedule: &Schedule,
    plan: &SchedulePlan,
    now: Timestamp,
) -> DueOccurrences {
    let mut due = DueOccurrences::default();
    for at in list_unhandled_occurrences(schedule, plan, now) {
        if at > now {
            due.next = Some(at);
            break;
        }
        if let Some(older) = due.now.replace(at) {
            due.record_missed(older);
        }
    }
    if let Some(at) = due.now.filter(|at| is_late(*at, plan, now)) {
        due.now = None;
        due.record_missed(at);
    }
    due
}

/// Whether the occurrence is past its starting deadline.
pub(super) fn is_late(at: Timestamp, plan: &SchedulePlan, now: Timestamp) -> bool {
    let late = now.duration_since(at);
    SignedDuration::try_from(plan.starting_deadline).is_ok_and(|most| late > most)
}

impl DueOccurrences {
    fn record_missed(&mut self, at: Timestamp) {
        let before = self.missed.unwrap_or(MissedOccurrences {
            newest: at,
            oldest: at,
            count: 0,
        });
        self.missed = Some(MissedOccurrences {
            newest: before.newest.max(at),
            oldest: before.oldest.min(at),
            count: before.count.saturating_add(1),
        });
    }
}

/// Occurrences that were neither begun nor missed before, in order, including future ones.
fn list_unhandled_occurrences<'a>(
    schedule: &'a Schedule,
    plan: &'a SchedulePlan,
    now: Timestamp,
) -> Box<dyn Iterator<Item = Timestamp> + 'a> {
    let handled = list_handled_occurrences(schedule);
    // A record in the future was made while the clock was wrong: it hides only its own time.
    let floor = handled.iter().copied().filter(|at| *at <= now).max();
    let fresh = move |at: &Timestamp| !handled.contains(at);
    match &plan.when {
        ScheduleTiming::At(at) => Box::new(
            Some(*at)
                .into_iter()
                .filter(move |at| floor.is_none_or(|floor| *at > floor))
                .filter(fresh),
        ),
        ScheduleTiming::Recurring(window) => {
            let begun = find_spec_since(schedule, now);
            let from = floor.map_or(begun, |floor| floor.max(begun));
            let from = from.max(
                now.checked_sub(MISSED_SEARCH_BACK)
                    .unwrap_or(Timestamp::MIN),
            );
            let last = now
                .max(from)
                .checked_add(OCCURRENCE_SEARCH_AHEAD)
                .unwrap_or(Timestamp::MAX);
            Box::new(window.begins_between(from, last).filter(fresh))
        }
    }
}

fn list_handled_occurrences(schedule: &Schedule) -> Vec<Timestamp> {
    let status = &schedule.status;
    let past = status.history.iter().map(|record| record.at);
    past.chain(status.current.map(|current| current.at))
        .collect()
}

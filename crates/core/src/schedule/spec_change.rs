//! From when on occurrences of a schedule's present spec count.
//!
//! `metadata.generation` tells that the spec was changed. The managed fields tell when, but not always: a
//! write that only removes fields sets no time there and may remove the entry with the newest time, and
//! a write that changes a label moves the time of its writer's entry. So the status keeps the answer.

use jiff::{SignedDuration, Timestamp};

use super::record::truncate_to_second;
use super::types::{Schedule, ScheduleStatus};

/// A time that lies further ahead was written while the clock was wrong.
const MAX_CLOCK_ERROR: SignedDuration = SignedDuration::from_hours(24);

/// A recurrence has no occurrence before this time.
pub(super) fn find_spec_since(schedule: &Schedule, now: Timestamp) -> Timestamp {
    let status = &schedule.status;
    let latest = now.checked_add(MAX_CLOCK_ERROR).unwrap_or(Timestamp::MAX);
    let since = match status.spec_since {
        Some(since) if !is_spec_changed(schedule) && since <= latest => since,
        Some(_) if !is_spec_changed(schedule) => truncate_to_second(now),
        Some(_) => find_change_time(schedule, now),
        // No controller has seen the schedule yet, or one of an older version has.
        None => find_first_time(schedule, now),
    };
    since.max(schedule.created)
}

/// Writes down what [`find_spec_since`] found.
pub(super) fn record_spec_since(status: &mut ScheduleStatus, schedule: &Schedule, now: Timestamp) {
    status.spec_since = Some(find_spec_since(schedule, now));
    status.spec_since_generation = schedule.generation;
    status.spec_write_seen = schedule.status.spec_write_seen.max(schedule.changed);
}

/// Whether the spec was changed since the time in the status was written. A controller of an older
/// version moves the observed generation and leaves the time. It decides only where the
/// CustomResourceDefinition does not have the field for the other one.
fn is_spec_changed(schedule: &Schedule) -> bool {
    schedule.generation != known_generation(&schedule.status)
}

fn known_generation(status: &ScheduleStatus) -> Option<i64> {
    status.spec_since_generation.or(status.observed_generation)
}

/// The managed fields' time, if this change moved it. Else it is unknown, and nothing before now counts.
/// Of several changes that nobody saw singly, the time may be that of the first.
fn find_change_time(schedule: &Schedule, now: Timestamp) -> Timestamp {
    let status = &schedule.status;
    let is_single = schedule.generation == known_generation(status).map(|known| known + 1);
    let seen = status.spec_write_seen;
    let moved = schedule
        .changed
        .filter(|changed| is_single && Some(*changed) > seen);
    moved.unwrap_or_else(|| truncate_to_second(now))
}

fn find_first_time(schedule: &Schedule, now: Timestamp) -> Timestamp {
    let changed = schedule.changed.unwrap_or(schedule.created);
    let is_new = schedule.generation != schedule.status.observed_generation;
    let was_changed = is_new && schedule.generation > Some(1);
    if was_changed && changed <= schedule.created {
        return truncate_to_second(now);
    }
    changed
}

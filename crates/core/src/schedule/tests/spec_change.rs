//! From when on occurrences of a changed schedule count.

use super::kit::*;
use crate::schedule::*;

const TWO: &str = "2026-03-02T02:00:00Z";
const THREE: &str = "2026-03-02T03:00:00Z";
const HALF_PAST_THREE: &str = "2026-03-02T03:30:00Z";
const TOMORROW: &str = "2026-03-03T03:00:00Z";

/// A daily schedule of long ago whose last occurrence was handled; a controller sees it at `now_`.
fn daily_of_long_ago(now_: &str) -> ScheduleSnapshot {
    let mut seen = seen(daily("03:00"));
    let yesterday = at("2026-03-01T03:00:00Z");
    seen.schedule.changed = Some(seen.schedule.created);
    seen.schedule.status.history = vec![OccurrenceRecord {
        at: yesterday,
        ended: yesterday,
        outcome: OccurrenceOutcome::Requested,
        asked: 1,
        noted: 0,
        failed: 0,
        targets: Vec::new(),
        message: String::new(),
        reboots: None,
    }];
    seen.settled(now(now_)).0
}

/// `shown`: the newest time in the managed fields after the change.
fn suspend(seen: &mut ScheduleSnapshot, is_suspended: bool, shown: &str) {
    seen.schedule.plan.as_mut().unwrap().suspend = is_suspended;
    seen.schedule.generation = seen.schedule.generation.map(|generation| generation + 1);
    seen.schedule.changed = Some(at(shown));
}

fn assert_nothing_came(seen: &ScheduleSnapshot) {
    let status = &seen.schedule.status;
    assert_eq!(status.current, None);
    assert_eq!(status.history.len(), 1, "{:?}", status.history);
    assert_eq!(status.next, Some(at(TOMORROW)));
}

#[test]
fn a_change_that_the_managed_fields_do_not_show_makes_no_time_of_before_it_come() {
    let mut seen = daily_of_long_ago("2026-03-02T01:00:00Z");
    suspend(&mut seen, true, TWO);
    let (seen, _) = seen.settled(now(TWO));
    let (mut seen, _) = seen.settled(now(THREE));
    // The field is removed, and the entry of its writer with it.
    suspend(&mut seen, false, "2026-01-01T00:00:00Z");
    let (resumed, _) = seen.settled(now(HALF_PAST_THREE));
    assert_nothing_came(&resumed);
    let (resumed, _) = resumed.settled(now("2026-03-02T03:50:00Z"));
    assert_nothing_came(&resumed);
    let (issuing, _) = resumed.settled(now(TOMORROW));
    assert_eq!(issuing.schedule.status.current.unwrap().at, at(TOMORROW));
}

#[test]
fn a_label_that_was_changed_while_the_schedule_was_suspended_is_no_time_of_the_resumption() {
    let mut seen = daily_of_long_ago("2026-03-02T01:00:00Z");
    suspend(&mut seen, true, TWO);
    let (mut seen, _) = seen.settled(now(TWO));
    let label = "2026-03-02T02:30:00Z";
    seen.schedule.changed = Some(at(label));
    let (mut seen, _) = seen.settled(now(label));
    suspend(&mut seen, false, label);
    assert_nothing_came(&seen.settled(now(HALF_PAST_THREE)).0);
}

#[test]
fn a_change_of_a_label_loses_no_occurrence() {
    let mut seen = daily_of_long_ago("2026-03-02T02:50:00Z");
    // No controller runs until 03:20.
    seen.schedule.changed = Some(at("2026-03-02T03:10:00Z"));
    let (seen, _) = seen.settled(now("2026-03-02T03:20:00Z"));
    assert_eq!(seen.schedule.status.current.unwrap().at, at(THREE));
}

#[test]
fn an_occurrence_after_a_change_that_no_controller_saw_is_issued() {
    let mut seen = daily_of_long_ago("2026-03-02T01:00:00Z");
    suspend(&mut seen, false, TWO);
    let (seen, _) = seen.settled(now(HALF_PAST_THREE));
    assert_eq!(seen.schedule.status.current.unwrap().at, at(THREE));
}

#[test]
fn a_schedule_that_was_changed_before_any_controller_saw_it_begins_now() {
    let mut seen = seen(daily("03:00"));
    seen.schedule.created = at(TWO);
    seen.schedule.changed = Some(at(TWO));
    let (unchanged, _) = seen.clone().settled(now(HALF_PAST_THREE));
    assert_eq!(unchanged.schedule.status.current.unwrap().at, at(THREE));
    seen.schedule.generation = Some(3);
    let (changed, _) = seen.settled(now(HALF_PAST_THREE));
    assert_eq!(changed.schedule.status.history, []);
    assert_eq!(changed.schedule.status.next, Some(at(TOMORROW)));
}

#[test]
fn a_change_while_the_clock_was_years_ahead_stops_nothing_afterwards() {
    let mut seen = daily_of_long_ago("2026-03-02T01:00:00Z");
    suspend(&mut seen, false, "2026-01-01T00:00:00Z");
    let (seen, _) = seen.settled(now("2031-01-01T00:00:00Z"));
    let (seen, _) = seen.settled(now(TWO));
    assert_eq!(seen.schedule.status.next, Some(at(THREE)));
    let (seen, _) = seen.settled(now(THREE));
    assert_eq!(seen.schedule.status.current.unwrap().at, at(THREE));
}

#[test]
fn a_controller_of_an_older_version_that_led_meanwhile_makes_no_time_of_before_it_come() {
    // The second time is that of the suspension: the field was removed.
    for shown in ["2026-03-02T03:15:00Z", TWO] {
        let mut seen = daily_of_long_ago("2026-03-02T01:00:00Z");
        suspend(&mut seen, true, TWO);
        suspend(&mut seen, false, shown);
        // It has seen both changes, and knows nothing of the time.
        seen.schedule.status.observed_generation = seen.schedule.generation;
        assert_nothing_came(&seen.settled(now(HALF_PAST_THREE)).0);
    }
}

#[test]
fn a_time_whose_generation_is_unknown_is_of_the_observed_one() {
    let mut seen = daily_of_long_ago("2026-03-02T01:00:00Z");
    seen.schedule.status.spec_since_generation = None;
    let (issuing, _) = seen.settled(now(HALF_PAST_THREE));
    let status = issuing.schedule.status;
    assert_eq!(status.current.unwrap().at, at(THREE));
    assert_eq!(status.spec_since_generation, issuing.schedule.generation);
}

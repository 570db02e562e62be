//! Tests that need no server; the others are in `dogwatch-sim`, on both servers.

use dogwatch_core::schedule::ScheduleReason;

#[test]
fn every_family_of_the_schedules_is_in_the_book() {
    const BOOK: &str = include_str!("../../../../docs/schedules.md");
    let lines = include_str!("schedule_metrics.rs").lines();
    let names = lines.filter_map(|line| line.trim().strip_prefix("name: \""));
    let names: Vec<&str> = names.filter_map(|rest| rest.split('"').next()).collect();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        assert!(BOOK.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[test]
fn every_reason_is_in_the_book() {
    const BOOK: &str = include_str!("../../../../docs/schedules.md");
    for reason in ScheduleReason::ALL {
        // Nobody sees this reason: the schedule is gone.
        assert!(
            *reason == ScheduleReason::Deleting || BOOK.contains(&format!("`{reason}`")),
            "{reason}"
        );
    }
}

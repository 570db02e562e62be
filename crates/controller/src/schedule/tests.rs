//! Tests that need no server; the others are in `dogwatch-sim`, on both servers.

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
    const REASONS: &str = include_str!("../../../core/src/schedule/reason.rs");
    let lines = REASONS
        .lines()
        .filter(|line| line.starts_with("pub const "));
    let reasons: Vec<&str> = lines.filter_map(|line| line.split('"').nth(1)).collect();
    assert!(reasons.len() > 10, "{reasons:?}");
    for reason in reasons {
        // Nobody sees this reason: the schedule is gone.
        assert!(
            reason == "Deleting" || BOOK.contains(&format!("`{reason}`")),
            "{reason}"
        );
    }
}

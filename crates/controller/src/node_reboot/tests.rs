//! Tests that need no server; the others are in `dogwatch-sim`, on both servers.

use dogwatch_core::node_reboot::NodeRebootReason;

const BOOK: &str = include_str!("../../../../docs/ask-for-a-reboot.md");

#[test]
fn every_family_of_the_node_reboots_is_in_the_book() {
    let lines = include_str!("node_reboot_metrics.rs").lines();
    let names = lines.filter_map(|line| line.trim().strip_prefix("name: \""));
    let names: Vec<&str> = names.filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    for name in names {
        assert!(BOOK.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[test]
fn every_reason_is_in_the_book_with_its_next_step() {
    let lines: Vec<&str> = BOOK.lines().collect();
    for reason in NodeRebootReason::ALL {
        let row = format!("| `{reason}` |");
        let mut rows = lines.iter().filter(|line| line.starts_with(&row));
        let step = reason.next_step().unwrap_or_default();
        assert!(rows.any(|row| row.contains(step)), "{reason}: {step}");
    }
}

//! Tests that need no server; the others are in `dogwatch-sim`, on the embedded one.

#[test]
fn the_metric_is_in_the_book() {
    let book = include_str!("../../../../docs/controller.md");
    let name = super::estimate_metrics::ESTIMATED_FINISH_METRIC.name;
    assert!(book.contains(&format!("| `{name}` |")), "{name}");
}

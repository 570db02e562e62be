//! How long it takes to simulate the rollout of 5,000 nodes, and that it gives the same bytes twice.

#![expect(clippy::disallowed_methods, reason = "real time is what it measures")]

use std::time::{Duration, Instant};

use dogwatch_core::limit::Limit;
use dogwatch_sim::plan::{Plan, run};
use serde_json::json;

const REACH: Duration = Duration::from_secs(10);

fn main() {
    let plan = Plan {
        nodes: 5_000,
        max_unavailable: Limit::Percent(2),
        ..Plan::default()
    };
    let begun = Instant::now();
    let first = run(&plan);
    let took = begun.elapsed();
    let same = format!("{first:?}") == format!("{:?}", run(&plan));
    let figure = |what: &str, measured: String, reach: &str, kept: bool| {
        println!(
            "{}",
            json!({ "what": what, "measured": measured, "reach": reach, "kept": kept })
        );
    };
    let all = first.rebooted == 5_003 && first.most_out <= first.budget;
    figure(
        "rollout of 5,000 nodes simulated",
        format!("{:.1} s", took.as_secs_f64()),
        "<= 10 s",
        took <= REACH && all,
    );
    figure(
        "same seed, same bytes",
        if same { "yes" } else { "no" }.into(),
        "yes",
        same,
    );
}

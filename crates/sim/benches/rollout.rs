//! How long it takes to simulate the rollout of 5,000 nodes, with flags and with policies, and that
//! it gives the same bytes twice. `NODES` sets another number of nodes; as many are out at once.

#![expect(clippy::disallowed_methods, reason = "real time is what it measures")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dogwatch_core::limit::UnavailabilityLimit;
use dogwatch_core::name::NodeName;
use dogwatch_k8s::policy::convert_policy;
use dogwatch_sim::plan::{NodeGroup, RolloutOutcome, RolloutPlan, run_plan};
use dogwatch_testbed::bench::print_figure;
use serde_json::{Value, json};

const NODES: u32 = 5_000;
const REACH: Duration = Duration::from_secs(10);

fn main() {
    let nodes = std::env::var("NODES").map_or(NODES, |text| text.parse().expect("a number"));
    let measure = |shape: &str, plan: &RolloutPlan| {
        measure(&format!("rollout of {nodes} nodes {shape} simulated"), plan);
    };
    measure("by flags", &by_flags(nodes));
    measure(
        "in two groups with windows",
        &by_policies(nodes, &Value::Null),
    );
    let shape = json!({
        "canary": { "nodes": 2, "soak": "1h" },
        "ramp": [5, 20],
        "haltAfterFailures": 3,
    });
    measure(
        "in two groups with windows, canaries and a ramp",
        &by_policies(nodes, &shape),
    );
}

fn by_flags(nodes: u32) -> RolloutPlan {
    RolloutPlan {
        nodes,
        max_unavailable: UnavailabilityLimit::Count(100),
        ..RolloutPlan::default()
    }
}

/// Two groups of equal size: one each night, one on weekends; they begin on a Wednesday at noon. Each is
/// rolled out in this shape.
fn by_policies(nodes: u32, rollout: &Value) -> RolloutPlan {
    let group = |name: &str| NodeGroup {
        name: NodeName::new(name).expect("letters"),
        count: nodes / 2,
        labels: BTreeMap::from([("team".to_owned(), name.to_owned())]),
    };
    let policy = |name: &str, days: &[&str], max: u32| {
        let spec = json!({
            "nodeSelector": { "matchLabels": { "team": name } },
            "maxUnavailable": max,
            "drain": { "timeout": "15m" },
            "rollout": rollout,
            "windows": [{ "days": days, "start": "22:00", "end": "04:00", "timeZone": "Europe/Berlin" }],
        });
        convert_policy(name, &spec)
    };
    let nights = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    RolloutPlan {
        nodes: 0,
        groups: vec![group("batch"), group("web")],
        policies: vec![
            policy("batch", &nights, 50),
            policy("web", &["Fri", "Sat"], 100),
        ],
        start: "2026-03-25T11:00:00Z".parse().expect("a time"),
        ..RolloutPlan::default()
    }
}

fn measure(what: &str, plan: &RolloutPlan) {
    let begun = Instant::now();
    let first = run_plan(plan);
    let took = begun.elapsed();
    let same = format!("{first:?}") == format!("{:?}", run_plan(plan));
    print_figure(
        what,
        &format!("{:.1} s", took.as_secs_f64()),
        "<= 10 s",
        took <= REACH && is_well(plan, &first),
    );
    print_figure(
        "same seed, same bytes",
        if same { "yes" } else { "no" },
        "yes",
        same,
    );
}

/// Every node came back, and no group had more out than it may.
fn is_well(plan: &RolloutPlan, outcome: &RolloutOutcome) -> bool {
    let mut groups = outcome.groups.iter();
    outcome.rebooted == plan.count_nodes() && groups.all(|group| group.most_out <= group.budget)
}

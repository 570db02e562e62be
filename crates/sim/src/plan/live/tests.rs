//! Tests of estimates: against the planner that lets every node decide, and by themselves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::explain::FleetSnapshot;
use dogwatch_core::limit::UnavailabilityLimit;
use dogwatch_core::name::{BootId, NodeName};
use dogwatch_core::policy::{ClusterPolicies, Policy};
use dogwatch_core::reboot::{ObservedNode, ParsedAnnotation, RebootPhase};
use dogwatch_core::report::{EstimateRollout as _, FleetEstimate};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::LivePlanner;
use crate::plan::{NodeGroup, RolloutPlan, run_plan};

/// A Monday at noon.
const START: &str = "2026-01-05T12:00:00Z";

fn start() -> Timestamp {
    START.parse().unwrap()
}

fn now() -> Now {
    Now {
        wall: start(),
        mono: Duration::ZERO,
    }
}

fn earlier(by: Duration) -> Timestamp {
    start() - jiff::SignedDuration::try_from(by).unwrap()
}

fn idle(name: &str) -> ObservedNode {
    let boot = BootId::new(format!("boot-{name}")).unwrap();
    ObservedNode {
        labels: BTreeMap::from([("team".to_owned(), "a".to_owned())]),
        ..ObservedNode::ready_node(NodeName::new(name).unwrap(), format!("uid-{name}"), boot)
    }
}

fn in_phase(name: &str, phase: RebootPhase, since: Timestamp) -> ObservedNode {
    let record = json!({
        "phase": phase, "run": "coordinator/x", "since": since, "planned": since,
        "trigger": { "source": "sentinel:/run/reboot-needed" },
        "bootId": format!("boot-{name}"), "cordonedByUs": phase != RebootPhase::Waiting,
    });
    ObservedNode {
        unschedulable: phase != RebootPhase::Waiting,
        record: ParsedAnnotation::Is(serde_json::from_value(record).unwrap()),
        ..idle(name)
    }
}

/// Nodes that began to wait a second ago, in the order of their names.
fn waiting(count: usize) -> Vec<ObservedNode> {
    let since = earlier(Duration::from_secs(1));
    let name = |number| format!("a-{number:04}");
    (1..=count)
        .map(|number| in_phase(&name(number), RebootPhase::Waiting, since))
        .collect()
}

/// A node that was rebooted a while ago, with a drain, a reboot and a return of these lengths.
fn rebooted(name: &str, [drain, reboot, back]: [u64; 3]) -> ObservedNode {
    let finished = earlier(Duration::from_hours(3));
    let before = |seconds: u64| finished - jiff::SignedDuration::from_secs(seconds.cast_signed());
    let last = json!({
        "outcome": "Rebooted", "planned": before(drain + reboot + back), "finished": finished,
        "oldBootId": "b0", "newBootId": format!("boot-{name}"),
        "trigger": { "source": "sentinel:/run/reboot-needed" },
        "began": {
            "draining": before(drain + reboot + back),
            "rebooting": before(reboot + back),
            "returning": before(back),
        },
    });
    ObservedNode {
        last_reboot: ParsedAnnotation::Is(serde_json::from_value(last).unwrap()),
        ..idle(name)
    }
}

fn policy(mut spec: Value) -> Policy {
    spec["nodeSelector"] = json!({ "matchLabels": { "team": "a" } });
    let policy = dogwatch_k8s::policy::convert_policy("a", &spec);
    assert_eq!(policy.problems, Vec::<String>::new());
    policy
}

fn fleet(nodes: Vec<ObservedNode>, spec: Value) -> FleetSnapshot {
    FleetSnapshot {
        nodes: nodes.into_iter().map(Arc::new).collect(),
        policies: ClusterPolicies::Known(vec![policy(spec)]),
        ..FleetSnapshot::default()
    }
}

fn estimate(fleet: &FleetSnapshot) -> FleetEstimate {
    LivePlanner.estimate_rollout(fleet, now()).unwrap()
}

fn time_until(at: Option<Timestamp>) -> Duration {
    Duration::try_from(at.unwrap().duration_since(start())).unwrap()
}

/// How long the planner that lets every node decide says that it takes.
fn planned(nodes: u32, spec: &Value) -> Duration {
    let plan = RolloutPlan {
        nodes: 0,
        groups: vec![NodeGroup {
            name: NodeName::new("a").unwrap(),
            count: nodes,
            labels: BTreeMap::from([("team".to_owned(), "a".to_owned())]),
        }],
        policies: vec![policy(spec.clone())],
        start: start(),
        control_plane: 0,
        max_unavailable: UnavailabilityLimit::Count(1),
        arrival: Duration::ZERO,
        ..RolloutPlan::default()
    };
    run_plan(&plan).took
}

#[test]
fn the_estimate_agrees_with_the_planner_in_which_every_node_decides() {
    for spec in [
        json!({}),
        json!({ "maxUnavailable": 3 }),
        json!({ "maxUnavailable": "25%" }),
        json!({ "windows": [{ "start": "22:00", "end": "22:30" }], "drain": { "timeout": "10m" } }),
        json!({ "maxUnavailable": 4, "windows": [{ "start": "22:00", "end": "23:00" }],
            "drain": { "timeout": "30m" } }),
        json!({ "maxUnavailable": 4, "rollout": { "canary": { "nodes": 2, "soak": "1h" } } }),
        json!({ "maxUnavailable": 4, "rollout": { "ramp": [1, 2] } }),
        json!({ "maxUnavailable": 4, "rollout": { "canary": { "nodes": 1, "soak": "20m" },
            "ramp": [1, 2, 3] } }),
        json!({ "paused": { "reason": "freeze", "until": "2026-01-06T00:00:00Z" } }),
    ] {
        let planned = planned(16, &spec).as_secs_f64();
        let estimated = estimate(&fleet(waiting(16), spec.clone()));
        let estimated = time_until(estimated.finish).as_secs_f64();
        let off = estimated / planned - 1.0;
        // After a step of a ramp, a node that begins some seconds earlier or later may be the one
        // that the next step waits for: with 16 nodes a whole reboot more or less.
        let has_ramp = spec["rollout"]["ramp"].is_array();
        let bound = if has_ramp { 0.2 } else { 0.1 };
        assert!(off.abs() < bound, "{spec}: {estimated} s and {planned} s");
    }
}

#[test]
fn durations_come_from_the_records_of_the_fleet() {
    let mut nodes = waiting(4);
    nodes.push(rebooted("b-1", [60, 120, 20]));
    nodes.push(rebooted("b-2", [60, 120, 20]));
    nodes.push(rebooted("b-3", [60, 120, 20]));
    let estimate = estimate(&fleet(nodes, json!({})));
    let took = time_until(estimate.finish).as_secs();
    assert!((700..=900).contains(&took), "{took}");
    assert!(estimate.finish <= estimate.latest_finish);
    assert_eq!(estimate.left_out.len(), 1, "{:?}", estimate.left_out);
    let assumed = super::tests::estimate(&fleet(waiting(4), json!({})));
    assert!(
        assumed.left_out[1].contains("none is recorded"),
        "{:?}",
        assumed.left_out
    );
}

#[test]
fn who_is_out_comes_back_after_the_rest_of_its_time_and_the_queue_follows() {
    let mut nodes = waiting(2);
    let since = earlier(Duration::from_mins(1));
    nodes.push(in_phase("a-0000", RebootPhase::Rebooting, since));
    for name in ["b-1", "b-2", "b-3"] {
        nodes.push(rebooted(name, [60, 120, 20]));
    }
    let estimate = estimate(&fleet(nodes, json!({})));
    let times = |name: &str| &estimate.nodes[name];
    assert_eq!(times("a-0000").start, since);
    let back = time_until(Some(times("a-0000").finish)).as_secs();
    assert!((50..=120).contains(&back), "{back}");
    assert!(times("a-0001").start >= times("a-0000").finish);
    assert!(times("a-0002").start >= times("a-0001").finish);
    assert_eq!(estimate.finish, Some(times("a-0002").finish));
}

#[test]
fn what_takes_the_whole_budget_for_good_leaves_no_end() {
    let mut cordoned = idle("c-1");
    cordoned.unschedulable = true;
    let nodes = || [waiting(2), vec![cordoned.clone()]].concat();
    let never = estimate(&fleet(nodes(), json!({})));
    assert_eq!((never.finish, never.nodes.len()), (None, 0));
    let told = never.left_out.join("\n");
    assert!(
        told.contains("what they have taken from the budget: c-1"),
        "{told}"
    );
    let two = estimate(&fleet(nodes(), json!({ "maxUnavailable": 2 })));
    let free = estimate(&fleet(waiting(2), json!({ "maxUnavailable": 2 })));
    assert!(time_until(two.finish) > time_until(free.finish).mul_f64(1.5));
}

#[test]
fn a_hold_takes_its_place_for_good_and_is_no_part_of_the_end() {
    let mut held = in_phase(
        "h-1",
        RebootPhase::Holding,
        earlier(Duration::from_hours(9)),
    );
    if let ParsedAnnotation::Is(record) = &mut held.record {
        record.trigger.method = dogwatch_api::node_reboot::RebootMethod::Hold;
    }
    let nodes = [waiting(3), vec![held.clone()]].concat();
    let beside = estimate(&fleet(nodes, json!({ "maxUnavailable": 2 })));
    assert!(!beside.nodes.contains_key("h-1"));
    let alone = estimate(&fleet(waiting(3), json!({ "maxUnavailable": 1 })));
    let off = time_until(beside.finish).as_secs_f64() / time_until(alone.finish).as_secs_f64();
    assert!((0.9..1.1).contains(&off), "{off}");
    let only = estimate(&fleet(vec![held], json!({})));
    assert_eq!((only.finish, only.nodes.len()), (None, 0));
}

#[test]
fn a_pause_without_an_end_and_a_halt_leave_no_end() {
    let paused = json!({ "paused": { "reason": "freeze" } });
    assert_eq!(estimate(&fleet(waiting(2), paused)).finish, None);
    let mut halted = fleet(waiting(2), json!({ "rollout": { "haltAfterFailures": 1 } }));
    if let ClusterPolicies::Known(policies) = &mut halted.policies {
        let shape = policies[0].rollout.shape.clone().unwrap();
        let mut state = shape.first_state();
        state.halted = Some(dogwatch_core::policy::rollout::RolloutHalt {
            since: start(),
            reason: "1 reboot failed".into(),
        });
        policies[0].rollout.state = Some(state);
    }
    assert_eq!(estimate(&halted).finish, None);
}

#[test]
fn the_same_snapshot_gives_the_same_estimate_and_a_fleet_at_rest_none() {
    let fleet_of = |nodes| fleet(nodes, json!({ "maxUnavailable": 2 }));
    assert_eq!(
        estimate(&fleet_of(waiting(20))),
        estimate(&fleet_of(waiting(20)))
    );
    let rest = fleet_of(vec![idle("n1")]);
    assert_eq!(LivePlanner.estimate_rollout(&rest, now()), None);
}

#[test]
fn a_drain_that_never_fits_into_its_window_ends_the_run() {
    let short =
        json!({ "windows": [{ "start": "22:00", "end": "22:05" }], "drain": { "timeout": "5m" } });
    let mut nodes = waiting(2);
    for name in ["b-1", "b-2", "b-3"] {
        nodes.push(rebooted(name, [900, 120, 20]));
    }
    assert_eq!(estimate(&fleet(nodes, short)).finish, None);
}

/// The cost for a large fleet; printed, because no test measures time.
#[test]
#[ignore = "a measurement: cargo test … -- --ignored --nocapture"]
fn the_cost_of_five_thousand_nodes() {
    for spec in [
        json!({ "maxUnavailable": "2%" }),
        json!({ "maxUnavailable": "2%", "windows": [{ "start": "22:00", "end": "04:00" }] }),
        json!({ "maxUnavailable": "2%", "rollout": { "canary": { "nodes": 5, "soak": "1h" },
            "ramp": [1, 2, 4, 8, 16, 32, 64] } }),
    ] {
        let fleet = fleet(waiting(5_000), spec.clone());
        #[expect(clippy::disallowed_methods, reason = "a measurement by hand")]
        let began = std::time::Instant::now();
        let estimate = estimate(&fleet);
        println!("{spec}: {:?}, {:?}", began.elapsed(), estimate.finish);
    }
}

//! Tests of plans.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_core::limit::UnavailabilityLimit;
use dogwatch_core::name::NodeName;
use dogwatch_core::policy::Policy;
use dogwatch_kubesim::seed::SimulationSeed;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{GroupOutcome, NodeGroup, RolloutOutcome, RolloutPlan, run_plan};

fn plan(nodes: u32, max_unavailable: UnavailabilityLimit) -> RolloutPlan {
    RolloutPlan {
        nodes,
        max_unavailable,
        ..RolloutPlan::default()
    }
}

#[test]
fn every_node_reboots_and_never_more_are_out_than_the_budget_allows() {
    let outcome = run_plan(&plan(60, UnavailabilityLimit::Percent(10)));
    assert_eq!(outcome.rebooted, 63);
    assert_eq!(outcome.budget, 6);
    assert!(outcome.most_out <= 6, "{outcome:#?}");
    assert_eq!(outcome.most_control_plane_out, 1);
    assert_eq!(outcome.handovers, 63);
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_does_not() {
    let plan = plan(20, UnavailabilityLimit::Count(2));
    let text = |plan: &RolloutPlan| format!("{:?}", run_plan(plan));
    assert_eq!(text(&plan), text(&plan));
    let other = RolloutPlan {
        seed: SimulationSeed(2),
        ..plan.clone()
    };
    assert_ne!(text(&plan), text(&other));
}

#[test]
fn nobody_who_came_later_is_served_much_earlier() {
    let outcome = run_plan(&plan(40, UnavailabilityLimit::Count(1)));
    assert!(
        outcome.worst_inversion < Duration::from_secs(2),
        "{outcome:#?}"
    );
}

#[test]
fn a_rollout_takes_as_long_as_its_parts() {
    let exact = RolloutPlan {
        spread_percent: 0,
        control_plane: 0,
        arrival: Duration::ZERO,
        ..plan(4, UnavailabilityLimit::Count(1))
    };
    let outcome = run_plan(&exact);
    let parts = exact.drain_time + exact.reboot_time + exact.settle;
    let overhead = outcome
        .took
        .checked_sub(parts * 4)
        .expect("no part is skipped");
    assert!(overhead < Duration::from_secs(4), "{overhead:?}");
}

fn nodes(name: &str, count: u32) -> NodeGroup {
    NodeGroup {
        name: NodeName::new(name).unwrap(),
        count,
        labels: BTreeMap::from([("team".to_owned(), name.to_owned())]),
    }
}

fn policy(name: &str, mut spec: Value) -> Policy {
    spec["nodeSelector"] = json!({ "matchLabels": { "team": name } });
    let policy = dogwatch_k8s::policy::convert_policy(name, &spec);
    assert_eq!(policy.problems, Vec::<String>::new());
    policy
}

/// A plan that starts on a Monday at noon.
fn ruled(groups: &[NodeGroup], policies: &[Policy]) -> RolloutPlan {
    RolloutPlan {
        nodes: 0,
        groups: groups.to_vec(),
        policies: policies.to_vec(),
        start: "2026-01-05T12:00:00Z".parse().unwrap(),
        ..RolloutPlan::default()
    }
}

fn group<'a>(outcome: &'a RolloutOutcome, name: &str) -> &'a GroupOutcome {
    let mut groups = outcome.groups.iter();
    groups.find(|group| group.group == name).unwrap()
}

#[test]
fn each_group_goes_by_its_own_policy() {
    let night = json!({ "maxUnavailable": "25%", "windows": [{ "start": "22:00", "end": "23:00" }], "drain": { "timeout": "10m" } });
    let plan = ruled(
        &[nodes("a", 40), nodes("b", 20)],
        &[
            policy("a", night),
            policy("b", json!({ "maxUnavailable": 5 })),
        ],
    );
    let outcome = run_plan(&plan);
    assert_eq!(outcome.rebooted, 63);
    let (a, b) = (group(&outcome, "a"), group(&outcome, "b"));
    assert_eq!(
        (a.nodes, a.budget, a.most_out, a.rebooted),
        (40, 10, 10, 40)
    );
    assert_eq!((b.nodes, b.budget, b.most_out, b.rebooted), (20, 5, 5, 20));
    assert_eq!((a.windows, b.windows), (Some(1), None));
    let ten_hours = Duration::from_hours(10);
    assert!(
        a.took > ten_hours && a.took < ten_hours + Duration::from_hours(1),
        "{a:?}"
    );
    assert!(b.took < Duration::from_hours(1), "{b:?}");
    assert_eq!(format!("{outcome:?}"), format!("{:?}", run_plan(&plan)));
}

#[test]
fn a_rollout_with_a_shape_takes_its_canaries_its_soak_and_its_ramp() {
    let took = |rollout: Value| {
        let spec = json!({ "maxUnavailable": 5, "rollout": rollout });
        let plan = ruled(&[nodes("a", 20)], &[policy("a", spec)]);
        let outcome = run_plan(&plan);
        assert_eq!(outcome.rebooted, 23);
        let group = group(&outcome, "a").clone();
        assert_eq!(group.held_up, None);
        (group.took, group.most_out)
    };
    let (plain, out) = took(Value::Null);
    assert_eq!(out, 5);
    let soak = Duration::from_hours(3);
    let (canary, out) = took(json!({ "canary": { "nodes": 2, "soak": "3h" } }));
    assert_eq!(out, 5);
    assert!(canary > plain + soak, "{canary:?} {plain:?}");
    let (ramp, out) = took(json!({ "ramp": [1, 2] }));
    assert_eq!(out, 5);
    assert!(ramp > plain && ramp < plain + soak, "{ramp:?} {plain:?}");
    // Twenty nodes have no twenty-one successes, so the ramp is never over.
    let (slow, out) = took(json!({ "ramp": [1, 2, 20] }));
    assert!(slow > plain && out <= 5, "{slow:?} {out}");
    let (_, out) = took(json!({ "canary": { "nodes": 3, "soak": "1m" }, "ramp": [4, 17] }));
    assert_eq!(out, 5);
    let (_, out) = took(json!({ "canary": { "nodes": 100 } }));
    assert_eq!(out, 5);
}

#[test]
fn a_window_that_is_over_is_followed_by_the_next_one() {
    let short =
        json!({ "windows": [{ "start": "22:00", "end": "22:30" }], "drain": { "timeout": "10m" } });
    let outcome = run_plan(&ruled(&[nodes("a", 12)], &[policy("a", short)]));
    let a = group(&outcome, "a");
    // In each night, four begin in the 20 minutes in which a drain may begin.
    assert_eq!((a.rebooted, a.windows), (12, Some(3)), "{a:?}");
    assert_eq!(a.took.as_secs() / 3600, 58, "{a:?}");
    let begun: Vec<u32> = a.used_windows.iter().map(|window| window.nodes).collect();
    assert_eq!(begun, [4, 4, 4], "{a:?}");
    for window in &a.used_windows {
        let clock = |time: Timestamp| time.strftime("%H:%M").to_string();
        assert_eq!(clock(window.until), "22:30");
        assert!(clock(window.first_begin).starts_with("22:0"), "{window:?}");
        assert!(window.last_begin > window.first_begin, "{window:?}");
    }
}

#[test]
fn a_drain_that_the_window_cuts_off_is_undone_and_begun_again() {
    let cut =
        json!({ "windows": [{ "start": "22:00", "end": "22:30" }], "drain": { "timeout": "29m" } });
    let plan = RolloutPlan {
        drain_time: Duration::from_mins(29),
        spread_percent: 10,
        ..ruled(&[nodes("a", 6)], &[policy("a", cut)])
    };
    let outcome = run_plan(&plan);
    let a = group(&outcome, "a");
    assert_eq!(a.rebooted, 6, "{a:?}");
    assert!(a.windows > Some(6), "{a:?}");
    assert_eq!(a.most_out, 1);
}

#[test]
fn one_zone_is_done_before_the_next_begins() {
    let zone = |name: &str, zone: &str| {
        let mut group = nodes(name, 5);
        group.labels = BTreeMap::from([
            ("team".to_owned(), "all".to_owned()),
            ("zone".to_owned(), zone.to_owned()),
        ]);
        group
    };
    let zones = policy("all", json!({ "topologyKey": "zone" }));
    let plan = ruled(&[zone("e", "east"), zone("w", "west")], &[zones]);
    let outcome = run_plan(&plan);
    assert_eq!(outcome.rebooted, 13);
    // If the longest wait decided alone, the zones would be mixed; the inversion shows that zones
    // come first.
    assert!(outcome.worst_inversion > Duration::ZERO);
}

#[test]
fn a_policy_that_never_allows_it_is_named_and_holds_nobody_else_up() {
    let paused = policy("a", json!({ "paused": { "reason": "freeze" } }));
    let outcome = run_plan(&ruled(&[nodes("a", 3), nodes("b", 3)], &[paused]));
    assert_eq!(outcome.rebooted, 6);
    let a = group(&outcome, "a");
    assert_eq!(a.rebooted, 0);
    let why = a.held_up.as_deref().unwrap();
    assert!(why.contains("RebootPolicy a is paused: freeze"), "{why}");
}

#[test]
fn jobs_that_a_rule_lets_finish_take_their_time_and_at_most_its_timeout() {
    let waits = json!({ "maxUnavailable": 1,
        "rollout": { "canary": { "nodes": 2, "soak": "10m" } },
        "drain": { "rules": [{ "pods": { "selector": { "matchLabels": { "job": "yes" } } },
            "do": "WaitCompleted", "timeout": "1h" }] } });
    let took = |job_time: Option<Duration>| {
        let plan = RolloutPlan {
            job_time,
            control_plane: 0,
            spread_percent: 0,
            ..ruled(&[nodes("a", 5)], &[policy("a", waits.clone())])
        };
        let outcome = run_plan(&plan);
        assert_eq!(outcome.rebooted, 5, "{outcome:?}");
        outcome.took
    };
    let minute = Duration::from_mins(1);
    let (none, short) = (took(Some(Duration::ZERO)), took(Some(20 * minute)));
    let (long, unknown) = (took(Some(100 * minute)), took(None));
    assert!(short.abs_diff(none + 5 * 20 * minute) < minute, "{short:?}");
    assert!(long.abs_diff(none + 5 * 60 * minute) < minute, "{long:?}");
    assert_eq!(long, unknown, "the timeout is the worst case");
}

fn plan_with_holds(holds: &[&str], budget: u32) -> RolloutPlan {
    let policy = policy("a", json!({ "maxUnavailable": budget }));
    let names = holds.iter().map(|name| NodeName::new(*name).unwrap());
    RolloutPlan {
        holds: names.collect(),
        ..ruled(&[nodes("a", 10), nodes("b", 3)], &[policy])
    }
}

#[test]
fn a_held_node_counts_in_the_budget_and_is_not_rebooted() {
    let outcome = run_plan(&plan_with_holds(&["a-0003"], 2));
    let a = group(&outcome, "a");
    assert_eq!((a.rebooted, a.held, a.most_out), (9, 1, 2));
    let free = run_plan(&plan_with_holds(&[], 2));
    let (one_by_one, two_at_once) = (a.took, group(&free, "a").took);
    assert!(one_by_one > two_at_once * 3 / 2, "{one_by_one:?}");
}

#[test]
fn a_group_whose_places_are_all_held_never_begins_and_says_so() {
    let outcome = run_plan(&plan_with_holds(&["a-0001", "a-0002"], 2));
    let a = group(&outcome, "a");
    assert_eq!((a.rebooted, a.held), (0, 2));
    let why = a.held_up.as_deref();
    assert_eq!(why, Some("2 nodes are held, and at most 2 may be out"));
    assert_eq!(group(&outcome, "default").rebooted, 3);
}

#[test]
fn a_hold_of_a_node_that_is_not_planned_is_found() {
    for (name, is_known) in [
        ("a-0010", true),
        ("control-0003", true),
        ("a-0011", false),
        ("a-10", false),
        ("c-0001", false),
        ("a", false),
    ] {
        let plan = plan_with_holds(&[name], 1);
        assert_eq!(plan.find_unknown_hold().is_none(), is_known, "{name}");
    }
}

#[test]
fn a_step_of_a_ramp_does_not_let_all_waiting_nodes_bid_at_once() {
    let spec = json!({ "maxUnavailable": "8%", "rollout": { "ramp": [2, 8] } });
    let plan = RolloutPlan {
        nodes: 200,
        policies: vec![dogwatch_k8s::policy::convert_policy("a", &spec)],
        ..RolloutPlan::default()
    };
    let outcome = run_plan(&plan);
    assert_eq!(outcome.rebooted, plan.count_nodes());
    // Without the spread in time every node bids for each new place: 2,614 bids lost.
    let calls: BTreeMap<_, _> = outcome.calls.calls_by_kind().collect();
    assert!(calls["list leases"] < 200, "{calls:?}");
    // Nodes see by the maxima of the holders that no place is free. Only of those that bid at the
    // same moment, some take a lock in vain.
    let in_vain = outcome.handovers - u64::from(plan.nodes);
    assert!(in_vain <= 10, "{in_vain}: {calls:?}");
}

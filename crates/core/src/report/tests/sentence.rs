//! The sentence, by what the fleet does.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::explain::testkit::{fleet, held, in_phase, node, requested_reboot, waiting};
use crate::report::FleetEstimate;

fn estimate(finish: Option<i64>, latest: Option<i64>) -> FleetEstimate {
    FleetEstimate {
        groups: BTreeMap::new(),
        at: at(0),
        finish: finish.map(at),
        latest_finish: latest.map(at),
        nodes: BTreeMap::new(),
        left_out: Vec::new(),
    }
}

fn draining(name: &str) -> ObservedNode {
    in_phase(name, RebootPhase::Draining, 50, ("Draining", "3 pods gone"))
}

fn under_way() -> FleetSnapshot {
    let nodes = vec![
        draining("n1"),
        waiting("n2", 10),
        waiting("n3", 10),
        rebooted("n4", 10, 40),
        rebooted("n5", 0, 5),
        node("idle"),
    ];
    fleet(nodes, vec![held(0, "n1", 50)])
}

fn sentence_with(fleet: &FleetSnapshot, estimate: Option<FleetEstimate>) -> String {
    let input = FleetViewInput {
        estimate,
        ..FleetViewInput::of_fleet(fleet)
    };
    build_fleet_view(input, now(100)).sentence
}

#[test]
fn a_rollout_is_told_with_its_numbers_and_its_end() {
    let hours = |hours: i64| Some(hours * 3600);
    for (estimate, said) in [
        (None, "There is no estimate of the end yet."),
        (
            Some(estimate(hours(3), hours(5))),
            "Finished about Thu 03:00 UTC (at the latest Thu 05:00 UTC).",
        ),
        (
            Some(estimate(hours(3), hours(3))),
            "Finished about Thu 03:00 UTC.",
        ),
        (
            Some(estimate(hours(200), hours(300))),
            "Finished about 1970-01-09 08:00 UTC (at the latest 1970-01-13 12:00 UTC).",
        ),
        (
            Some(estimate(None, None)),
            "While nothing changes, it is never finished.",
        ),
    ] {
        assert_eq!(
            sentence_with(&under_way(), estimate),
            format!("1 of 4 done, 1 out, 2 wait. {said} Nothing needs you.")
        );
    }
}

#[test]
fn a_fleet_at_rest_has_no_end() {
    let rest = fleet(vec![node("n1"), rebooted("n2", 0, 5)], vec![]);
    let at_rest = "No reboot is under way, and none waits. Nothing needs you.";
    assert_eq!(sentence_with(&rest, Some(estimate(Some(9), None))), at_rest);
    assert_eq!(
        view_of(&fleet(vec![], vec![]), 0).sentence,
        "This cluster has no Nodes. Nothing needs you."
    );
}

#[test]
fn a_pause_that_holds_up_nodes_is_told_with_its_end_or_the_command_that_ends_it() {
    let waits = || fleet(vec![waiting("n1", 10)], vec![]);
    let endless = view_of(&with_policy(waits(), paused(None)), 100).sentence;
    let command = "workers is paused until somebody types: dogwatch resume workers.";
    assert!(endless.contains(command), "{endless}");
    let ends = view_of(&with_policy(waits(), paused(Some(at(7200)))), 100).sentence;
    assert!(
        ends.contains("workers is paused until Thu 02:00 UTC."),
        "{ends}"
    );
    let over = view_of(&with_policy(waits(), paused(Some(at(60)))), 100).sentence;
    assert!(!over.contains("paused"), "{over}");
    let idle = fleet(vec![node("n1")], vec![]);
    let idle = view_of(&with_policy(idle, paused(None)), 100).sentence;
    assert!(!idle.contains("paused"), "{idle}");
}

#[test]
fn a_held_node_is_told_and_begins_no_rollout() {
    let mut held_node = in_phase("n1", RebootPhase::Holding, 50, ("Held", "held"));
    if let ParsedAnnotation::Is(record) = &mut held_node.record {
        record.trigger.method = dogwatch_api::node_reboot::RebootMethod::Hold;
    }
    let fleet = fleet(vec![held_node, rebooted("n2", 60, 80)], vec![]);
    let told = view_of(&fleet, 100).sentence;
    assert!(
        told.starts_with("0 of 1 done, 1 out (1 held), 0 wait."),
        "{told}"
    );
}

#[test]
fn what_needs_a_person_is_told_with_the_command() {
    let failed = |name: &str| {
        let said = ("RebootFailed", "no new boot after 2 attempts");
        in_phase(name, RebootPhase::Rebooting, 50, said)
    };
    let one = view_of(&fleet(vec![failed("n1")], vec![]), 100).sentence;
    let said = "node/n1 needs you (RebootFailed); type: dogwatch explain node/n1";
    assert!(one.ends_with(said), "{one}");
    let two = fleet(vec![failed("n1"), failed("n2")], vec![]);
    let two = view_of(&two, 100).sentence;
    let said = "2 things need you, first node/n1 (RebootFailed); type: dogwatch explain node/n1";
    assert!(two.ends_with(said), "{two}");
}

#[test]
fn what_could_not_be_read_takes_the_certainty_away() {
    let fleet = FleetSnapshot::default();
    let input = FleetViewInput {
        unreadable: vec!["the Nodes cannot be read: refused".into()],
        ..FleetViewInput::of_fleet(&fleet)
    };
    assert_eq!(
        build_fleet_view(input, now(0)).sentence,
        "No Nodes have been read. Nothing that could be read needs you. Not everything could be read."
    );
}

#[test]
fn a_requested_reboot_that_has_not_reached_its_node_is_told_and_counted() {
    let idle = fleet(vec![node("n1"), waiting("n2", 10)], vec![]);
    let alone = fleet(vec![node("n1")], vec![]);
    let of = |fleet, names: &[&str]| {
        let reboots = names
            .iter()
            .map(|name| Arc::new(requested_reboot(name, "n1")));
        let input = FleetViewInput {
            node_reboots: reboots.collect(),
            ..FleetViewInput::of_fleet(fleet)
        };
        let view = build_fleet_view(input, now(100));
        assert_eq!(view.counts.requested, names.len());
        view.sentence
    };
    assert_eq!(
        of(&alone, &["a"]),
        "No reboot is under way. 1 requested reboot has not reached its node. Nothing needs you."
    );
    let beside = of(&idle, &["a", "b"]);
    let said = "0 of 1 done, 0 out, 1 waits. 2 requested reboots have not reached their nodes. ";
    assert!(beside.starts_with(said), "{beside}");
}

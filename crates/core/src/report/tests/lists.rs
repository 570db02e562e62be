//! Who is out, who waits, who is back.

use super::*;
use crate::explain::testkit::{fleet, held, in_phase, node, waiting};

fn bars(bars: &[crate::report::PhaseBar]) -> Vec<(&str, i64, Option<i64>)> {
    bars.iter()
        .map(|bar| {
            let until = bar.until.map(Timestamp::as_second);
            (bar.phase, bar.from.as_second(), until)
        })
        .collect()
}

#[test]
fn the_longest_out_comes_first_with_its_deadline_and_its_phases() {
    let mut late = in_phase("a", RebootPhase::Rebooting, 300, ("Rebooting", "waits"));
    if let ParsedAnnotation::Is(record) = &mut late.record {
        record.planned = at(10);
        record.began = BTreeMap::from([
            (RebootPhase::Waiting, at(10)),
            (RebootPhase::Draining, at(100)),
            // Of an attempt that was undone.
            (RebootPhase::Returning, at(900)),
        ]);
    }
    let early = in_phase("b", RebootPhase::Draining, 50, ("Draining", "3 pods gone"));
    let fleet = fleet(vec![late, early], vec![held(0, "a", 90), held(1, "b", 40)]);
    let view = view_of(&fleet, 400);
    let names: Vec<&str> = view.out.iter().map(|out| out.name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    assert_eq!(view.out[0].deadline, Some(at(50 + 3600)));
    assert_eq!(view.out[1].deadline, Some(at(300 + 1800)));
    assert_eq!(
        view.out[1].asked,
        "sentinel:/run/reboot-needed: \"kernel 6.18\""
    );
    assert_eq!(view.out[1].reason.as_deref(), Some("Rebooting"));
    assert_eq!(
        bars(&view.out[1].bars),
        [
            ("waiting", 10, Some(100)),
            ("draining", 100, Some(300)),
            ("rebooting", 300, None)
        ]
    );
}

#[test]
fn a_hold_has_no_deadline() {
    let kept = in_phase("n1", RebootPhase::Holding, 50, ("Held", "held"));
    assert_eq!(
        view_of(&fleet(vec![kept], vec![]), 100).out[0].deadline,
        None
    );
}

#[test]
fn who_waits_is_in_the_order_of_the_queue_and_who_pauses_comes_last() {
    let mut pausing = waiting("a", 5);
    if let ParsedAnnotation::Is(record) = &mut pausing.record {
        record.retry_after = Some(at(500));
    }
    let fleet = fleet(vec![pausing, waiting("b", 50), waiting("c", 10)], vec![]);
    let view = view_of(&fleet, 100);
    let seen: Vec<(&str, Option<usize>, Option<Timestamp>)> = view
        .waiting
        .iter()
        .map(|it| (it.name.as_str(), it.place, it.not_before))
        .collect();
    assert_eq!(
        seen,
        [
            ("c", Some(1), None),
            ("b", Some(2), None),
            ("a", None, Some(at(500)))
        ]
    );
    assert_eq!(view.waiting[0].since, at(10));
}

#[test]
fn who_waits_for_a_pause_a_window_or_the_interval_is_told_the_earliest_start() {
    let one = |policy: Policy, node: ObservedNode| {
        let fleet = with_policy(fleet(vec![node], vec![]), policy);
        view_of(&fleet, 100).waiting[0].not_before
    };
    assert_eq!(one(paused(Some(at(900))), waiting("n1", 10)), Some(at(900)));
    assert_eq!(one(paused(None), waiting("n1", 10)), None);
    let interval = Policy {
        min_interval: Some(std::time::Duration::from_hours(1)),
        ..policy("workers")
    };
    let again = ObservedNode {
        record: waiting("n1", 90).record,
        ..rebooted("n1", 0, 60)
    };
    assert_eq!(one(interval.clone(), again), Some(at(3660)));
    assert_eq!(one(interval, waiting("n1", 10)), None);
}

#[test]
fn done_are_those_that_rebooted_since_the_first_who_waits_was_told_to() {
    let nodes = vec![
        waiting("n1", 100),
        rebooted("n2", 50, 101),
        rebooted("n3", 50, 99),
        node("n4"),
    ];
    let counts = view_of(&fleet(nodes, vec![]), 200).counts;
    assert_eq!((counts.nodes, counts.done, counts.out), (4, 1, 0));
    assert_eq!((counts.waiting, counts.rollout), (1, 2));
}

#[test]
fn ended_reboots_are_shown_for_a_day_the_newest_first() {
    let day = 24 * 3600;
    let nodes = vec![
        rebooted("old", 0, 30),
        rebooted("b", day - 90, day),
        rebooted("a", day, day + 60),
    ];
    let recent = view_of(&fleet(nodes, vec![]), day + 100).recent;
    let names: Vec<&str> = recent.iter().map(|it| it.node.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(recent[1].outcome, "Rebooted");
    assert_eq!(
        bars(&recent[1].bars),
        [
            ("waiting", day - 90, Some(day - 60)),
            ("draining", day - 60, Some(day - 30)),
            ("rebooting", day - 30, Some(day))
        ]
    );
}

#[test]
fn a_large_fleet_lists_a_hundred_ended_reboots() {
    let nodes = (0..250).map(|n| rebooted(&format!("n{n:03}"), n, n + 60));
    assert_eq!(
        view_of(&fleet(nodes.collect(), vec![]), 400).recent.len(),
        100
    );
}

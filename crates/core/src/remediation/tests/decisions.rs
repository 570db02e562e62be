//! What is around a single decision: its own last write, its condition, and how long a permit holds.

use std::time::Duration;

use super::super::*;
use super::clear::{S, ready};
use super::kit::*;

const MS: Duration = Duration::from_millis(1);

#[test]
fn nothing_is_decided_until_the_watch_shows_the_last_write_or_its_time_is_over() {
    let now = ready().now.mono;
    for (until, waits) in [
        (now + S, true),
        (now + MS, true),
        (now, false),
        (now.saturating_sub(MS), false),
    ] {
        let mut it = ready();
        it.known.own_write_awaited_until = Some(until);
        let decision = it.decision();
        let text = "waits to see its own write";
        assert_eq!(decision.cause.message == text, waits, "{until:?}");
        assert_eq!(it.releases(), !waits, "{until:?}");
        if waits {
            assert_eq!(decision.actions, []);
            let wake = decision.wake.map(|wake| (wake.at, wake.why));
            assert_eq!(wake, Some((until, "its own write")));
        }
    }
}

#[test]
fn a_permit_holds_five_seconds_from_the_reads_on() {
    // They are one second old.
    let it = ready();
    let actions = it.decision().actions;
    let releases: Vec<_> = actions
        .iter()
        .filter_map(RemediationAction::as_release)
        .collect();
    let [release] = releases.as_slice() else {
        panic!("{actions:?}");
    };
    assert_eq!(release.permit.node(), &node_name("a"));
    for (later, left) in [
        (Duration::ZERO, S * 4),
        (S * 3, S),
        (S * 4, Duration::ZERO),
        (S * 9, Duration::ZERO),
    ] {
        let at = it.now.mono + later;
        assert_eq!(release.permit.remaining_validity(at), left, "{later:?}");
    }
}

#[test]
fn machines_and_nodes_show_the_condition_and_a_host_has_none() {
    let old = keyed(host("b"), &KeyOwner::Machine("uid-gone".into()));
    let marked_node = crate::reboot::ObservedNode {
        needs_remediation: true,
        ..node("c")
    };
    let hosts = [host("a"), old, carrying(host("c"), "n-c")];
    let world = world([marked("a")], hosts, [node("a"), marked_node]);
    let shown: Vec<(String, usize)> = discover_remediations(&world)
        .iter()
        .map(|case| {
            let decision = decide(
                case,
                &RemediationMemory::default(),
                &ConcurrentRemediations::default(),
                &RemediationConfig::default(),
                now(100),
            );
            let conditions = decision.report.conditions.iter();
            let ours = conditions.filter(|it| it.kind == REMEDIATION_CONDITION);
            (case.subject.to_string(), ours.count())
        })
        .collect();
    let wanted = [
        ("machine/machines/a", 1),
        ("node/n-c", 1),
        ("host/machines/h-b", 0),
    ];
    let wanted = wanted.map(|(subject, count)| (subject.to_owned(), count));
    assert_eq!(shown, wanted);
}

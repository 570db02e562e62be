//! §4.4: how long other parts leave a node alone while it reboots as planned.

use std::time::Duration;

use super::super::*;
use super::kit::*;
use crate::policy::Policy;

fn node(phase: RebootPhase, attempt: u32) -> ObservedNode {
    let mut node = node_seen("n1");
    node.record = ParsedAnnotation::Is(RebootRecord {
        attempts: attempt,
        ..record(phase)
    });
    node
}

fn seconds(time: u64) -> Duration {
    Duration::from_secs(time)
}

#[test]
fn only_a_node_at_its_rebooting_has_time_and_it_is_the_rebooting_timeout_of_whatever_rules_it() {
    let flags = config();
    let until = |phase, policies: &ClusterPolicies| {
        rebooting_deadline_since(&node(phase, 1), policies, &flags, seconds(7))
    };
    let none = ClusterPolicies::Known(Vec::new());
    for phase in [
        RebootPhase::Waiting,
        RebootPhase::Draining,
        RebootPhase::Returning,
    ] {
        assert_eq!(until(phase, &none), None, "{phase:?}");
    }
    let at = seconds(7) + flags.reboot_timeout;
    assert_eq!(until(RebootPhase::Rebooting, &none), Some(at));
    let mut policy = Policy::without_rules(crate::name::GroupName::default_group());
    policy.reboot.timeout = Some(seconds(90));
    let ruled = ClusterPolicies::Known(vec![policy]);
    assert_eq!(until(RebootPhase::Rebooting, &ruled), Some(seconds(97)));
    let nothing = rebooting_deadline_since(&node_seen("n1"), &none, &flags, seconds(7));
    assert_eq!(nothing, None);
}

#[test]
fn the_time_begins_when_the_attempt_was_first_seen_and_anew_with_each_attempt() {
    let (flags, none) = (config(), ClusterPolicies::Known(Vec::new()));
    let mut watched = WatchedReboots::default();
    let until = |watched: &WatchedReboots, node: &ObservedNode| {
        let until = watched.rebooting_deadline(node, &none, &flags)?;
        Some(until.saturating_sub(flags.reboot_timeout).as_secs())
    };
    let first = node(RebootPhase::Rebooting, 1);
    assert_eq!(until(&watched, &first), None, "it was not seen yet");
    watched.observe_nodes([&node(RebootPhase::Draining, 0)], now(1));
    watched.observe_nodes([&first], now(5));
    watched.observe_nodes([&first], now(50));
    assert_eq!(until(&watched, &first), Some(5));
    let again = node(RebootPhase::Rebooting, 2);
    watched.observe_nodes([&again], now(60));
    assert_eq!(until(&watched, &again), Some(60));
    let mut other = again.clone();
    other.uid = "another".into();
    watched.observe_nodes([&other], now(70));
    assert_eq!(
        until(&watched, &other),
        Some(70),
        "another Node of that name"
    );
    watched.observe_nodes([], now(80));
    watched.observe_nodes([&other], now(90));
    assert_eq!(until(&watched, &other), Some(90));
}

#[test]
fn a_reboot_that_was_under_way_before_this_process_looked_counts_from_the_nodes_record() {
    let (flags, none) = (config(), ClusterPolicies::Known(Vec::new()));
    let mut node = node(RebootPhase::Rebooting, 1);
    let began = |at: u32, looked: u32, node: &mut ObservedNode| {
        let ParsedAnnotation::Is(record) = &mut node.record else {
            panic!("it has a record");
        };
        record.since = wall(at);
        let mut watched = WatchedReboots::default();
        // The clock of a process that has just started has not run that long.
        let young = crate::Now {
            mono: seconds(3),
            ..now(looked)
        };
        watched.observe_nodes([&*node], young);
        watched.rebooting_deadline(node, &none, &flags)
    };
    let long = flags.reboot_timeout;
    assert_eq!(
        began(0, 1_200, &mut node),
        (seconds(3) + long).checked_sub(seconds(1_200))
    );
    assert_eq!(began(0, 7_200, &mut node), Some(seconds(0)), "it is over");
    let ahead = began(5_000, 1_200, &mut node);
    assert_eq!(ahead, Some(seconds(3) + long), "a clock that is ahead");
}

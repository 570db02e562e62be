//! §4.4: how long others leave a node alone that is being rebooted as planned.

use std::time::Duration;

use super::super::*;
use super::kit::*;
use crate::policy::Policy;

fn node(phase: Phase, attempt: u32) -> NodeSeen {
    let mut node = node_seen("n1");
    node.record = Parsed::Is(Record {
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
    let until = |phase, policies: &Policies| {
        is_rebooting_until(&node(phase, 1), policies, &flags, seconds(7))
    };
    let none = Policies::Known(Vec::new());
    for phase in [Phase::Waiting, Phase::Draining, Phase::Returning] {
        assert_eq!(until(phase, &none), None, "{phase:?}");
    }
    let at = seconds(7) + flags.reboot_timeout;
    assert_eq!(until(Phase::Rebooting, &none), Some(at));
    let mut policy = Policy::silent(crate::name::GroupName::default_group());
    policy.reboot.timeout = Some(seconds(90));
    let ruled = Policies::Known(vec![policy]);
    assert_eq!(until(Phase::Rebooting, &ruled), Some(seconds(97)));
    let nothing = is_rebooting_until(&node_seen("n1"), &none, &flags, seconds(7));
    assert_eq!(nothing, None);
}

#[test]
fn the_time_begins_when_the_attempt_was_first_seen_and_anew_with_each_attempt() {
    let (flags, none) = (config(), Policies::Known(Vec::new()));
    let mut watched = RebootsWatched::default();
    let until = |watched: &RebootsWatched, node: &NodeSeen| {
        let until = watched.until(node, &none, &flags)?;
        Some(until.saturating_sub(flags.reboot_timeout).as_secs())
    };
    let first = node(Phase::Rebooting, 1);
    assert_eq!(until(&watched, &first), None, "it was not seen yet");
    watched.saw([&node(Phase::Draining, 0)], now(1));
    watched.saw([&first], now(5));
    watched.saw([&first], now(50));
    assert_eq!(until(&watched, &first), Some(5));
    let again = node(Phase::Rebooting, 2);
    watched.saw([&again], now(60));
    assert_eq!(until(&watched, &again), Some(60));
    let mut other = again.clone();
    other.uid = "another".into();
    watched.saw([&other], now(70));
    assert_eq!(
        until(&watched, &other),
        Some(70),
        "another Node of that name"
    );
    watched.saw([], now(80));
    watched.saw([&other], now(90));
    assert_eq!(until(&watched, &other), Some(90));
}

#[test]
fn a_reboot_that_was_under_way_before_this_process_looked_counts_from_the_nodes_record() {
    let (flags, none) = (config(), Policies::Known(Vec::new()));
    let mut node = node(Phase::Rebooting, 1);
    let began = |at: u32, looked: u32, node: &mut NodeSeen| {
        let Parsed::Is(record) = &mut node.record else {
            panic!("it has a record");
        };
        record.since = wall(at);
        let mut watched = RebootsWatched::default();
        // A process that has just begun: its clock has not run for as long.
        let young = crate::Now {
            mono: seconds(3),
            ..now(looked)
        };
        watched.saw([&*node], young);
        watched.until(node, &none, &flags)
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

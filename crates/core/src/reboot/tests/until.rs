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

/// In phase `rebooting`, with these limits in the record.
fn node_with_limits(seconds: u64, attempts: u32) -> ObservedNode {
    let mut node = node(RebootPhase::Rebooting, 1);
    let ParsedAnnotation::Is(record) = &mut node.record else {
        panic!("it has a record");
    };
    record.limits = RebootLimits {
        reboot_timeout_seconds: Some(seconds),
        reboot_attempts: Some(attempts),
        settle_seconds: Some(seconds),
    };
    node
}

#[test]
fn the_records_timeout_counts_before_the_flags_of_this_process_and_the_policys_before_both() {
    let none = ClusterPolicies::Known(Vec::new());
    let mut policy = Policy::without_rules(crate::name::GroupName::default_group());
    policy.reboot.timeout = Some(seconds(90));
    let ruled = ClusterPolicies::Known(vec![policy]);
    let until = |node: &ObservedNode, policies| {
        rebooting_deadline_since(node, policies, &config(), seconds(7)).unwrap()
    };
    let longer = node_with_limits(7_200, 2);
    assert_eq!(until(&longer, &none), seconds(7_207));
    assert_eq!(until(&longer, &ruled), seconds(97));
    let shorter = node_with_limits(60, 2);
    assert_eq!(until(&shorter, &none), seconds(67));
}

#[test]
fn a_record_asks_for_a_day_at_most_whoever_wrote_it() {
    let none = ClusterPolicies::Known(Vec::new());
    for (recorded, counted) in [(u64::MAX, 86_400), (0, 1)] {
        let node = node_with_limits(recorded, u32::MAX);
        let until = rebooting_deadline_since(&node, &none, &config(), seconds(7));
        assert_eq!(until, Some(seconds(7 + counted)));
    }
    let flags = config();
    let forged = flags_of_coordinator(&node_with_limits(u64::MAX, u32::MAX), &flags);
    assert_eq!(
        (forged.reboot_attempts, forged.settle),
        (100, seconds(86_400))
    );
    let empty = flags_of_coordinator(&node_with_limits(0, 0), &flags);
    assert_eq!((empty.reboot_attempts, empty.settle), (1, seconds(0)));
}

#[test]
fn the_record_of_an_older_coordinator_says_nothing_of_limits_and_can_be_read() {
    let text = serde_json::to_string(&record(RebootPhase::Rebooting)).unwrap();
    assert!(!text.contains("limits"), "{text}");
    let older: RebootRecord = serde_json::from_str(&text).unwrap();
    assert_eq!(older.limits, RebootLimits::default());
    let later = text.replacen('{', r#"{"limits":{"rebootAttempts":5,"later":1},"#, 1);
    let later: RebootRecord = serde_json::from_str(&later).unwrap();
    let expected = RebootLimits {
        reboot_attempts: Some(5),
        ..RebootLimits::default()
    };
    assert_eq!(later.limits, expected);
    let flags = RebootConfig {
        settle: seconds(11),
        ..config()
    };
    let mut node = node(RebootPhase::Rebooting, 1);
    node.record = ParsedAnnotation::Is(later);
    let merged = flags_of_coordinator(&node, &flags);
    assert_eq!((merged.reboot_attempts, merged.settle), (5, seconds(11)));
}

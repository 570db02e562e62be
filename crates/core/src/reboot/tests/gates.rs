//! §2.6: gates keep a reboot from beginning, and are asked again right before it.

use std::time::Duration;

use super::super::*;
use super::kit::*;
use crate::policy::window::{MaintenanceWindow, WindowSpec};
use crate::policy::{ClusterPolicies, Policy, PolicyGate, PrometheusGate, PrometheusQuery};

const SHUT: &str = "alert DiskFull at http://prom";

fn gates() -> Vec<PolicyGate> {
    vec![PolicyGate::Prometheus(PrometheusGate {
        url: "http://prom".into(),
        ask: PrometheusQuery::Query("up == 0".into()),
    })]
}

fn policy() -> Policy {
    Policy {
        gates: gates(),
        ..Policy::without_rules(crate::name::GroupName::default_group())
    }
}

/// A node in this phase under a policy with a gate that has not been answered.
fn gated(mut seen: RebootSnapshot) -> RebootSnapshot {
    seen.policies = ClusterPolicies::Known(vec![policy()]);
    seen
}

/// The gates were asked at this second.
fn answered(mut seen: RebootSnapshot, second: u64, shut: &[&str]) -> RebootSnapshot {
    seen.start_gates = Some(ObservedStartGates {
        gates: gates(),
        shut: shut.iter().map(|&text| text.to_owned()).collect(),
        taken: Duration::from_secs(second),
    });
    seen
}

fn looks_at_gates(decision: &RebootDecision) -> bool {
    let look = RebootObserve::StartGates { gates: gates() };
    decision.observe.contains(&look)
}

/// In phase `rebooting`; the patch that wrote it was answered at second 100.
fn permitted() -> RebootSnapshot {
    let mut seen = seen(RebootPhase::Rebooting);
    seen.run.permit = Some(RebootPermit {
        attempt: 1,
        answered: Duration::from_secs(100),
    });
    gated(seen)
}

fn bids(decision: &RebootDecision) -> bool {
    matches!(decision.actions.as_slice(), [RebootAction::Bid { .. }])
}

fn starts(decision: &RebootDecision) -> bool {
    matches!(decision.actions.as_slice(), [RebootAction::Reboot { .. }])
}

#[test]
fn nobody_asks_gates_while_others_hold_the_lock() {
    let other = held(0, "n2", &["coordinator/x"]);
    let decision = decide(&gated(waiting(vec![other])), &config(), now(100));
    assert_eq!(decision.cause.reason, RebootReason::LockHeldByOther);
    assert!(!looks_at_gates(&decision));
}

#[test]
fn no_bid_before_the_gates_have_answered_or_while_one_is_shut() {
    let seen = gated(waiting(vec![free(0)]));
    let unknown = decide(&seen, &config(), now(100));
    let shut = decide(&answered(seen.clone(), 100, &[SHUT]), &config(), now(100));
    for (decision, why) in [
        (unknown, RebootReason::LookingAtGates),
        (shut, RebootReason::GateShut),
    ] {
        assert_eq!(decision.cause.reason, why);
        assert!(
            decision.actions.is_empty() && looks_at_gates(&decision),
            "{why}"
        );
    }
    let open = decide(&answered(seen.clone(), 100, &[]), &config(), now(100));
    assert!(bids(&open) && looks_at_gates(&open), "{:?}", open.cause);
}

#[test]
fn an_answer_to_other_gates_or_an_old_one_proves_nothing() {
    let seen = gated(waiting(vec![free(0)]));
    let old = answered(seen.clone(), 39, &[]);
    let mut other = answered(seen, 100, &[]);
    other.start_gates.as_mut().unwrap().gates = Vec::new();
    for seen in [old, other] {
        let decision = decide(&seen, &config(), now(100));
        assert_eq!(decision.cause.reason, RebootReason::LookingAtGates);
    }
}

#[test]
fn a_gate_that_shuts_while_the_lock_is_counted_gives_it_to_the_next() {
    let seen = answered(gated(seen(RebootPhase::Waiting)), 100, &[SHUT]);
    let decision = decide(&seen, &config(), now(100));
    assert_eq!(decision.cause.reason, RebootReason::GateShut);
    assert!(decision.cause.message.contains(SHUT));
    assert!(matches!(
        decision.actions.as_slice(),
        [RebootAction::Release { .. }]
    ));
}

#[test]
fn a_gate_that_is_shut_right_before_the_reboot_undoes_and_counts_as_a_failure() {
    let decision = decide(&answered(permitted(), 100, &[SHUT]), &config(), now(100));
    assert_eq!(decision.cause.reason, RebootReason::GateShut);
    let record = written(&decision);
    assert_eq!((record.phase, record.failures), (RebootPhase::Waiting, 1));
    assert!(record.retry_after.is_some());
    assert_eq!(patch(&decision).unschedulable, Some(false));
}

#[test]
fn gates_are_asked_anew_right_before_the_reboot() {
    for seen in [permitted(), answered(permitted(), 69, &[])] {
        let decision = decide(&seen, &config(), now(100));
        assert_eq!(decision.cause.reason, RebootReason::LookingAtGates);
        assert!(decision.actions.is_empty() && looks_at_gates(&decision));
    }
    assert!(starts(&decide(
        &answered(permitted(), 100, &[]),
        &config(),
        now(100)
    )));
}

#[test]
fn what_opened_the_way_to_the_command_stays_in_sight_until_it_has_started() {
    // Answers that no step requests are dropped, and the gates would be asked again for ever.
    let open = answered(permitted(), 100, &[]);
    let starting = decide(&open, &config(), now(100));
    assert!(starts(&starting) && looks_at_gates(&starting));
    let again = decide(&open, &config(), now(115));
    assert_eq!(written(&again).since, wall(115), "the permit is too old");
    assert!(looks_at_gates(&again));
}

#[test]
fn when_a_pause_ends_each_node_asks_at_a_moment_of_its_own() {
    let paused = crate::policy::PolicyPause {
        reason: "freeze".into(),
        until: None,
    };
    let policy = |paused| Policy {
        gates: Vec::new(),
        paused,
        ..policy()
    };
    let mut seen = waiting(vec![crate::lock::testkit::free(0)]);
    seen.policies = ClusterPolicies::Known(vec![policy(Some(paused))]);
    seen.run.jitter = 0.5;
    let refused = decide(&seen, &config(), now(10));
    assert_eq!(refused.cause.reason, RebootReason::Paused);
    seen.run.record_decision(refused.cause.reason, now(10));
    seen.policies = ClusterPolicies::Known(vec![policy(None)]);
    let spread = decide(&seen, &config(), now(20));
    assert_eq!(spread.cause.reason, RebootReason::NotOurTurn);
    let due = Duration::from_millis(22_500);
    assert_eq!(spread.wake.as_ref().map(|wake| wake.at), Some(due));
    seen.run.record_decision(spread.cause.reason, now(20));
    assert!(!bids(&decide(&seen, &config(), now(22))));
    assert!(bids(&decide(&seen, &config(), now(23))));
}

#[test]
fn a_bid_whose_end_is_unknown_is_settled_even_while_the_policy_is_paused() {
    let paused = crate::policy::PolicyPause {
        reason: String::new(),
        until: None,
    };
    let mut seen = waiting(vec![crate::lock::testkit::free(0)]);
    seen.policies = ClusterPolicies::Known(vec![Policy {
        gates: Vec::new(),
        paused: Some(paused),
        ..policy()
    }]);
    seen.lock.unsettled_bid = Some("dogwatch-default-0".into());
    assert!(bids(&decide(&seen, &config(), now(10))));
    seen.lock.unsettled_bid = None;
    assert!(!bids(&decide(&seen, &config(), now(10))));
}

#[test]
fn a_second_attempt_does_not_ask_the_gates_again() {
    let mut seen = permitted();
    set_record(&mut seen, |record| record.attempts = 2);
    seen.run.permit = Some(RebootPermit {
        attempt: 2,
        answered: Duration::from_secs(100),
    });
    let decision = decide(&seen, &config(), now(100));
    assert!(starts(&decision), "{decision:?}");
    assert!(!looks_at_gates(&decision), "{:?}", decision.observe);
}

#[test]
fn a_bid_is_not_put_off_until_the_drain_no_longer_fits_into_the_window() {
    let spec = WindowSpec {
        start: Some("06:00".into()),
        end: Some("10:00".into()),
        ..WindowSpec::default()
    };
    let mut seen = waiting(vec![free(0)]);
    seen.policies = ClusterPolicies::Known(vec![Policy {
        gates: Vec::new(),
        windows: vec![MaintenanceWindow::new(&spec).unwrap()],
        ..policy()
    }]);
    // The policy allows it since nine; by its jitter the node would bid 2.5 seconds later.
    seen.run.permission_since = Some(Duration::from_hours(1));
    seen.run.jitter = 0.5;
    let config = RebootConfig {
        drain_timeout: Duration::from_secs(3599),
        ..config()
    };
    let waits = decide(&seen, &config, now(3600));
    assert_eq!(waits.cause.reason, RebootReason::NotOurTurn);
    assert_eq!(waits.wake.unwrap().at, Duration::from_secs(3601));
    let last_chance = decide(&seen, &config, now(3601));
    assert!(bids(&last_chance), "{last_chance:?}");
}

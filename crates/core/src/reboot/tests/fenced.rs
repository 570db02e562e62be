//! §4.4: a node that the remediator is fencing.

use super::super::*;
use super::kit::*;
use crate::condition::ConditionStatus;
use crate::lock::ObservedLease;

fn fenced(phase: RebootPhase) -> RebootSnapshot {
    let mut seen = seen(phase);
    set(&mut seen, |node| node.being_fenced = true);
    seen
}

#[test]
fn a_drain_stops_evicting_and_keeps_cordon_record_and_lock_and_says_why() {
    let mut seen = fenced(RebootPhase::Draining);
    seen.drain = Some(one_pod_left());
    for second in [1, 1_000_000] {
        let decision = decide(&seen, &config(), now(second));
        assert!(decision.actions.is_empty(), "{decision:?}");
        let drains = |look: &RebootObserve| matches!(look, RebootObserve::Drain { .. });
        assert!(
            !decision.observe.iter().any(drains),
            "{:?}",
            decision.observe
        );
        assert!(has_event(&decision, RebootReason::BeingFenced));
        let mut conditions = decision.report.conditions.iter();
        let draining = conditions.find(|one| one.kind == "DrainInProgress");
        let draining = draining.unwrap();
        assert_eq!(
            (draining.status, draining.reason.as_str()),
            (ConditionStatus::True, RebootReason::BeingFenced.as_str())
        );
        assert!(draining.heartbeat, "it lives");
    }
    set(&mut seen, |node| node.being_fenced = false);
    let goes_on = decide(&seen, &config(), now(1));
    let drains = |look: &RebootObserve| matches!(look, RebootObserve::Drain { .. });
    assert!(goes_on.observe.iter().any(drains), "{goes_on:?}");
}

#[test]
fn who_waits_asks_for_no_lock_and_gives_back_one_that_it_won() {
    let free = ObservedLease {
        holder: None,
        record: None,
        ..ours()
    };
    let mut seen = waiting(vec![free]);
    let bids = |seen: &RebootSnapshot| {
        let actions = decide(seen, &config(), now(1)).actions;
        actions
            .iter()
            .any(|action| matches!(action, RebootAction::Bid { .. }))
    };
    assert!(bids(&seen));
    set(&mut seen, |node| node.being_fenced = true);
    assert!(!bids(&seen));
    let won = decide(&fenced(RebootPhase::Waiting), &config(), now(1));
    assert!(
        matches!(won.actions.as_slice(), [RebootAction::Release { .. }]),
        "{won:?}"
    );
}

#[test]
fn a_node_that_has_booted_anew_returns_whoever_booted_it() {
    for phase in [RebootPhase::Draining, RebootPhase::Rebooting] {
        let mut seen = fenced(phase);
        seen.host.boot_id = Ok(boot("another"));
        let returns = decide(&seen, &config(), now(1));
        assert_eq!(written(&returns).phase, RebootPhase::Returning, "{phase:?}");
    }
    let mut back = fenced(RebootPhase::Returning);
    back.host.boot_id = Ok(boot("another"));
    let mut free = back.clone();
    set(&mut free, |node| node.being_fenced = false);
    let [held, free] = [&back, &free].map(|seen| decide(seen, &config(), now(1)));
    assert_eq!(held.actions, free.actions);
    assert_eq!(held.cause, free.cause);
}

//! §2.5: the return.

use std::time::Duration;

use super::super::*;
use super::kit::*;
use crate::policy::{ClusterPolicies, Policy, ReadyCheck, ReadyTimeoutAction};

/// A node with a new boot, Ready since second 10, with our cordon.
fn back() -> RebootSnapshot {
    let mut seen = seen(RebootPhase::Returning);
    seen.host.boot_id = Ok(boot("boot-2"));
    seen.run.ready_since = Some(Duration::from_secs(10));
    set_record(&mut seen, |record| record.budgets = vec!["a/pdb".into()]);
    seen
}

/// An uncordoned node that waits for the return gates.
fn at_gates(shut: Option<&[&str]>) -> RebootSnapshot {
    let mut seen = back();
    set(&mut seen, |node| node.unschedulable = false);
    set_record(&mut seen, |record| record.cordoned_by_us = false);
    seen.gates = shut.map(|shut| shut.iter().map(ToString::to_string).collect());
    seen
}

fn releases(decision: &RebootDecision) -> bool {
    matches!(
        decision.actions.as_slice(),
        [RebootAction::Release {
            over_budget: false,
            ..
        }]
    )
}

#[test]
fn ready_for_the_settle_time_comes_before_everything() {
    let mut unready = back();
    unready.run.ready_since = None;
    assert_eq!(
        decide(&unready, &config(), now(100)).cause.reason,
        RebootReason::AwaitingReady
    );
    let settling = decide(&back(), &config(), now(39));
    assert_eq!(
        (settling.actions, settling.wake.unwrap().at.as_secs()),
        (vec![], 40)
    );
    let settled = decide(&back(), &config(), now(40));
    assert_eq!(patch(&settled).unschedulable, Some(false));
    assert!(!written(&settled).cordoned_by_us);
}

#[test]
fn only_our_own_cordon_is_undone() {
    let mut foreign = back();
    set_record(&mut foreign, |record| record.cordoned_by_us = false);
    foreign.gates = Some(Vec::new());
    assert!(releases(&decide(&foreign, &config(), now(40))));
    let mut undone_already = back();
    set(&mut undone_already, |node| node.unschedulable = false);
    let decision = decide(&undone_already, &config(), now(40));
    assert_eq!(
        (
            patch(&decision).unschedulable,
            written(&decision).cordoned_by_us
        ),
        (None, false)
    );
}

#[test]
fn a_cordon_that_somebody_asked_to_keep_stays_and_the_lock_goes_all_the_same() {
    let keeps: [fn(&mut ObservedNode); 2] = [
        |node| node.keep_cordoned = true,
        |node| node.quarantined = true,
    ];
    for keep in keeps {
        let mut seen = back();
        set(&mut seen, keep);
        seen.gates = Some(Vec::new());
        assert!(releases(&decide(&seen, &config(), now(40))));
    }
}

#[test]
fn the_gates_are_asked_after_the_uncordon_and_hold_the_lock() {
    let unknown = decide(&at_gates(None), &config(), now(40));
    assert_eq!(unknown.actions, []);
    assert!(unknown.observe.contains(&RebootObserve::Gates {
        gates: crate::policy::ReturnGate::ALL.to_vec(),
        budgets: vec!["a/pdb".into()]
    }));
    let shut = decide(&at_gates(Some(&["a/pdb is short"])), &config(), now(40));
    assert_eq!(
        (shut.actions, shut.cause.message),
        (vec![], "a/pdb is short".into())
    );
    assert!(releases(&decide(&at_gates(Some(&[])), &config(), now(40))));
}

#[test]
fn gates_and_lock_stay_in_sight_together_until_the_record_is_gone() {
    let mut seen = at_gates(Some(&[]));
    for leases in [None, Some(vec![ours()]), Some(vec![free(0)])] {
        seen.lock.leases = leases;
        let looks = decide(&seen, &config(), now(40)).observe;
        assert!(
            looks
                .iter()
                .any(|look| matches!(look, RebootObserve::Gates { .. })),
            "{looks:?}"
        );
        assert!(
            looks
                .iter()
                .any(|look| matches!(look, RebootObserve::Locks { .. })),
            "{looks:?}"
        );
    }
}

#[test]
fn past_the_gates_deadline_the_lock_stays_by_default_and_it_is_said() {
    let decision = decide(&at_gates(Some(&["short"])), &config(), now(2000));
    assert_eq!(
        (decision.actions.as_slice(), decision.cause.reason),
        (&[][..], RebootReason::ReturnGatesTimedOut)
    );
    assert!(has_event(&decision, RebootReason::ReturnGatesTimedOut));
}

#[test]
fn past_the_gates_deadline_the_lock_goes_if_policy_says_so_but_not_before_they_had_their_time() {
    let config = RebootConfig {
        on_gate_timeout: GateTimeoutAction::Release,
        ..config()
    };
    let mut seen = at_gates(Some(&["short"]));
    seen.run.ready_since = Some(Duration::from_secs(1970));
    let waits = decide(&seen, &config, now(2000));
    assert_eq!(
        waits.actions,
        [],
        "Ready late, but the gates were just asked"
    );
    let goes = decide(&seen, &config, now(2900));
    assert!(releases(&goes));
    assert!(has_event(&goes, RebootReason::ReturnGatesTimedOut));
}

#[test]
fn the_lock_goes_before_the_record_and_the_record_leaves_the_outcome() {
    let mut seen = at_gates(Some(&[]));
    seen.lock.leases = Some(vec![free(0)]);
    let decision = decide(&seen, &config(), now(40));
    let last = patch(&decision).last.as_ref().unwrap();
    assert_eq!(
        (&patch(&decision).record, last.outcome),
        (&RecordChange::Remove, RebootOutcome::Rebooted)
    );
    assert_eq!(
        (&last.old_boot_id, &last.new_boot_id),
        (&boot("boot-1"), &boot("boot-2"))
    );
    assert_eq!(last.fingerprints, record(RebootPhase::Waiting).serves);
    assert!(has_event(&decision, RebootReason::Rebooted));
}

#[test]
fn a_node_that_does_not_come_back_in_time_is_said_and_keeps_its_lock() {
    let mut seen = back();
    seen.run.ready_since = None;
    let decision = decide(&seen, &config(), now(900));
    assert_eq!(
        (decision.actions.as_slice(), decision.cause.reason),
        (&[][..], RebootReason::ReturnGatesTimedOut)
    );
}

#[test]
fn a_new_run_writes_its_id_into_the_lock_before_it_goes_on() {
    let mut seen = back();
    seen.lock.leases = Some(vec![held(0, "n1", &["coordinator/a"])]);
    let decision = decide(&seen, &config(), now(40));
    assert!(matches!(
        decision.actions.as_slice(),
        [RebootAction::Bid { .. }]
    ));
}

#[test]
fn what_is_kept_of_a_reboot_tells_how_long_each_phase_took() {
    let mut seen = seen(RebootPhase::Returning);
    set_record(&mut seen, |record| {
        let phases = [
            RebootPhase::Waiting,
            RebootPhase::Draining,
            RebootPhase::Rebooting,
        ];
        record.began = phases
            .into_iter()
            .zip([wall(0), wall(10), wall(30)])
            .collect();
        record.began.insert(RebootPhase::Returning, wall(90));
    });
    seen.run.ready_since = Some(Duration::ZERO);
    seen.lock.leases = Some(vec![free(0)]);
    seen.gates = Some(Vec::new());
    set_record(&mut seen, |record| record.cordoned_by_us = false);
    let decision = decide(&seen, &config(), now(100));
    let last = patch(&decision).last.as_ref().unwrap();
    let took: Vec<u64> = last
        .phase_durations()
        .values()
        .map(Duration::as_secs)
        .collect();
    assert_eq!(took, [10, 20, 60, 10]);
}

#[test]
fn a_cordon_that_somebody_undid_is_not_ours_any_more_at_once() {
    let mut seen = seen(RebootPhase::Returning);
    set(&mut seen, |node| node.unschedulable = false);
    seen.run.ready_since = None;
    let decision = decide(&seen, &config(), now(10));
    assert!(!written(&decision).cordoned_by_us);
    assert_eq!(patch(&decision).unschedulable, None);
}

#[test]
fn a_name_in_the_record_that_is_no_budgets_is_never_looked_at_and_that_is_said() {
    let mut seen = at_gates(None);
    let mut named: Vec<String> = ["a/pdb", "shop/?x", "../secrets", "a/b/c", "a/", "/", "A/b"]
        .map(str::to_owned)
        .to_vec();
    named.extend((0..600).map(|n| format!("a/pdb-{n}")));
    set_record(&mut seen, |record| record.budgets = named);
    let decision = decide(&seen, &config(), now(40));
    let looked_at = decision.observe.iter().find_map(|look| {
        let RebootObserve::Gates { budgets, .. } = look else {
            return None;
        };
        Some(budgets)
    });
    let looked_at = looked_at.expect("the gates are looked at");
    assert_eq!((looked_at.len(), looked_at[0].as_str()), (500, "a/pdb"));
    assert!(looked_at[1..].iter().all(|name| name.starts_with("a/pdb-")));
    assert!(has_event(&decision, RebootReason::BudgetsIgnored));
}

#[test]
fn while_it_settles_the_condition_says_that_it_booted_anew() {
    let settling = decide(&back(), &config(), now(39));
    let mut conditions = settling.report.conditions.iter();
    let condition = conditions
        .find(|it| it.kind == "MaintenanceInProgress")
        .unwrap();
    assert!(
        condition.message.starts_with("booted again; "),
        "{condition:?}"
    );
}

fn needs_gpu(seen: &mut RebootSnapshot, on_ready_timeout: ReadyTimeoutAction) {
    let mut policy = Policy::without_rules(crate::name::GroupName::default_group());
    policy.on_return.ready = vec![ReadyCheck::Resource {
        name: "example.com/gpu".into(),
    }];
    policy.on_return.on_ready_timeout = on_ready_timeout;
    seen.policies = ClusterPolicies::Known(vec![policy]);
}

#[test]
fn a_node_that_is_not_usable_keeps_cordon_and_lock_until_it_is() {
    let mut seen = back();
    needs_gpu(&mut seen, ReadyTimeoutAction::Keep);
    for (second, reason) in [
        (40, RebootReason::ReadyChecksUnmet),
        (940, RebootReason::ReadyChecksTimedOut),
        (90_000, RebootReason::ReadyChecksTimedOut),
    ] {
        let decision = decide(&seen, &config(), now(second));
        assert_eq!((decision.actions, decision.cause.reason), (vec![], reason));
    }
    assert_eq!(
        decide(&seen, &config(), now(40)).wake.unwrap().at,
        now(940).mono
    );
    assert!(has_event(
        &decide(&seen, &config(), now(940)),
        RebootReason::ReadyChecksTimedOut
    ));
    set(&mut seen, |node| {
        node.extended_resources = vec!["example.com/gpu".into()];
    });
    let usable = decide(&seen, &config(), now(90_000));
    assert_eq!(patch(&usable).unschedulable, Some(false));
}

#[test]
fn past_the_deadline_of_ready_the_policy_may_proceed_and_it_is_said() {
    let mut seen = back();
    needs_gpu(&mut seen, ReadyTimeoutAction::Proceed);
    let waits = decide(&seen, &config(), now(939));
    assert_eq!(waits.actions, []);
    let goes = decide(&seen, &config(), now(940));
    assert_eq!(patch(&goes).unschedulable, Some(false));
    assert!(has_event(&goes, RebootReason::ReadyChecksTimedOut));
}

#[test]
fn a_kept_cordon_and_a_foreign_one_do_not_hide_that_a_node_is_not_usable() {
    for ours in [true, false] {
        let mut seen = back();
        needs_gpu(&mut seen, ReadyTimeoutAction::Keep);
        seen.gates = Some(Vec::new());
        set(&mut seen, |node| node.keep_cordoned = true);
        set_record(&mut seen, |record| record.cordoned_by_us = ours);
        let decision = decide(&seen, &config(), now(40));
        assert_eq!(decision.cause.reason, RebootReason::ReadyChecksUnmet);
        assert_eq!(decision.actions, []);
    }
}

#[test]
fn the_return_gates_have_their_whole_time_after_a_long_wait_to_be_usable() {
    let config = RebootConfig {
        on_gate_timeout: GateTimeoutAction::Release,
        ..config()
    };
    let mut seen = at_gates(Some(&["short"]));
    set_record(&mut seen, |record| record.usable = Some(wall(5000)));
    let waits = decide(&seen, &config, now(5899));
    assert_eq!(
        (waits.actions, waits.cause.reason),
        (vec![], RebootReason::ReturnGatesShut)
    );
    assert!(releases(&decide(&seen, &config, now(5900))));
}

#[test]
fn a_person_who_uncordons_decides_that_the_node_is_usable() {
    let mut seen = at_gates(Some(&[]));
    needs_gpu(&mut seen, ReadyTimeoutAction::Keep);
    assert!(releases(&decide(&seen, &config(), now(40))));
}

#[test]
fn a_new_boot_begins_the_return_at_that_moment_with_nothing_left_of_an_earlier_one() {
    let mut seen = seen(RebootPhase::Rebooting);
    seen.host.boot_id = Ok(boot("boot-2"));
    set_record(&mut seen, |record| {
        record.message = "drained".into();
        record.usable = Some(wall(1));
    });
    let decision = decide(&seen, &config(), now(9));
    let record = written(&decision);
    assert_eq!((record.since, record.usable), (wall(9), None));
    assert_eq!(record.message, "booted again: boot-1 → boot-2");
    assert_eq!(patch(&decision).waiting_label, Some(false));
}

#[test]
fn the_uncordon_notes_when_the_node_was_usable_if_the_policy_asks_for_that() {
    let silent = Policy::without_rules(crate::name::GroupName::default_group());
    let mut unruled = back();
    let mut ruled = back();
    ruled.policies = ClusterPolicies::Known(vec![silent]);
    let mut checked = back();
    needs_gpu(&mut checked, ReadyTimeoutAction::Keep);
    for (seen, usable) in [
        (&mut unruled, None),
        (&mut ruled, None),
        (&mut checked, Some(wall(50))),
    ] {
        set(seen, |node| {
            node.extended_resources = vec!["example.com/gpu".into()];
        });
        let decision = decide(seen, &config(), now(50));
        let record = written(&decision);
        assert_eq!(record.usable, usable, "{:?}", seen.policies);
        assert_eq!(record.message, "back and Ready; removing Dogwatch's cordon");
    }
}

#[test]
fn the_warning_about_ignored_budgets_counts_them_and_comes_only_if_there_are_some() {
    let message = |budgets: Vec<String>| {
        let mut seen = at_gates(None);
        set_record(&mut seen, |record| record.budgets = budgets);
        let events = decide(&seen, &config(), now(40)).report.events;
        let mut ignored = events
            .into_iter()
            .filter(|it| it.reason == "BudgetsIgnored");
        ignored.next().map(|event| event.message)
    };
    let valid = |count: usize| (0..count).map(|n| format!("a/pdb-{n}"));
    assert_eq!(message(valid(500).collect()), None);
    let bad = ["../secrets".to_owned(), "/".to_owned()];
    let expected = "7 PodDisruptionBudgets of the record are ignored: their names are invalid, or \
                    there are more than 500";
    assert_eq!(
        message(valid(505).chain(bad).collect()).as_deref(),
        Some(expected)
    );
}

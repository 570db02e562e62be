//! §2.4, §2.5: a node whose coordinator gave no sign.

use super::super::*;
use super::kit::*;
use crate::policy::{ClusterPolicies, Policy, PolicyPause, ReadyCheck};
use crate::reboot::RebootReason;
use crate::reboot::{
    AbortRequest, ObservedNode, ParsedAnnotation, RebootOutcome, RebootPhase, RecordChange,
};

/// Long enough for every deadline of every phase.
const LONG: u64 = 10 * 60 * MINUTE;

fn aborted(watch: &mut Watch, second: u64) {
    watch.change(second, |node| {
        node.abort = ParsedAnnotation::Is(AbortRequest {
            reason: "wrong node".into(),
            requester: "me".into(),
        });
    });
}

/// A node that booted anew and whose kubelet reported it, at second 10.
fn back() -> Watch {
    let mut watch = Watch::on(RebootPhase::Rebooting);
    watch.posts(10, "boot-2");
    watch
}

#[test]
fn a_coordinator_that_gives_signs_is_left_alone_in_every_phase_for_ever() {
    for phase in [
        RebootPhase::Waiting,
        RebootPhase::Draining,
        RebootPhase::Rebooting,
        RebootPhase::Returning,
    ] {
        for boot in ["boot-1", "boot-2"] {
            let mut watch = Watch::on(phase);
            for second in (0..LONG).step_by(300) {
                watch.change(second, |node| node.conditions[1] = ours(phase, second));
                watch.posts(second + 1, boot);
                watch.leaves_alone(second + 2);
                watch.leaves_alone(second + 299);
            }
        }
    }
}

#[test]
fn what_the_kubelet_writes_is_no_sign_of_the_coordinator() {
    let mut watch = back();
    for second in (30..900).step_by(300) {
        watch.posts(second, "boot-2");
        watch.leaves_alone(second);
    }
    assert_eq!(written(&watch.patch(910)).phase, RebootPhase::Returning);
}

#[test]
fn a_node_that_came_back_is_brought_into_service_from_outside() {
    let mut watch = back();
    watch.leaves_alone(899);
    let begins = watch.patches(900);
    assert_eq!(written(&begins).phase, RebootPhase::Returning);
    assert_eq!(
        written(&begins).run,
        record(RebootPhase::Waiting).run,
        "it takes no run's place"
    );
    let uncordons = watch.patches(901);
    assert_eq!(uncordons.unschedulable, Some(false));
    assert!(!written(&uncordons).cordoned_by_us);
    let looking = watch.of_node(902).unwrap();
    assert!(
        matches!(looking.observe.as_slice(), [HealerObserve::Gates { .. }]),
        "{looking:?}"
    );
    let taken = now(902).mono;
    watch.seen.observations.gates.insert(
        name("n1"),
        ObservedReturnGates {
            shut: vec![],
            taken,
        },
    );
    assert_eq!(watch.releases(903).1, 0);
    watch.released(903);
    let ends = watch.patches(904);
    assert_eq!(ends.record, RecordChange::Remove);
    let last = ends.last.unwrap();
    assert_eq!(
        (last.outcome, last.new_boot_id),
        (RebootOutcome::Rebooted, boot("boot-2"))
    );
    assert_eq!(
        last.fingerprints,
        record(RebootPhase::Waiting).serves,
        "S5: served"
    );
    let tells = watch.of_node(905).unwrap().report.conditions;
    assert!(
        tells.iter().all(|c| c.reason == "Rebooted" && !c.heartbeat),
        "{tells:?}"
    );
    assert_eq!(tells.len(), 4);
}

#[test]
fn the_node_settles_for_as_long_as_its_coordinator_would_wait() {
    let mut watch = Watch::on(RebootPhase::Rebooting);
    watch.change(5, |node| {
        let ParsedAnnotation::Is(record) = &mut node.record else {
            unreachable!()
        };
        record.limits.settle_seconds = Some(1_200);
    });
    watch.posts(10, "boot-2");
    assert_eq!(written(&watch.patches(905)).phase, RebootPhase::Returning);
    watch.leaves_alone(1_209);
    assert_eq!(watch.patches(1_210).unschedulable, Some(false));
}

#[test]
fn gates_are_asked_after_the_uncordon_and_a_shut_one_keeps_the_lock() {
    let mut watch = back();
    watch.patches(900);
    let early = ObservedReturnGates {
        shut: vec![],
        taken: now(900).mono,
    };
    watch.seen.observations.gates.insert(name("n1"), early);
    watch.patches(901);
    let looking = watch.of_node(902).unwrap();
    assert!(looking.actions.is_empty(), "{looking:?}");
    let shut = ObservedReturnGates {
        shut: vec!["DaemonSet pod a/b is not ready".into()],
        taken: now(902).mono,
    };
    watch.seen.observations.gates.insert(name("n1"), shut);
    watch.leaves_alone(903);
    let late = 901 + 16 * MINUTE;
    let fresh = ObservedReturnGates {
        shut: vec!["x".into()],
        taken: now(late).mono,
    };
    watch.seen.observations.gates.insert(name("n1"), fresh);
    let said = watch.of_node(late).unwrap();
    assert_eq!(said.cause.reason, RebootReason::ReturnGatesTimedOut);
    assert!(said.actions.is_empty() && !said.report.events.is_empty());
}

#[test]
fn a_cordon_that_is_not_ours_and_one_that_a_person_keeps_stay() {
    let mut foreign = Watch::on(RebootPhase::Rebooting);
    foreign.change(1, |node| {
        let ParsedAnnotation::Is(record) = &mut node.record else {
            unreachable!()
        };
        record.cordoned_by_us = false;
    });
    let mut kept = Watch::on(RebootPhase::Rebooting);
    kept.change(1, |node| node.keep_cordoned = true);
    for mut watch in [foreign, kept] {
        watch.posts(10, "boot-2");
        assert_eq!(watch.patches(1000).unschedulable, None);
        let next = watch.of_node(1001).unwrap();
        assert!(next.actions.is_empty(), "{next:?}");
    }
}

#[test]
fn a_boot_id_that_the_kubelet_has_not_confirmed_proves_nothing() {
    let mut node = node("n1", RebootPhase::Rebooting);
    node.boot_id = Some(boot("boot-0"));
    let mut watch = Watch::of(node, held(0, "n1", &["coordinator/a"]));
    let stale = watch.of_node(20 * MINUTE).unwrap();
    assert!(
        stale.actions.is_empty(),
        "an older boot id is taken for a newer one: {stale:?}"
    );
    watch.posts(21 * MINUTE, "boot-1");
    assert!(watch.of_node(40 * MINUTE).unwrap().actions.is_empty());
}

#[test]
fn a_node_that_is_not_ready_is_not_put_back_into_service() {
    let mut watch = back();
    watch.patches(900);
    watch.change(901, |node| node.ready = false);
    watch.leaves_alone(2000);
    watch.change(2001, |node| node.ready = true);
    watch.leaves_alone(2030);
    assert_eq!(watch.patch(2031).unschedulable, Some(false));
}

#[test]
fn a_sign_in_the_middle_gives_the_node_back_to_its_coordinator() {
    let mut watch = back();
    watch.patches(900);
    watch.change(901, |node| {
        node.conditions[1] = ours(RebootPhase::Returning, 901);
    });
    watch.leaves_alone(901 + 899);
    assert!(watch.of_node(901 + 900).unwrap().actions.len() == 1);
}

#[test]
fn our_own_writes_are_no_sign() {
    let mut watch = back();
    watch.patches(900);
    watch.sees(901);
    assert_eq!(watch.patch(902).unschedulable, Some(false));
    let mut node = watch.node().clone();
    node.conditions[1] = ours(RebootPhase::Returning, 902);
    watch.seen.nodes.insert(name("n1"), node.clone());
    watch.seen.memory.record_condition_write(&node, now(902));
    watch.sees(903);
    assert_eq!(watch.patch(903).unschedulable, Some(false));
}

#[test]
fn a_new_leader_begins_to_watch_anew_and_goes_on_from_what_stands() {
    let mut watch = back();
    watch.patches(900);
    watch.seen.memory = HealerMemory::default();
    watch.sees(901);
    watch.leaves_alone(901 + 14 * MINUTE);
    watch.posts(901 + MINUTE, "boot-2");
    assert_eq!(watch.patch(901 + 15 * MINUTE).unschedulable, Some(false));
}

#[test]
fn a_drain_without_a_coordinator_is_undone_at_its_deadline_and_the_node_is_written_before_the_lock_goes()
 {
    let mut watch = Watch::on(RebootPhase::Draining);
    let waits = watch.of_node(20 * MINUTE).unwrap();
    assert!(waits.actions.is_empty());
    assert_eq!(waits.wake.unwrap().at, now(60 * MINUTE).mono);
    let undo = watch.patches(60 * MINUTE);
    let record = written(&undo);
    assert_eq!(undo.unschedulable, Some(false));
    assert_eq!(
        (record.phase, record.failures, record.cordoned_by_us),
        (RebootPhase::Waiting, 1, false)
    );
    assert!(
        record.retry_after.is_some(),
        "a coordinator that lives asks anew before it goes on"
    );
    watch.released(60 * MINUTE + 1);
    watch.leaves_alone(LONG);
}

#[test]
fn a_drain_is_undone_when_what_allowed_it_ends_but_not_before_the_coordinator_had_its_time() {
    let mut veto = Watch::on(RebootPhase::Draining);
    veto.change(1, |node| node.unschedulable = false);
    veto.leaves_alone(14 * MINUTE);
    let undo = veto.patch(15 * MINUTE);
    assert_eq!(undo.unschedulable, None);
    assert!(!written(&undo).cordoned_by_us);
    let mut paused = Watch::on(RebootPhase::Draining);
    paused.seen.policies = ClusterPolicies::Known(vec![policy(|policy| {
        policy.paused = Some(PolicyPause {
            reason: "black friday".into(),
            until: None,
        });
    })]);
    paused.leaves_alone(14 * MINUTE);
    assert_eq!(paused.patch(15 * MINUTE).unschedulable, Some(false));
    paused.seen.policies = ClusterPolicies::Unreadable { why: "403".into() };
    paused.leaves_alone(15 * MINUTE);
}

#[test]
fn the_policys_own_deadline_counts() {
    let mut watch = Watch::on(RebootPhase::Draining);
    let hours = |hours| {
        policy(|policy: &mut Policy| {
            policy.drain.timeout = Some(std::time::Duration::from_hours(hours));
        })
    };
    watch.seen.policies = ClusterPolicies::Known(vec![hours(3)]);
    watch.leaves_alone(179 * MINUTE);
    watch.patch(180 * MINUTE);
    watch.seen.policies = ClusterPolicies::NotYetRead;
    assert!(
        watch.of_node(LONG).is_none(),
        "nobody knows yet how long it may take"
    );
}

#[test]
fn a_reboot_that_may_still_come_keeps_cordon_and_lock_and_is_said() {
    let watch = Watch::on(RebootPhase::Rebooting);
    for second in [0, 31 * MINUTE, 59 * MINUTE] {
        assert!(watch.of_node(second).unwrap().report.conditions.is_empty());
    }
    let said = watch.of_node(60 * MINUTE).unwrap();
    assert_eq!(said.cause.reason, RebootReason::RebootFailed);
    assert!(said.actions.is_empty());
    let condition = said
        .report
        .conditions
        .iter()
        .find(|c| c.kind == "MaintenanceInProgress");
    assert_eq!(condition.unwrap().reason, "RebootFailed");
    watch.leaves_alone(100 * LONG);
}

#[test]
fn a_lock_that_is_held_without_being_used_goes_back_but_the_node_is_written_first() {
    let mut watch = Watch::on(RebootPhase::Waiting);
    watch.leaves_alone(14 * MINUTE);
    let touch = watch.patches(15 * MINUTE);
    assert!(written(&touch).retry_after.is_some());
    assert_eq!(
        (touch.unschedulable, written(&touch).phase),
        (None, RebootPhase::Waiting)
    );
    watch.released(15 * MINUTE + 1);
    watch.leaves_alone(LONG);
}

#[test]
fn a_lock_that_was_just_won_or_whose_waiter_moves_is_left_alone() {
    let mut watch = Watch::on(RebootPhase::Waiting);
    watch.change(14 * MINUTE, |node| {
        let ParsedAnnotation::Is(record) = &mut node.record else {
            unreachable!()
        };
        record.message = "counted".into();
    });
    watch.leaves_alone(28 * MINUTE);
    let mut watch = Watch::on(RebootPhase::Waiting);
    let mut lease = held(0, "n1", &["coordinator/b"]);
    lease.resource_version = "2".into();
    watch.seen.leases.insert(lease.name.clone(), lease);
    watch.sees(14 * MINUTE);
    watch.leaves_alone(28 * MINUTE);
}

#[test]
fn an_abort_that_nobody_serves_is_served_from_outside() {
    for phase in [RebootPhase::Waiting, RebootPhase::Draining] {
        let mut watch = Watch::on(phase);
        aborted(&mut watch, 10);
        watch.leaves_alone(39);
        let undo = watch.patches(40);
        assert_eq!(written(&undo).phase, RebootPhase::Waiting);
        assert!(
            written(&undo).retry_after.is_some(),
            "fenced before the lock goes"
        );
        assert_eq!(
            undo.unschedulable,
            (phase == RebootPhase::Draining).then_some(false)
        );
        watch.released(41);
        let ends = watch.patches(42);
        assert!(ends.remove_abort);
        let last = ends.last.unwrap();
        assert_eq!(last.outcome, RebootOutcome::Aborted);
        assert!(
            last.was_served(),
            "S5: what asked for it does not begin anew"
        );
    }
}

#[test]
fn an_abort_of_a_reboot_that_failed_uncordons_and_releases() {
    let mut watch = Watch::on(RebootPhase::Rebooting);
    aborted(&mut watch, 10);
    let uncordon = watch.patches(40);
    assert_eq!(uncordon.unschedulable, Some(false));
    watch.released(41);
    assert_eq!(
        watch.patches(42).last.unwrap().outcome,
        RebootOutcome::Aborted
    );
}

#[test]
fn an_abort_of_a_return_that_the_kubelet_has_not_told_waits_for_it() {
    let mut watch = Watch::on(RebootPhase::Returning);
    aborted(&mut watch, 10);
    watch.leaves_alone(LONG);
    watch.posts(LONG, "boot-2");
    watch.patches(LONG + 1);
}

#[test]
fn an_unreadable_record_is_said_and_left_alone() {
    let mut watch = Watch::on(RebootPhase::Draining);
    watch.change(1, |node| {
        node.record = ParsedAnnotation::Bad { why: "?".into() }
    });
    watch.leaves_alone(LONG);
    let said = watch.of_node(LONG).unwrap();
    assert_eq!(said.cause.reason, RebootReason::RecordUnreadable);
    assert!(!said.report.events.is_empty());
    assert!(watch.of_lease(LONG).is_none(), "its lock stays");
}

#[test]
fn a_cordon_without_a_record_cannot_be_told_from_a_persons_and_is_never_touched() {
    let mut watch = Watch::of(node("n1", RebootPhase::Draining), free(0));
    watch.change(1, |node| {
        node.record = ParsedAnnotation::Absent;
        node.conditions.truncate(1);
    });
    watch.leaves_alone(LONG);
    assert!(watch.of_node(LONG).is_none());
}

#[test]
fn conditions_that_outlived_their_record_are_put_right() {
    let mut watch = Watch::of(node("n1", RebootPhase::Draining), free(0));
    watch.change(1, |node| node.record = ParsedAnnotation::Absent);
    assert!(
        watch
            .of_node(14 * MINUTE)
            .unwrap()
            .report
            .conditions
            .is_empty()
    );
    let tells = watch.of_node(16 * MINUTE).unwrap().report.conditions;
    assert!(
        tells
            .iter()
            .all(|c| c.status == crate::condition::ConditionStatus::False),
        "{tells:?}"
    );
}

#[test]
fn another_node_of_the_same_name_is_watched_anew() {
    let mut watch = back();
    watch.change(890, |node| node.uid = "other".into());
    watch.leaves_alone(900);
}

fn policy(change: impl FnOnce(&mut Policy)) -> Policy {
    super::escalate::policy(change)
}

#[test]
fn a_node_that_is_being_fenced_is_left_as_it_is_until_that_is_over_or_it_has_booted_anew() {
    for phase in [RebootPhase::Draining, RebootPhase::Rebooting] {
        let mut watch = Watch::on(phase);
        watch.seen.policies = ClusterPolicies::Known(vec![super::escalate::policy(|policy| {
            policy.reboot.escalate = true;
        })]);
        watch.change(1, |node| node.being_fenced = true);
        let held = watch.of_node(LONG).unwrap();
        assert_eq!(held.cause.reason, RebootReason::BeingFenced);
        assert!(
            held.actions.is_empty() && held.observe.is_empty(),
            "{held:?}"
        );

        let mut over = Watch {
            seen: watch.seen.clone(),
            ..Watch::on(phase)
        };
        over.change(LONG, |node| node.being_fenced = false);
        assert_ne!(
            over.of_node(2 * LONG).unwrap().cause.reason,
            RebootReason::BeingFenced
        );

        watch.posts(LONG + 1, "boot-2");
        let back = watch.patch(2 * LONG);
        assert_eq!(written(&back).phase, RebootPhase::Returning, "{phase:?}");
    }
}

#[test]
fn a_node_that_is_not_usable_is_not_uncordoned_by_the_healer_either() {
    let mut watch = back();
    let mut policy = Policy::without_rules(crate::name::GroupName::default_group());
    policy.on_return.ready = vec![ReadyCheck::NoTaint {
        key: "example.com/starting".into(),
    }];
    watch.seen.policies = ClusterPolicies::Known(vec![policy]);
    let tainted = |node: &mut ObservedNode| node.taint_keys = vec!["example.com/starting".into()];
    watch.change(20, tainted);
    watch.patches(950);
    watch.leaves_alone(951);
    let said = watch.of_node(951 + 16 * MINUTE).unwrap();
    assert_eq!(said.cause.reason, RebootReason::ReadyChecksTimedOut);
    assert!(said.actions.is_empty() && !said.report.events.is_empty());
    watch.change(951 + 17 * MINUTE, |node| node.taint_keys.clear());
    assert_eq!(watch.patches(951 + 17 * MINUTE).unschedulable, Some(false));
}

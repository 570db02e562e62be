//! §2.4: a reboot that does not happen is handed over once.

use super::super::*;
use super::kit::*;
use crate::lock::ObservedLease;
use crate::name::GroupName;
use crate::policy::{ClusterPolicies, Policy, PolicyPause};
use crate::reboot::RebootReason;
use crate::reboot::{ParsedAnnotation, RebootPhase};

pub(super) fn policy(change: impl FnOnce(&mut Policy)) -> Policy {
    let mut policy = Policy::without_rules(GroupName::default_group());
    change(&mut policy);
    policy
}

/// At this second every attempt is used up and has timed out.
const DUE: u64 = 30 * MINUTE;

/// A node rebooting in its last attempt, with a policy that escalates.
fn stuck() -> Watch {
    let mut watch = Watch::on(RebootPhase::Rebooting);
    watch.change(0, |node| {
        let ParsedAnnotation::Is(record) = &mut node.record else {
            unreachable!()
        };
        record.attempts = 2;
    });
    let escalates = policy(|policy| policy.reboot.escalate = true);
    watch.seen.policies = ClusterPolicies::Known(vec![escalates]);
    watch
}

fn host(text: &str) -> HostRef {
    HostRef {
        namespace: "metal".into(),
        name: text.into(),
        uid: format!("uid-{text}"),
        resource_version: "1".into(),
        asked: false,
        mark: ParsedAnnotation::Absent,
    }
}

/// Answers the reads that the decision asks for.
fn looks(
    watch: &mut Watch,
    second: u64,
    noted: ParsedAnnotation<EscalationRecord>,
    host: Result<HostRef, String>,
) {
    let taken = now(second).mono;
    let node = Some(watch.node().clone());
    let read = NodeRead {
        node,
        escalated: noted,
        taken,
    };
    watch.seen.observations.nodes.insert(name("n1"), read);
    let host = ObservedNodeHost { host, taken };
    watch.seen.observations.hosts.insert(name("n1"), host);
}

fn noted(watch: &Watch, second: u64) -> EscalationRecord {
    let decision = watch.of_node(second).unwrap();
    let [HealerAction::NoteEscalation { node, note }] = decision.actions.as_slice() else {
        panic!("not noted: {decision:?}");
    };
    assert_eq!(node.resource_version, watch.node().resource_version);
    note.clone()
}

fn asks(watch: &Watch, second: u64) -> bool {
    let actions = watch.of_node(second).unwrap().actions;
    matches!(actions.as_slice(), [HealerAction::Escalate { .. }])
}

#[test]
fn the_intention_stands_on_the_node_before_the_host_is_asked_and_the_host_is_asked_once() {
    let mut watch = stuck();
    watch.leaves_alone(DUE - 1);
    let looking = watch.of_node(DUE).unwrap();
    assert!(
        matches!(looking.observe.as_slice(), [HealerObserve::Hosts { .. }]),
        "{looking:?}"
    );
    looks(&mut watch, DUE, ParsedAnnotation::Absent, Ok(host("h1")));
    let note = noted(&watch, DUE);
    assert_eq!(
        (note.host.as_str(), note.node_uid.as_str()),
        ("metal/h1", "uid-n1")
    );
    looks(
        &mut watch,
        DUE,
        ParsedAnnotation::Is(note.clone()),
        Ok(host("h1")),
    );
    assert!(asks(&watch, DUE));
    let served = HostRef {
        mark: ParsedAnnotation::Is(note.clone()),
        ..host("h1")
    };
    looks(&mut watch, DUE + 60, ParsedAnnotation::Is(note), Ok(served));
    watch.leaves_alone(DUE + 60);
}

#[test]
fn a_coordinator_that_lives_has_all_its_attempts_first() {
    let mut watch = stuck();
    watch.change(1, |node| {
        let ParsedAnnotation::Is(record) = &mut node.record else {
            unreachable!()
        };
        record.attempts = 1;
    });
    for second in (2..200 * MINUTE).step_by(300) {
        watch.change(second, |node| {
            node.conditions[1] = ours(RebootPhase::Rebooting, second);
        });
        let decision = watch.of_node(second + 1).unwrap();
        assert!(decision.observe.is_empty() && decision.actions.is_empty());
    }
}

/// In this attempt, with the limits of a coordinator that lives.
fn alive_in_attempt(attempt: u32, timeout: u64, attempts: u32) -> Watch {
    let mut watch = stuck();
    watch.change(1, |node| {
        let ParsedAnnotation::Is(record) = &mut node.record else {
            unreachable!()
        };
        record.attempts = attempt;
        record.limits.reboot_timeout_seconds = Some(timeout);
        record.limits.reboot_attempts = Some(attempts);
    });
    watch
}

fn asks_for_host(watch: &mut Watch, second: u64) -> bool {
    watch.change(second, |node| {
        node.conditions[1] = ours(RebootPhase::Rebooting, second);
    });
    !watch.of_node(second).unwrap().observe.is_empty()
}

#[test]
fn a_live_coordinator_has_the_attempts_and_the_time_of_its_own_flags() {
    let table = [
        // --reboot-timeout=2h
        (2, 7_200, 2, 7_200),
        // --reboot-attempts=1: no attempt is left after the first.
        (1, 1_800, 1, 1_800),
    ];
    for (attempt, timeout, attempts, due) in table {
        let mut watch = alive_in_attempt(attempt, timeout, attempts);
        for second in (300..due).step_by(300) {
            assert!(!asks_for_host(&mut watch, second), "at {second}");
        }
        assert!(asks_for_host(&mut watch, due + 1), "at {due}");
    }
    // --reboot-attempts=5
    let mut watch = alive_in_attempt(2, 1_800, 5);
    for second in (300..200 * MINUTE).step_by(300) {
        assert!(!asks_for_host(&mut watch, second), "at {second}");
    }
}

#[test]
fn a_node_that_gave_no_sign_for_all_attempts_is_handed_over() {
    let mut watch = stuck();
    watch.change(1, |node| {
        let ParsedAnnotation::Is(record) = &mut node.record else {
            unreachable!()
        };
        record.attempts = 1;
    });
    assert!(watch.of_node(59 * MINUTE).unwrap().observe.is_empty());
    let due = 60 * MINUTE + 1;
    assert_eq!(
        watch.of_node(due).unwrap().cause.reason,
        RebootReason::RebootFailed
    );
    looks(&mut watch, due, ParsedAnnotation::Absent, Ok(host("h1")));
    noted(&watch, due);
}

#[test]
fn without_the_policys_word_no_host_is_asked() {
    let mut watch = stuck();
    watch.seen.policies = ClusterPolicies::Known(vec![policy(|_| {})]);
    looks(&mut watch, DUE, ParsedAnnotation::Absent, Ok(host("h1")));
    watch.leaves_alone(DUE);
    watch.leaves_alone(100 * DUE);
}

#[test]
fn a_veto_a_pause_a_lost_lock_or_an_abort_keeps_the_host_alone() {
    type Change = fn(&mut Watch);
    let table: [(&str, Change); 5] = [
        ("uncordoned", |watch| {
            watch.change(DUE, |node| node.unschedulable = false);
        }),
        ("paused", |watch| {
            watch.seen.policies = ClusterPolicies::Known(vec![policy(|policy| {
                policy.reboot.escalate = true;
                policy.paused = Some(PolicyPause {
                    reason: "no".into(),
                    until: None,
                });
            })]);
        }),
        ("lock lost", |watch| {
            watch
                .seen
                .leases
                .insert("dogwatch-default-0".into(), held(0, "n2", &[]));
            watch.sees(DUE);
        }),
        ("lock of another Node", |watch| {
            let mut lease: ObservedLease = held(0, "n1", &[]);
            lease.record.as_mut().unwrap().node_uid = Some("older".into());
            watch.seen.leases.insert(lease.name.clone(), lease);
            watch.sees(DUE);
        }),
        ("new boot", |watch| watch.posts(DUE, "boot-2")),
    ];
    for (what, change) in table {
        let mut watch = stuck();
        change(&mut watch);
        looks(&mut watch, DUE, ParsedAnnotation::Absent, Ok(host("h1")));
        let actions = watch.of_node(DUE).unwrap().actions;
        let asks = |action: &HealerAction| {
            matches!(
                action,
                HealerAction::Escalate { .. } | HealerAction::NoteEscalation { .. }
            )
        };
        assert!(!actions.iter().any(asks), "{what}: {actions:?}");
    }
}

#[test]
fn a_node_that_changed_since_it_was_read_is_read_again_first() {
    let mut watch = stuck();
    looks(&mut watch, DUE, ParsedAnnotation::Absent, Ok(host("h1")));
    watch.change(DUE, |node| node.conditions[0] = kubelet(DUE));
    watch.leaves_alone(DUE);
    let decision = watch.of_node(DUE + 1).unwrap();
    assert!(
        matches!(decision.observe.as_slice(), [HealerObserve::Node { .. }]),
        "{decision:?}"
    );
    assert!(decision.actions.is_empty());
}

#[test]
fn only_the_host_that_carries_the_node_is_asked_and_nobody_is_overruled() {
    let asked = HostRef {
        asked: true,
        ..host("h1")
    };
    let table = [
        (
            Err("no BareMetalHost has it".to_owned()),
            "no BareMetalHost has it",
        ),
        (Ok(asked), "somebody has already requested"),
        (Ok(host("h2")), "now another host names this Node"),
    ];
    for (found, expected) in table {
        let mut watch = stuck();
        looks(&mut watch, DUE, ParsedAnnotation::Absent, Ok(host("h1")));
        let note = noted(&watch, DUE);
        looks(&mut watch, DUE, ParsedAnnotation::Is(note), found);
        let decision = watch.of_node(DUE).unwrap();
        assert!(decision.actions.is_empty(), "{expected}: {decision:?}");
        let said = &decision.report.events;
        assert!(
            said.iter().any(|event| event.message.contains(expected)),
            "{said:?}"
        );
    }
}

#[test]
fn a_note_of_an_earlier_reboot_is_replaced() {
    let mut watch = stuck();
    looks(&mut watch, DUE, ParsedAnnotation::Absent, Ok(host("h1")));
    let old = EscalationRecord {
        planned: wall(99),
        ..noted(&watch, DUE)
    };
    let host = HostRef {
        mark: ParsedAnnotation::Is(old.clone()),
        ..host("h1")
    };
    looks(&mut watch, DUE, ParsedAnnotation::Is(old), Ok(host.clone()));
    let note = noted(&watch, DUE);
    looks(&mut watch, DUE, ParsedAnnotation::Is(note), Ok(host));
    assert!(asks(&watch, DUE));
}

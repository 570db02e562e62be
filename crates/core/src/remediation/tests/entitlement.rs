//! Who asks for a remediation, whose the key and the record on a host are, and which Nodes are
//! claimed. Source: specification §4.1, §4.4.

use std::sync::Arc;

use super::super::*;
use super::clear::{Ready, ready};
use super::kit::*;
use crate::power::CurrentPower;
use crate::reboot::ObservedNode;

/// The record of Machine `machines/a` after these steps.
fn record(steps: &[RemediationStep]) -> RemediationRecord {
    let host = begun(host("a"), &KeyOwner::Machine("uid-a".into()));
    let stamp = |step: &RemediationStep| StepStamp {
        step: *step,
        at: jiff::Timestamp::UNIX_EPOCH,
    };
    RemediationRecord {
        steps: steps.iter().map(stamp).collect(),
        ..record_on_host(&host).unwrap()
    }
}

const HELD: [RemediationStep; 2] = [RemediationStep::Requested, RemediationStep::KeyAdded];
const KEY_REMOVED: [RemediationStep; 3] = [
    RemediationStep::Requested,
    RemediationStep::KeyAdded,
    RemediationStep::KeyRemoved,
];
const ENDED: [RemediationStep; 2] = [RemediationStep::Requested, RemediationStep::Withdrawn];

fn is_of_person(it: &Ready) -> bool {
    let around = ConcurrentRemediations::default();
    prepare::is_key_of_person(&it.context(&around))
}

#[test]
fn a_key_without_a_record_that_holds_it_is_a_persons() {
    for (steps, is_persons) in [
        (None, true),
        (Some(&HELD[..]), false),
        (Some(&KEY_REMOVED[..]), true),
        (Some(&ENDED[..]), true),
    ] {
        let mut it = ready();
        it.case.record = steps.map(record);
        assert_eq!(is_of_person(&it), is_persons, "{steps:?}");
    }
}

#[test]
fn a_key_whose_record_was_overwritten_by_a_remediation_that_holds_the_host_is_not_a_persons() {
    let other = KeyOwner::Request("uid-r".into());
    for (steps, is_key_there, is_persons) in [
        (&HELD[..], true, false),
        (&HELD[..], false, true),
        (&KEY_REMOVED[..], true, true),
        (&ENDED[..], true, true),
    ] {
        let mut it = ready();
        let of_other = RemediationRecord {
            uid: "uid-r".into(),
            ..record(steps)
        };
        let mut host = it.case.host.as_deref().unwrap().clone();
        if is_key_there {
            host = keyed(host, &other);
        }
        it.case.host = Ok(Arc::new(with_record(host, &of_other)));
        it.case.record = None;
        assert_eq!(is_of_person(&it), is_persons, "{steps:?} {is_key_there}");
    }
}

#[test]
fn a_persons_key_is_taken_over_for_the_machine_or_else_the_node_that_asks() {
    for (has_machine, uid) in [(true, "uid-a"), (false, "uid-n-a")] {
        let mut it = ready();
        it.case.record = None;
        if !has_machine {
            it.case.machine = None;
        }
        let around = ConcurrentRemediations::default();
        let decision = by_annotation::decide(&it.context(&around));
        let record = decision.actions.iter().find_map(|it| it.host_record());
        assert_eq!(record.unwrap().uid, uid);
    }
}

#[test]
fn a_mark_without_a_usable_host_is_answered_and_nothing_else_is() {
    for (needs_remediation, is_marked, has_problem, is_answered) in [
        (true, false, false, true),
        (false, true, true, true),
        (false, true, false, false),
        (false, false, true, false),
        (false, false, false, false),
    ] {
        let mut it = ready();
        it.case.host = Err((RemediationReason::NoHost, "no host".into()));
        it.case.needs_remediation = needs_remediation;
        let problem = (RemediationReason::NodeOfAMachine, String::new());
        it.case.problem = has_problem.then_some(problem);
        Arc::make_mut(it.case.node.as_mut().unwrap()).needs_remediation = is_marked;
        let around = ConcurrentRemediations::default();
        let decision = by_annotation::decide(&it.context(&around));
        let wanted = if is_answered {
            RemediationReason::NoHost
        } else {
            RemediationReason::NotNeeded
        };
        let what = format!("{needs_remediation} {is_marked} {has_problem}");
        assert_eq!(decision.cause.reason, wanted, "{what}");
        assert_eq!(
            decision.report.events.len(),
            usize::from(is_answered),
            "{what}"
        );
    }
}

#[test]
fn a_release_is_recorded_only_of_a_node_that_was_there_and_is_known_to_be_gone() {
    let both = [true, false];
    let all = both.map(|was| both.map(|known| both.map(|gone| (was, known, gone))));
    for (was_there, is_known, is_gone) in all.into_iter().flatten().flatten() {
        let mut it = ready();
        let mut record = record(&HELD);
        record.node_uid = was_there.then(|| "uid-n-a".to_owned());
        if is_gone {
            it.case.node = None;
        }
        let problem = (RemediationReason::OtherCluster, String::new());
        it.case.cluster.problem = (!is_known).then_some(problem);
        let around = ConcurrentRemediations::default();
        let host = it.case.host.as_ref().unwrap();
        let next = by_annotation::record_key_removal(&it.context(&around), host, &record);
        let is_released = next.time_of_step(RemediationStep::Released).is_some();
        assert_eq!(
            is_released,
            was_there && is_known && is_gone,
            "{was_there} {is_known} {is_gone}"
        );
        assert!(next.time_of_step(RemediationStep::KeyRemoved).is_some());
    }
}

/// Host and Node `a`, fenced by this remediation.
fn fenced_by(case: &Remediation, stage: RemediationStage) -> FencedHost {
    FencedHost {
        subject: case.subject.clone(),
        ..fenced("a", stage)
    }
}

#[test]
fn a_remediation_that_goes_ahead_replaces_only_its_own_preparation() {
    let case = ready().case;
    let other = Remediation {
        subject: RemediationSubject::Machine(machine_name("b")),
        ..case.clone()
    };
    let stages = |around: &ConcurrentRemediations| -> Vec<(RemediationSubject, RemediationStage)> {
        let fenced = around.fenced.iter();
        fenced.map(|it| (it.subject.clone(), it.stage)).collect()
    };
    let mut around = ConcurrentRemediations {
        fenced: vec![
            fenced_by(&case, RemediationStage::Preparing),
            fenced_by(&case, RemediationStage::HeldOff),
            fenced_by(&other, RemediationStage::Preparing),
        ],
        ..ConcurrentRemediations::default()
    };
    let decision = crate::decision::decision_with_cause(RemediationReason::Preparing, "");
    around.admit_decided(&case, &decision, true);
    assert_eq!(
        stages(&around),
        [
            (case.subject.clone(), RemediationStage::HeldOff),
            (other.subject.clone(), RemediationStage::Preparing),
            (case.subject.clone(), RemediationStage::Admitted),
        ]
    );
}

#[test]
fn a_node_of_that_name_in_another_cluster_is_not_claimed() {
    let case = ready().case;
    let other = Remediation {
        subject: RemediationSubject::Machine(machine_name("b")),
        ..case.clone()
    };
    let prod = NodeCluster::Workload(ObjectName::new("machines", "prod"));
    for (cluster, node, is_claimed) in [
        (NodeCluster::Management, "a", true),
        (prod, "a", false),
        (NodeCluster::Management, "b", false),
    ] {
        let around = ConcurrentRemediations {
            fenced: vec![FencedHost {
                cluster,
                node: Some(node_name(node)),
                ..fenced_by(&other, RemediationStage::HeldOff)
            }],
            ..ConcurrentRemediations::default()
        };
        assert_eq!(around.is_node_claimed(&case, &node_name("a")), is_claimed);
    }
}

#[test]
fn a_remediation_prepares_once_its_lease_is_held_or_its_node_is_marked_where_no_lease_counts() {
    for (lease_held, has_dogwatch, is_marked, prepares) in [
        (true, true, false, true),
        (true, false, false, true),
        (false, true, true, false),
        (false, true, false, false),
        (false, false, true, true),
        (false, false, false, false),
    ] {
        let mut case = ready().case;
        case.host = Ok(Arc::new(host("a")));
        case.record = None;
        case.held_lease = lease_held.then(HeldRemediationLease::default);
        case.cluster.has_dogwatch = has_dogwatch;
        case.node = Some(Arc::new(ObservedNode {
            being_fenced: is_marked,
            ..node("a")
        }));
        let wanted = prepares.then_some(RemediationStage::Preparing);
        let what = format!("{lease_held} {has_dogwatch} {is_marked}");
        assert_eq!(case.remediation_stage(), wanted, "{what}");
    }
}

/// After the key was removed; the Node is gone.
fn returning(power: CurrentPower) -> Ready {
    let mut it = ready();
    it.case.host = Ok(Arc::new(host("a")));
    it.case.record = Some(record(&KEY_REMOVED));
    it.case.needs_remediation = false;
    it.case.node = None;
    *it.power() = unproved_power(power);
    it
}

#[test]
fn a_host_is_recorded_and_said_to_be_on_only_when_it_is() {
    for (power, reason, is_on) in [
        (CurrentPower::On, RemediationReason::WaitingForNode, true),
        (CurrentPower::Off, RemediationReason::PoweringOn, false),
        (CurrentPower::Unknown, RemediationReason::PoweringOn, false),
    ] {
        let it = returning(power);
        let around = ConcurrentRemediations::default();
        let ctx = it.context(&around);
        let decision = recovery::decide_recovery(&ctx);
        assert_eq!(decision.cause.reason, reason, "{power:?}");
        let decision = recovery::record_recovery_steps(&ctx, decision);
        let record = decision.actions.iter().find_map(|it| it.host_record());
        let on = record.and_then(|it| it.time_of_step(RemediationStep::PoweredOn));
        assert_eq!(on.is_some(), is_on, "{power:?}");
    }
}

#[test]
fn where_no_boot_id_was_known_only_another_node_is_back() {
    let mut record = record(&KEY_REMOVED);
    for (uid, is_back) in [
        (Some("uid-n-a"), false),
        (Some("uid-old"), true),
        (None, true),
    ] {
        record.node_uid = uid.map(str::to_owned);
        assert_eq!(recovery::is_back(Some(&node("a")), &record), is_back);
    }
}

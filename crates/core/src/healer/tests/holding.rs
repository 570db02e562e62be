//! §10.1: the healer beside holds and power cycles.

use dogwatch_api::node_reboot::RebootMethod;

use super::super::*;
use super::escalate::policy;
use super::kit::*;
use crate::policy::ClusterPolicies;
use crate::reboot::{
    AbortRequest, NodeRebootRef, ParsedAnnotation, RebootOutcome, RebootPhase, RebootReason,
    RebootRequest,
};

/// A node in this phase of what NodeReboot `u1` asks for with this method.
fn watch(phase: RebootPhase, method: RebootMethod) -> Watch {
    let mut node = node("n1", phase);
    let asked = NodeRebootRef {
        name: "nr".into(),
        uid: "u1".into(),
    };
    if let ParsedAnnotation::Is(record) = &mut node.record {
        record.trigger.method = method;
        record.trigger.node_reboots = vec![asked.clone()];
    }
    node.request = ParsedAnnotation::Is(RebootRequest {
        method,
        node_reboots: vec![asked],
        ..RebootRequest::default()
    });
    Watch::of(node, held(0, "n1", &["coordinator/a"]))
}

fn withdraw(watch: &mut Watch, second: u64) {
    watch.change(second, |node| node.request = ParsedAnnotation::Absent);
}

#[test]
fn a_held_node_keeps_cordon_and_lock_for_ever_whatever_its_machine_does() {
    let mut watch = watch(RebootPhase::Holding, RebootMethod::Hold);
    for second in (0..200 * 60 * MINUTE).step_by(36_000) {
        watch.leaves_alone(second);
        let boot = format!("boot-{}", 2 + second / 36_000);
        watch.posts(second + 10, &boot);
        watch.change(second + 20, |node| node.ready = false);
        watch.leaves_alone(second + 35_000);
    }
    let decision = watch.of_node(800_000).unwrap();
    assert_eq!(decision.cause.reason, RebootReason::Held);
}

#[test]
fn a_hold_that_was_withdrawn_is_ended_when_its_coordinator_gave_no_sign() {
    let mut watch = watch(RebootPhase::Holding, RebootMethod::Hold);
    withdraw(&mut watch, 10);
    watch.leaves_alone(899);
    let ends = watch.patches(900);
    assert_eq!(written(&ends).phase, RebootPhase::Returning);
    watch.posts(910, "boot-1");
    let uncordons = watch.patches(940);
    assert_eq!(uncordons.unschedulable, Some(false));
    let taken = now(941).mono;
    let shut = Vec::new();
    let gates = ObservedReturnGates { shut, taken };
    watch.seen.observations.gates.insert(name("n1"), gates);
    watch.released(942);
    let last = watch.patches(943).last.unwrap();
    assert_eq!(last.outcome, RebootOutcome::Released);
}

#[test]
fn a_held_machine_that_is_not_ready_is_not_put_back_into_service() {
    let mut watch = watch(RebootPhase::Holding, RebootMethod::Hold);
    watch.change(5, |node| node.ready = false);
    withdraw(&mut watch, 10);
    assert_eq!(written(&watch.patches(910)).phase, RebootPhase::Returning);
    watch.leaves_alone(90_000);
    assert!(watch.node().unschedulable);
}

#[test]
fn an_abort_of_a_hold_is_served() {
    let mut watch = watch(RebootPhase::Holding, RebootMethod::Hold);
    let abort = AbortRequest {
        reason: String::new(),
        requester: "me".into(),
    };
    watch.change(10, |node| node.abort = ParsedAnnotation::Is(abort));
    watch.leaves_alone(39);
    assert_eq!(watch.patches(40).unschedulable, Some(false));
    watch.released(41);
    assert_eq!(
        watch.patches(42).last.unwrap().outcome,
        RebootOutcome::Released
    );
}

#[test]
fn a_power_cycle_is_never_handed_over_a_second_time() {
    let mut watch = watch(RebootPhase::Rebooting, RebootMethod::PowerCycle);
    let escalates = policy(|policy| policy.reboot.escalate = true);
    watch.seen.policies = ClusterPolicies::Known(vec![escalates]);
    watch.leaves_alone(30 * MINUTE - 1);
    let decision = watch.of_node(30 * MINUTE).unwrap();
    assert_eq!(decision.cause.reason, RebootReason::RebootFailed);
    assert!(decision.actions.is_empty() && decision.observe.is_empty());
}

#[test]
fn a_boot_before_a_power_cycle_began_is_not_its_end() {
    let mut watch = watch(RebootPhase::Draining, RebootMethod::PowerCycle);
    watch.posts(10, "boot-2");
    let undone = watch.patches(60 * MINUTE);
    assert_eq!(written(&undone).phase, RebootPhase::Waiting);
}

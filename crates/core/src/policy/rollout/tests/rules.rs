//! Whether a node may begin, and the limit.

use super::kit::{RolloutWorld, build_shape};
use crate::limit::UnavailabilityLimit;
use crate::policy::rollout::{
    CanaryNode, RolloutCandidate, RolloutHalt, RolloutPhase, RolloutShape, check_rollout,
};
use crate::policy::{ClusterPolicies, MinInterval, RebootAllowance};
use crate::reboot::RebootReason::{
    self, AwaitingCanary, RolloutHalted, RolloutNotStarted, RolloutSoaking,
};

fn world_in(phase: RolloutPhase) -> RolloutWorld {
    let mut world = RolloutWorld::new(build_shape(1, &[2], Some(1)), 2);
    let mut state = world.policy.rollout.shape.as_ref().unwrap().first_state();
    state.phase = phase;
    state.canaries = vec![CanaryNode {
        node: "n1".into(),
        uid: "uid-n1".into(),
        boot_id: "old-boot".into(),
        done: phase != RolloutPhase::Canary,
    }];
    world.policy.rollout.state = Some(state);
    world
}

#[test]
fn each_phase_lets_begin_whom_it_names_and_nobody_else() {
    for (phase, first, second) in [
        (RolloutPhase::Canary, None, Some(AwaitingCanary)),
        (
            RolloutPhase::Soaking,
            Some(RolloutSoaking),
            Some(RolloutSoaking),
        ),
        (RolloutPhase::Ramping, None, None),
    ] {
        let world = world_in(phase);
        assert_eq!(
            (world.begin_refusal(1), world.begin_refusal(2)),
            (first, second),
            "{phase:?}"
        );
    }
}

#[test]
fn a_canary_is_the_node_that_was_named_and_not_a_later_one_of_its_name() {
    let mut world = world_in(RolloutPhase::Canary);
    world.node_mut(1).uid = "another".into();
    assert_eq!(world.begin_refusal(1), Some(AwaitingCanary));
    let mut world = world_in(RolloutPhase::Canary);
    world.want_reboot(1);
    assert_eq!(world.begin_refusal(1), None);
    world.come_back(1);
    world.want_reboot(1);
    assert_eq!(
        world.begin_refusal(1),
        Some(AwaitingCanary),
        "it was one already"
    );
}

#[test]
fn a_policy_without_rollout_refuses_nothing_and_limits_nothing() {
    let mut world = world_in(RolloutPhase::Canary);
    world.policy.rollout.shape = None;
    assert_eq!(world.begin_refusal(2), None);
    assert_eq!(world.policy.rollout.limit_now(), None);
}

#[test]
fn a_state_of_another_shape_lets_nothing_begin_and_neither_does_none() {
    let mut world = world_in(RolloutPhase::Ramping);
    let shapes = [
        build_shape(2, &[2], Some(1)),
        build_shape(1, &[2, 4], Some(1)),
        build_shape(1, &[2], None),
        RolloutShape::default(),
    ];
    for other in shapes {
        world.policy.rollout.shape = Some(other.clone());
        assert_eq!(world.begin_refusal(1), Some(RolloutNotStarted), "{other}");
        assert_eq!(world.policy.rollout.limit_now(), None);
    }
    world.policy.rollout.shape = Some(build_shape(1, &[2], Some(1)));
    world.policy.rollout.state = None;
    assert_eq!(world.begin_refusal(1), Some(RolloutNotStarted));
}

#[test]
fn a_halt_refuses_canaries_holds_and_hosts_whatever_the_shape_is_now() {
    let mut world = world_in(RolloutPhase::Canary);
    let since = world.current_time();
    let state = world.policy.rollout.state.as_mut().unwrap();
    state.halted = Some(RolloutHalt {
        since,
        reason: "1 failure: n7 RebootFailed".into(),
    });
    for other in [
        Some(build_shape(1, &[2], Some(1))),
        Some(build_shape(9, &[], None)),
        None,
    ] {
        world.policy.rollout.shape = other;
        assert_eq!(world.begin_refusal(1), Some(RolloutHalted));
        for candidate in [RolloutCandidate::Hold, RolloutCandidate::LockHost] {
            let refusal = check_rollout(&world.policy, candidate).unwrap();
            assert_eq!(refusal.reason, RolloutHalted);
            assert!(refusal.message.contains("n7 RebootFailed"), "{refusal:?}");
            assert!(refusal.message.contains("dogwatch resume p"), "{refusal:?}");
        }
    }
}

#[test]
fn a_hold_waits_for_no_canary_and_a_host_of_the_lock_api_for_all_of_them() {
    let refusal = |phase, candidate| {
        let world = world_in(phase);
        check_rollout(&world.policy, candidate).map(|refusal| refusal.reason)
    };
    for (phase, expected) in [
        (RolloutPhase::Canary, Some(AwaitingCanary)),
        (RolloutPhase::Soaking, Some(RolloutSoaking)),
        (RolloutPhase::Ramping, None),
    ] {
        assert_eq!(refusal(phase, RolloutCandidate::Hold), None);
        assert_eq!(refusal(phase, RolloutCandidate::LockHost), expected);
    }
}

#[test]
fn the_ramp_is_a_smaller_max_unavailable_and_never_a_larger_one() {
    let mut world = world_in(RolloutPhase::Ramping);
    for (max, expected) in [
        (UnavailabilityLimit::Count(1), 1),
        (UnavailabilityLimit::Count(9), 2),
        (UnavailabilityLimit::Percent(50), 2),
        (UnavailabilityLimit::Percent(1), 1),
    ] {
        world.policy.max_unavailable = Some(max);
        let limit = world.policy.limit_nodes_over(UnavailabilityLimit::Count(1));
        assert_eq!(limit.allowed_nodes(100), expected, "{max}");
    }
    world.policy.max_unavailable = Some(UnavailabilityLimit::Count(9));
    world.policy.rollout.state.as_mut().unwrap().step = 1;
    let limit = world.policy.limit_nodes_over(UnavailabilityLimit::Count(1));
    assert_eq!(limit, UnavailabilityLimit::Count(9), "the ramp is over");
}

fn ask_allowance(world: &RolloutWorld, begins: bool) -> Option<RebootReason> {
    let policies = ClusterPolicies::Known(vec![world.policy.clone()]);
    let (policy, now) = (Some(&world.policy), world.current_time());
    let answer = if begins {
        let candidate = world.nodes[1].rollout_candidate();
        let interval = MinInterval::default();
        let drain = std::time::Duration::ZERO;
        crate::policy::may_reboot_begin(&policies, policy, drain, interval, candidate, now)
    } else {
        crate::policy::may_reboot_continue(&policies, policy, now)
    };
    match answer {
        RebootAllowance::Yes { .. } => None,
        RebootAllowance::No { reason, until, .. } => {
            assert_eq!(until, None, "no coordinator compares it with its clock");
            Some(reason)
        }
    }
}

#[test]
fn only_a_halt_undoes_what_has_begun() {
    for phase in [RolloutPhase::Canary, RolloutPhase::Soaking] {
        let mut world = world_in(phase);
        assert!(ask_allowance(&world, true).is_some());
        assert_eq!(ask_allowance(&world, false), None);
        let since = world.current_time();
        world.policy.rollout.state.as_mut().unwrap().halted = Some(RolloutHalt {
            since,
            reason: String::new(),
        });
        assert_eq!(ask_allowance(&world, true), Some(RolloutHalted));
        assert_eq!(ask_allowance(&world, false), Some(RolloutHalted));
    }
}

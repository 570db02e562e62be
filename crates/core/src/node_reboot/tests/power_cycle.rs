//! A node whose host is switched off and on. Source: specification §10.1.

use std::time::Duration;

use dogwatch_api::node_reboot::RebootMethod;

use super::super::*;
use super::host_kit::HostKit;
use super::kit::*;
use super::obstacles::OBSTACLES;
use crate::reboot::{AbortRequest, ParsedAnnotation, RebootOutcome};
use crate::remediation::HostLinkProblem;

fn power_cycle() -> NodeRebootPlan {
    plan(RebootMethod::PowerCycle)
}

fn is_asked(world: &World) -> bool {
    world.node.as_ref().unwrap().request.get().is_some()
}

/// Drained, and the host is off.
fn world_with_host_off() -> World {
    let mut world = World::with_host("a", power_cycle());
    world.settle();
    world.drain_node();
    world.switch_host();
    world
}

#[test]
fn a_drained_node_is_switched_off_and_on_and_served_by_its_new_boot() {
    let mut world = World::with_host("a", power_cycle());
    world.settle();
    assert!(is_asked(&world));
    assert_eq!(world.power_steps("a"), (false, false, false));
    world.coordinate();
    world.coordinate();
    world.settle();
    assert!(world.host.keys().is_empty(), "it only drains");
    world.coordinate();
    world.settle();
    let uid = world.reboots["a"].uid.clone();
    let key = format!("reboot.metal3.io/node-reboot-{uid}");
    assert_eq!(
        world.host.keys(),
        [(key, r#"{"mode":"hard","attempt":1}"#.to_owned())]
    );
    assert_eq!(world.power_steps("a"), (true, false, false));
    world.switch_host();
    world.settle();
    assert_eq!(world.power_steps("a"), (true, true, true));
    assert!(world.host.keys().is_empty());
    assert_eq!(world.reason("a"), "SwitchingOn");
    world.switch_host();
    world.reboot_to_end();
    assert_eq!(world.succeeded("a"), "True Rebooted");
    assert_eq!(world.host.offs, 1);
    let power = world.reboots["a"].status.attempts[0].power.clone();
    assert_eq!(power.unwrap().host, "hosts/h1");
}

type HostChange = fn(&mut HostKit, HostLinkProblem);

#[test]
fn a_request_that_no_host_can_serve_is_refused_before_the_node_is_asked() {
    let contradiction = HostLinkProblem::Contradiction("two hosts".into());
    let cases: [(&str, HostChange); 6] = [
        ("NoHostKnown", |host, _| host.host = None),
        ("HostContradicted", |host, problem| {
            host.problem = Some(problem);
        }),
        ("PowerNotControlled", |host, _| host.is_controlled = false),
        ("HostAlwaysOn", |host, _| {
            host.change(|host| host.disable_power_off = true);
        }),
        ("OtherMachine", |host, _| {
            host.system_uuid = Some("4d2c7f0e-1111-4222-8333-000000000001".into());
        }),
        ("OtherMachine", |host, _| {
            host.is_identity_required = true;
            host.system_uuid = Some("no UUID".into());
        }),
    ];
    for (reason, break_it) in cases {
        for is_escalated in [false, true] {
            let mut plan = power_cycle();
            if is_escalated {
                plan = plan_with_success(&[RebootMethod::PowerCycle]);
            }
            let mut world = World::with_host("a", plan);
            world.change_node(|node| {
                node.system_uuid = Some("4d2c7f0e-1111-4222-8333-000000000002".into());
            });
            break_it(&mut world.host, contradiction.clone());
            world.settle();
            let is_about_links = world.host.host.is_none() || world.host.problem.is_some();
            if is_escalated && !is_about_links && reason != "PowerNotControlled" {
                assert!(is_asked(&world), "{reason}: its turn may never come");
                continue;
            }
            assert_eq!(world.succeeded("a"), format!("False {reason}"));
            assert!(!is_asked(&world), "{reason}");
        }
    }
}

#[test]
fn a_host_that_cannot_be_switched_now_is_waited_for_before_the_node_is_asked() {
    for (reason, begins, ends) in OBSTACLES {
        let mut world = World::with_host("a", power_cycle());
        begins(&mut world);
        world.settle();
        assert_eq!(world.reason("a"), *reason);
        assert_eq!(world.succeeded("a"), format!("Unknown {reason}"));
        assert!(!is_asked(&world), "{reason}");
        ends(&mut world);
        world.second += 600;
        world.settle();
        assert!(is_asked(&world), "{reason}");
    }
}

#[test]
fn a_wait_for_a_host_ends_at_the_deadline() {
    let mut hurried = power_cycle();
    hurried.deadline = Some(wall(600));
    let mut world = World::with_host("a", hurried);
    world.host.bmc_answers = false;
    world.settle();
    assert_eq!(world.reason("a"), "HostUnreachable");
    world.second = 600;
    world.settle();
    assert_eq!(world.succeeded("a"), "False DeadlinePassed");
}

#[test]
fn a_request_is_taken_back_while_its_host_cannot_be_switched_and_asked_again() {
    let mut world = World::with_host("a", power_cycle());
    world.settle();
    assert!(is_asked(&world));
    world.coordinate();
    world.host.bmc_answers = false;
    world.settle();
    assert!(!is_asked(&world), "no drain begins for a dead BMC");
    // The coordinator notes that its trigger is gone.
    world.coordinate();
    world.settle();
    assert_eq!(world.succeeded("a"), "Unknown HostUnreachable");
    assert_eq!(world.reboots["a"].status.attempts.len(), 1);
    world.host.bmc_answers = true;
    world.second += 20;
    world.settle();
    assert!(is_asked(&world));
    assert_eq!(world.succeeded("a"), "Unknown WaitingForLock");
    assert_eq!(world.reboots["a"].status.attempts.len(), 1);
    // What a new leader does not know yet is no reason to lose the place in the queue.
    world.host.is_known = false;
    world.settle();
    assert!(is_asked(&world));
}

#[test]
fn a_drained_node_waits_for_a_host_that_cannot_be_switched_and_nothing_fails() {
    for (reason, begins, ends) in OBSTACLES {
        let mut world = World::with_host("a", power_cycle());
        world.settle();
        world.coordinate();
        world.coordinate();
        world.settle();
        begins(&mut world);
        world.host.known_reads.clear();
        world.coordinate();
        world.settle();
        assert!(world.host.keys().is_empty(), "{reason}");
        assert_eq!(world.succeeded("a"), format!("Unknown {reason}"));
        ends(&mut world);
        world.second += 600;
        world.settle();
        assert_eq!(world.host.keys().len(), 1, "{reason}");
    }
}

#[test]
fn the_host_of_a_node_that_was_uncordoned_after_its_drain_stays_on() {
    let mut world = World::with_host("a", power_cycle());
    world.settle();
    world.coordinate();
    world.coordinate();
    world.coordinate();
    world.change_node(|node| node.unschedulable = false);
    world.settle();
    assert!(world.host.keys().is_empty());
    assert_eq!(world.reason("a"), "CordonRemoved");
}

#[test]
fn one_of_several_switches_the_host_and_each_is_served() {
    let mut world = World::with_host("a", plan(RebootMethod::Reboot));
    world.create("b", power_cycle());
    world.create("c", power_cycle());
    world.settle();
    world.drain_node();
    let uid = &world.reboots["b"].uid;
    let key = format!("reboot.metal3.io/node-reboot-{uid}");
    let names: Vec<String> = world
        .host
        .keys()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, [key], "the first that asked for a power cycle");
    for _ in 0..3 {
        world.switch_host();
        world.settle();
    }
    world.reboot_to_end();
    for name in ["a", "b", "c"] {
        assert_eq!(world.succeeded(name), "True Rebooted");
    }
    assert_eq!(world.host.offs, 1);
}

#[test]
fn deleted_while_the_host_is_off_it_finishes_first() {
    let mut world = world_with_host_off();
    world.delete("a");
    world.settle();
    assert!(world.reboots.contains_key("a"));
    assert!(world.host.keys().is_empty());
    world.switch_host();
    world.reboot_to_end();
    assert!(world.reboots.is_empty());
}

/// The patch with which this leader would put the key on the host.
fn key_patch(world: &World) -> HostKeyPatch {
    let mut later = world.clone();
    later.settle();
    let (key, value) = later.host.keys().pop().expect("the key is put");
    let host = world.host.host.as_ref().unwrap();
    HostKeyPatch {
        host: host.name.clone(),
        uid: host.uid.clone(),
        resource_version: host.resource_version.clone(),
        key,
        value: Some(value),
        removes_confirmation: false,
    }
}

#[test]
fn a_key_that_reaches_the_host_after_the_node_is_back_in_service_is_refused() {
    let mut world = World::with_host("a", power_cycle());
    world.settle();
    world.coordinate();
    world.coordinate();
    world.settle();
    world.coordinate();
    while world.power_steps("a") != (true, false, false) {
        assert_ne!(world.lead("a", 1, false), 0);
    }
    let late = key_patch(&world);
    assert!(world.host.keys().is_empty());
    world.finish(RebootOutcome::Aborted);
    world.settle();
    assert_eq!(world.power_steps("a"), (true, false, true));
    assert_eq!(world.succeeded("a"), "False Aborted");
    assert!(!world.host.patch(&late), "the host has another version now");
    assert!(world.host.keys().is_empty());
    assert!(!world.host.is_reboot_owed);
}

#[test]
fn a_new_boot_while_a_power_cycle_waits_does_not_serve_it() {
    for is_late in [false, true] {
        let mut hurried = power_cycle();
        hurried.deadline = is_late.then(|| wall(600));
        let mut world = World::with_host("a", hurried);
        world.settle();
        world.coordinate();
        world.settle();
        assert_eq!(world.succeeded("a"), "Unknown WaitingForLock");
        world.boot_node();
        let boot = world.node.as_ref().unwrap().boot_id.clone().unwrap();
        world.change_node(|node| {
            let mut record = node.record.get().unwrap().clone();
            record.boot_id = boot;
            node.record = ParsedAnnotation::Is(record);
        });
        if is_late {
            world.second = 600;
        } else {
            world.cancel("a");
        }
        world.settle();
        world.coordinate();
        world.settle();
        let reason = if is_late {
            "DeadlinePassed"
        } else {
            "Cancelled"
        };
        assert_eq!(world.succeeded("a"), format!("False {reason}"));
    }
}

type WorldChange = fn(&mut World);

/// What happens while the key is on the host.
const ENDS: &[(&str, WorldChange)] = &[
    ("the Node is deleted", |world| world.node = None),
    ("another Node has its name", |world| {
        let mut other = empty_node();
        other.uid = "uid-other".into();
        world.change_node(|node| *node = other);
    }),
    ("somebody aborts it", |world| {
        world.finish(RebootOutcome::Aborted);
    }),
    ("somebody asks to abort it", |world| {
        let abort = AbortRequest {
            reason: "enough".into(),
            requester: "ann".into(),
        };
        world.change_node(|node| node.abort = ParsedAnnotation::Is(abort));
    }),
    ("the node boots by itself", World::boot_node),
    ("the record is removed by hand", |world| {
        world.change_node(|node| node.record = ParsedAnnotation::Absent);
    }),
    ("30 minutes pass", |world| world.second += 1800),
];

#[test]
fn whatever_ends_the_key_comes_off_the_host() {
    for (what, happens) in ENDS {
        let mut world = World::with_host("a", power_cycle());
        world.settle();
        world.drain_node();
        assert_eq!(world.host.keys().len(), 1, "{what}");
        happens(&mut world);
        world.settle();
        assert!(world.host.keys().is_empty(), "{what}");
        // What is asked for again begins anew.
        let (is_begun, _, is_released) = world.power_steps("a");
        assert!(!is_begun || is_released, "{what}");
    }
}

#[test]
fn a_host_that_was_replaced_is_not_switched_and_said() {
    let mut world = World::with_host("a", power_cycle());
    world.settle();
    world.drain_node();
    world.host.change(|host| {
        host.uid = "uid-other".into();
        host.annotations.clear();
    });
    world.second += 20;
    world.settle();
    assert!(world.host.keys().is_empty());
    assert_eq!(world.succeeded("a"), "Unknown HostReplaced");
}

#[test]
fn a_bmc_that_hangs_while_the_host_is_to_be_off_is_said_and_given_up_in_time() {
    let mut world = World::with_host("a", power_cycle());
    world.settle();
    world.drain_node();
    world.host.bmc_answers = false;
    world.settle();
    assert_eq!(world.succeeded("a"), "Unknown HostUnreachable");
    assert_eq!(world.host.keys().len(), 1);
    world.second += 1800;
    world.settle();
    assert!(world.host.keys().is_empty());
    assert_eq!(world.succeeded("a"), "Unknown OffNotProved");
    world.boot_node();
    world.reboot_to_end();
    assert_eq!(world.succeeded("a"), "True Rebooted");
}

#[test]
fn a_key_that_vanished_is_put_back_but_not_in_the_last_minute_before_the_limit() {
    for (seconds, is_put_back) in [(1_700, true), (1_745, false)] {
        let mut world = World::with_host("a", power_cycle());
        world.settle();
        world.drain_node();
        world.settle();
        let (key, _) = world.host.keys().remove(0);
        world.host.change(|host| {
            host.annotations.remove(&key);
        });
        world.second += seconds;
        world.settle();
        assert_eq!(world.host.keys().len(), usize::from(is_put_back));
    }
}

#[test]
fn a_key_needs_a_read_of_the_node_after_that_of_the_host() {
    let mut world = World::with_host("a", power_cycle());
    world.settle();
    world.drain_node();
    world.settle();
    assert_eq!(world.power_steps("a"), (true, false, false));
    let (key, _) = world.host.keys().remove(0);
    world.host.change(|host| {
        host.annotations.remove(&key);
    });
    world.second += 100;
    world.host.read_host(&HostLookup::ByLinks, world.now());
    let seen = world.snapshot("a", false).unwrap();
    let with_node_read = |taken| NodeRebootSnapshot {
        read: Some(RebootNodeRead {
            node: Ok(seen.node.clone()),
            taken,
        }),
        ..seen.clone()
    };
    let now = world.now();
    let earlier = now.mono.saturating_sub(Duration::from_secs(1));
    let before = decide(&with_node_read(earlier), now);
    assert_eq!(before.observe, [NodeRebootObserve::Node], "{before:?}");
    let after = decide(&with_node_read(now.mono), now);
    assert!(after.observe.is_empty(), "{after:?}");
    let says = &after.cause.message;
    assert!(says.starts_with("puts its key on host"), "{says}");
}

#[test]
fn a_bmc_that_hangs_after_off_is_said_and_the_key_is_gone() {
    let mut world = world_with_host_off();
    world.settle();
    world.host.bmc_answers = false;
    world.settle();
    assert_eq!(world.succeeded("a"), "Unknown HostUnreachable");
    assert!(world.host.keys().is_empty());
}

#[test]
fn a_key_whose_nodereboot_is_gone_is_removed_after_a_fresh_read() {
    let mut world = world_with_host_off();
    world.reboots.clear();
    assert!(world.release_orphan_keys());
    assert!(world.host.keys().is_empty());
    assert!(!world.release_orphan_keys());
}

#[test]
fn a_key_is_left_to_a_nodereboot_whose_status_cannot_be_read() {
    let mut world = world_with_host_off();
    world.change("a", |own| {
        own.status_problem = Some("a newer version wrote it".into());
        own.status = NodeRebootState::default();
    });
    assert!(!world.release_orphan_keys());
    assert_eq!(world.host.keys().len(), 1);
}

#[test]
fn a_power_cycle_follows_a_reboot_that_did_not_help() {
    let mut world = World::with_host("a", plan_with_success(&[RebootMethod::PowerCycle]));
    world.settle();
    world.set_condition("GpuFault", "True");
    world.reboot_to_end();
    assert_eq!(world.host.offs, 0);
    world.second += 600;
    world.settle();
    world.drain_node();
    for _ in 0..3 {
        world.switch_host();
        world.settle();
    }
    world.set_condition("GpuFault", "False");
    world.reboot_to_end();
    assert_eq!(world.succeeded("a"), "True SuccessReached");
    assert_eq!(world.host.offs, 1);
    let methods = world.reboots["a"].status.attempts.iter();
    let methods: Vec<RebootMethod> = methods.map(|attempt| attempt.method).collect();
    assert_eq!(methods, [RebootMethod::Reboot, RebootMethod::PowerCycle]);
}

#[test]
fn hosts_are_read_only_for_a_power_cycle() {
    let mut world = World::with_host("a", plan(RebootMethod::Reboot));
    world.settle();
    world.reboot_to_end();
    assert_eq!(world.succeeded("a"), "True Rebooted");
    assert_eq!(world.host.reads, 0);
}

#[test]
fn killed_after_any_write_the_next_leader_goes_on_and_the_host_is_switched_once() {
    for died in 0..20 {
        let mut world = World::with_host("a", power_cycle());
        let mut left = died;
        for _ in 0..30 {
            left -= world.lead("a", left, false).min(left);
            if left == 0 {
                break;
            }
            world.coordinate();
            world.switch_host();
        }
        // The next leader has read nothing.
        world.host.known_reads.clear();
        for _ in 0..30 {
            world.settle();
            world.coordinate();
            world.switch_host();
        }
        assert_eq!(world.succeeded("a"), "True Rebooted", "{died}");
        assert_eq!(world.host.offs, 1, "{died}");
        assert!(world.host.keys().is_empty());
    }
}

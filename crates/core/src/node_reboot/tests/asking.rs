//! Who is asked, when, and together with whom.

use std::time::Duration;

use dogwatch_api::node_reboot::{NodeRebootPhase, RebootMethod};

use super::kit::*;
use crate::reboot::{ParsedAnnotation, RebootRequest};

fn persons_request() -> RebootRequest {
    RebootRequest {
        reason: "disk".into(),
        requester: "bob".into(),
        ..RebootRequest::default()
    }
}

fn request(world: &World) -> Option<RebootRequest> {
    world.node.as_ref().unwrap().request.get().cloned()
}

#[test]
fn finalizer_and_attempt_are_written_before_the_node_is_asked() {
    let mut world = World::with_reboot("a", plan(RebootMethod::Reboot));
    assert_eq!(world.lead("a", 1, false), 1);
    assert!(world.reboots["a"].has_finalizer);
    assert_eq!(world.reboots["a"].status.attempts, []);
    world.lead("a", 1, false);
    let attempt = world.reboots["a"].status.attempts[0].clone();
    assert_eq!(attempt.boot_id_before.as_deref(), Some("boot-0"));
    assert_eq!(request(&world), None);
    world.lead("a", 1, false);
    let asked = request(&world).unwrap();
    assert_eq!(asked.node_reboots[0].name, "a");
    assert_eq!(asked.requester, "ann (nodereboot/a)");
    world.settle();
    assert_eq!(world.reboots["a"].status.phase, NodeRebootPhase::Waiting);
    assert_eq!(world.succeeded("a"), "Unknown WaitingForLock");
}

#[test]
fn an_attempt_begins_in_the_boot_of_a_fresh_read() {
    let mut world = World::with_reboot("a", plan(RebootMethod::Reboot));
    world.lead("a", 1, false);
    world.before = (world.node.clone(), world.reboots.clone());
    // The node crashes, and the watch does not show it yet.
    world.change_node(|node| node.boot_id = Some(boot(7)));
    world.lead("a", 1, true);
    let attempt = &world.reboots["a"].status.attempts[0];
    assert_eq!(attempt.boot_id_before.as_deref(), Some("boot-7"));
    world.settle();
    assert_eq!(world.succeeded("a"), "Unknown WaitingForLock");
}

#[test]
fn a_request_waits_for_not_before_and_then_asks() {
    let mut later = plan(RebootMethod::Reboot);
    later.not_before = Some(wall(600));
    let mut world = World::with_reboot("a", later);
    world.settle();
    assert_eq!(world.succeeded("a"), "Unknown NotBefore");
    assert_eq!(request(&world), None);
    world.second = 600;
    world.settle();
    assert!(request(&world).is_some());
}

#[test]
fn what_has_not_begun_by_the_deadline_is_taken_back() {
    let mut hurried = plan(RebootMethod::Reboot);
    hurried.deadline = Some(wall(600));
    let mut world = World::with_reboot("a", hurried);
    world.settle();
    world.coordinate();
    world.second = 600;
    world.settle();
    assert_eq!(request(&world), None);
    assert_eq!(world.succeeded("a"), "False DeadlinePassed");
}

#[test]
fn what_has_begun_by_the_deadline_is_finished() {
    let mut hurried = plan(RebootMethod::Reboot);
    hurried.deadline = Some(wall(600));
    let mut world = World::with_reboot("a", hurried);
    world.settle();
    world.coordinate();
    world.coordinate();
    world.second = 600;
    world.settle();
    assert_eq!(world.succeeded("a"), "Unknown DrainingNode");
    world.reboot_to_end();
    assert_eq!(world.succeeded("a"), "True Rebooted");
}

#[test]
fn several_are_served_by_one_reboot_and_each_has_its_outcome() {
    let mut world = World::with_reboot("a", plan(RebootMethod::Reboot));
    world.create("b", plan(RebootMethod::Reboot));
    world.settle();
    world.coordinate();
    world.create("c", plan(RebootMethod::Reboot));
    world.settle();
    assert_eq!(request(&world).unwrap().node_reboots.len(), 3);
    world.reboot_to_end();
    for name in ["a", "b", "c"] {
        assert_eq!(world.succeeded(name), "True Rebooted", "{name}");
    }
    assert_eq!(world.boots, 1);
}

#[test]
fn one_made_while_another_runs_waits_for_the_next() {
    let mut world = World::with_reboot("a", plan(RebootMethod::Reboot));
    world.settle();
    world.coordinate();
    world.coordinate();
    world.create("b", plan(RebootMethod::Reboot));
    world.settle();
    assert_eq!(world.succeeded("b"), "Unknown RebootUnderWay");
    world.reboot_to_end();
    assert_eq!(world.succeeded("a"), "True Rebooted");
    world.reboot_to_end();
    assert_eq!(world.succeeded("b"), "True Rebooted");
    assert_eq!(world.boots, 2);
}

#[test]
fn a_hold_and_a_reboot_are_never_joined_and_the_older_goes_first() {
    let mut world = World::with_reboot("a", plan(RebootMethod::Hold));
    world.second = 1;
    world.create("b", plan(RebootMethod::Reboot));
    // The younger one is decided first.
    world.lead("b", 9, false);
    assert_eq!(world.succeeded("b"), "Unknown OlderFirst");
    world.settle();
    assert_eq!(request(&world).unwrap().method, RebootMethod::Hold);
    world.delete("a");
    world.settle();
    world.reboot_to_end();
    assert_eq!(world.succeeded("b"), "True Rebooted");
}

#[test]
fn a_persons_request_is_joined_and_stays_when_the_node_reboot_is_cancelled() {
    let mut world = World::with_reboot("a", plan(RebootMethod::Reboot));
    world.change_node(|node| node.request = ParsedAnnotation::Is(persons_request()));
    world.settle();
    let joined = request(&world).unwrap();
    assert_eq!(joined.requester, "bob");
    assert_eq!(joined.node_reboots.len(), 1);
    world.cancel("a");
    world.settle();
    assert_eq!(request(&world), Some(persons_request()));
    assert_eq!(world.succeeded("a"), "False Cancelled");
}

#[test]
fn a_persons_request_for_later_is_waited_for() {
    let mut world = World::with_reboot("a", plan(RebootMethod::Reboot));
    let later = RebootRequest {
        not_before: Some(wall(600)),
        ..persons_request()
    };
    world.change_node(|node| node.request = ParsedAnnotation::Is(later));
    world.settle();
    assert_eq!(world.succeeded("a"), "Unknown RequestForLater");
    world.second = 600;
    world.settle();
    assert_eq!(request(&world).unwrap().node_reboots.len(), 1);
}

#[test]
fn the_others_stay_when_the_one_that_wrote_the_request_is_cancelled() {
    let mut world = World::with_reboot("a", plan(RebootMethod::Reboot));
    world.settle();
    world.create("b", plan(RebootMethod::Reboot));
    world.settle();
    world.cancel("a");
    world.settle();
    let rest = request(&world).unwrap();
    assert_eq!(rest.requester, "ann (nodereboot/b)");
    assert_eq!(rest.node_reboots.len(), 1);
    world.cancel("b");
    world.settle();
    assert_eq!(request(&world), None);
}

#[test]
fn an_unreadable_annotation_is_left_alone_and_reported() {
    let mut world = World::with_reboot("a", plan(RebootMethod::Reboot));
    world.change_node(|node| node.request = ParsedAnnotation::Bad { why: "eof".into() });
    world.settle();
    assert_eq!(world.succeeded("a"), "Unknown AnnotationUnreadable");
}

#[test]
fn a_node_that_is_unknown_or_another_is_refused_by_a_fresh_read() {
    let mut world = World::with_reboot("a", plan(RebootMethod::Reboot));
    world.before = (None, world.reboots.clone());
    // The watch is behind: the read finds the Node.
    world.lead("a", 1, true);
    assert_eq!(world.succeeded("a"), "");
    world.node = None;
    world.settle();
    assert_eq!(world.succeeded("a"), "False NodeNotFound");

    let mut other = plan(RebootMethod::Reboot);
    other.node_uid = Some("uid-before".into());
    let mut world = World::with_reboot("a", other);
    world.settle();
    assert_eq!(world.succeeded("a"), "False OtherNodeUid");
}

#[test]
fn a_spec_that_cannot_be_served_is_refused() {
    let mut world = World::with_reboot("b", plan(RebootMethod::Reboot));
    world.change("b", |own| {
        own.plan = Err(vec!["spec.success.within: x".into()]);
    });
    world.settle();
    assert_eq!(world.succeeded("b"), "False InvalidSpec");
    assert_eq!(request(&world), None);
}

#[test]
fn it_is_deleted_when_its_time_after_the_end_is_over() {
    let mut short = plan(RebootMethod::Reboot);
    short.ttl = Duration::from_mins(1);
    let mut world = World::with_reboot("a", short);
    world.settle();
    world.reboot_to_end();
    assert!(!world.reboots["a"].has_finalizer);
    world.second = 59;
    world.settle();
    assert!(world.reboots.contains_key("a"));
    world.second = 60;
    world.settle();
    assert!(world.reboots.is_empty());
}

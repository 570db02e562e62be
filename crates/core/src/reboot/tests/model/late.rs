//! Unanswered writes that arrive after their writer has gone on, at the worst moments.

use super::world::{Fate, World};
use crate::reboot::{DrainTimeoutAction, RebootPhase};

fn world() -> World {
    let mut world = World::new(1, 1, false, DrainTimeoutAction::Abort);
    world.hosts[0].pods = 0;
    world.start(0);
    world
}

fn phase(world: &World) -> Option<RebootPhase> {
    world.server.node(0).record.get().map(|record| record.phase)
}

/// Works until its record is in this phase.
fn comes_to(world: &mut World, wanted: RebootPhase) {
    for _ in 0..20 {
        if phase(world) == Some(wanted) {
            return;
        }
        world.works(0);
    }
    panic!("it does not come to {wanted:?}: {}", world.words());
}

/// The trigger goes away, and comes back while the patch that undoes the reboot is not answered
/// yet.
fn goes_back_unanswered(world: &mut World) {
    world.hosts[0].file = None;
    world.deliver(0, 0, 0);
    world.act(0, 0, Fate::Delayed);
    assert!(world.late.iter().any(|(_, done)| !done), "it is on its way");
    world.touch(0);
}

fn all_arrives(world: &mut World) {
    while !world.late.is_empty() {
        world.arrive(0);
    }
}

#[test]
fn no_command_is_started_while_a_write_that_undoes_it_may_still_arrive() {
    let mut world = world();
    world.touch(0);
    comes_to(&mut world, RebootPhase::Rebooting);
    goes_back_unanswered(&mut world);
    for _ in 0..5 {
        world.works(0);
    }
    assert!(world.hosts[0].pending, "it comes to it all the same");
    all_arrives(&mut world);
    assert_eq!(phase(&world), Some(RebootPhase::Rebooting));
    world.comes_to_its_end();
}

#[test]
fn no_lock_is_asked_for_while_a_write_that_takes_the_record_away_may_still_arrive() {
    let mut world = world();
    world.touch(0);
    comes_to(&mut world, RebootPhase::Waiting);
    world.deliver(0, 0, 0);
    goes_back_unanswered(&mut world);
    let held = |world: &World| world.server.leases().iter().any(|it| it.holder.is_some());
    for _ in 0..5 {
        if !held(&world) {
            world.works(0);
        }
    }
    assert!(held(&world), "it comes to it all the same");
    all_arrives(&mut world);
    assert!(phase(&world).is_some(), "S6: a lock without a record");
    world.comes_to_its_end();
}

#[test]
fn no_drain_begins_on_a_lock_whose_release_may_still_arrive() {
    let mut world = World::new(2, 1, false, DrainTimeoutAction::Abort);
    for node in 0..2 {
        world.hosts[node].pods = 0;
        world.start(node);
    }
    world.touch(0);
    let is_held = |world: &World| world.server.leases()[0].holder.is_some();
    for _ in 0..20 {
        if !is_held(&world) {
            world.works(0);
        }
    }
    goes_back_unanswered(&mut world);
    assert!(is_held(&world), "its release is on its way");
    for _ in 0..3 {
        world.deliver(0, 0, 0);
        world.count(0, 0);
        world.deliver(0, 0, 0);
        world.act(0, 0, Fate::Delayed);
    }
    let release = world.late.iter().position(|(_, done)| !done);
    world.arrive(release.expect("no answer was lost for it"));
    assert!(!is_held(&world), "the release has arrived");
    world.touch(1);
    for _ in 0..20 {
        world.works(1);
        world.check_budget();
    }
    assert!(world.server.node(1).unschedulable, "it is the other's turn");
    all_arrives(&mut world);
    world.check_budget();
    world.comes_to_its_end();
}

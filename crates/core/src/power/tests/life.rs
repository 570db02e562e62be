//! A BMC says "off" although the machine's Node lives. Source: specification §3.2, "The plain
//! rule".

use std::time::Duration;

use super::world::*;
use crate::condition::ConditionStatus;
use crate::power::*;

/// A running host with a Node, whose BMC says off from now on.
fn lied_about(annotations: &[(&str, &str)], online: bool) -> World {
    let mut world = World::new(annotations, online, true);
    world.carries_node(10_000);
    if online {
        world.run(120);
    }
    world.bmcs[0].default_says = Says::Lie(PowerReading::Off);
    world
}

#[test]
fn a_host_whose_node_lives_gets_no_command_however_long_its_bmc_says_off() {
    for (online, seconds) in [
        (true, 40),
        (true, 120),
        (true, 3_600),
        (false, 120),
        (false, 3_600),
    ] {
        let mut world = lied_about(&[], online);
        world.run(seconds);
        assert_eq!(world.kinds(), [], "{online} {seconds} s");
        let never_off = |(_, status): &(u64, HostStatus)| status.powered_on != Some(false);
        assert!(world.writes.iter().all(never_off), "{online} {seconds} s");
        if online {
            world.bmcs[0].default_says = Says::Truth;
            world.run(120);
            assert_eq!(
                (world.kinds(), world.because()),
                (vec![], PowerReason::AsWanted)
            );
        }
    }
}

#[test]
fn a_contradiction_is_said_in_conditions_and_events_and_nothing_is_proved() {
    let mut world = lied_about(&[], true);
    world.run(300);
    assert_eq!(world.because(), PowerReason::PowerContradicted);
    let wanted = world.condition("PowerAsWanted");
    assert_eq!(
        (wanted.status, &*wanted.reason),
        (
            ConditionStatus::Unknown,
            PowerReason::PowerContradicted.as_str()
        )
    );
    assert!(wanted.message.contains("node n1"), "{}", wanted.message);
    let ready = world.condition("PowerControlReady");
    assert_eq!(
        (ready.status, &*ready.reason),
        (
            ConditionStatus::False,
            PowerReason::PowerContradicted.as_str()
        )
    );
    assert!(world.said(PowerReason::PowerContradicted));
    assert_eq!(world.power().state, Some(PowerState::Unknown));
    let (seen, config, at) = (&world.seen, &world.config, world.now());
    assert_eq!(current_power(seen, config, at), CurrentPower::Unknown);
    assert_eq!(find_off_proof(seen, config, at), None);
}

#[test]
fn a_host_that_is_really_off_is_powered_on_once_its_node_was_silent() {
    let mut world = World::new(&[], true, true);
    world.carries_node(10_000);
    world.run(120);
    world.set_power(false);
    let off = world.time;
    world.until("on", World::is_on);
    let took = world.time - off;
    assert!((30_000..100_000).contains(&took), "{took} ms");
    world.until_on();
    assert_eq!(world.kinds(), [PowerCommand::On]);
    assert!(!world.said(PowerReason::PowerContradicted));
}

#[test]
fn a_contradiction_ends_when_the_node_falls_silent() {
    let mut world = lied_about(&[], true);
    world.run(200);
    assert_eq!(world.because(), PowerReason::PowerContradicted);
    world.set_power(false);
    world.bmcs[0].default_says = Says::Truth;
    world.until_on();
    assert_eq!(world.kinds(), [PowerCommand::On]);
}

#[test]
fn a_power_on_is_not_sent_again_to_a_machine_whose_node_lives() {
    // With a settle time shorter than a kubelet's interval, the power-on is sent before the Node
    // renews.
    let mut world = World::new(&[(BASE, HARD)], true, true);
    world.carries_node(10_000);
    world.until("on sent", |world| world.kinds().contains(&PowerCommand::On));
    world.bmcs[0].default_says = Says::Lie(PowerReading::Off);
    world.run(1_200);
    let ons = world
        .kinds()
        .into_iter()
        .filter(|kind| *kind == PowerCommand::On);
    assert!(ons.count() <= 3, "{:?}", world.kinds());
    assert!(world.is_on());
    assert_eq!(world.because(), PowerReason::PowerContradicted);
    assert_eq!(world.power().command, None);
}

#[test]
fn a_held_host_whose_node_lives_is_proved_off_no_more() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.carries_node(10_000);
    world.until_confirmed();
    world.bmcs[0].default_says = Says::Lie(PowerReading::Off);
    world.set_power(true);
    world.until("contradicted", |world| {
        world.because() == PowerReason::PowerContradicted
    });
    world.run(300);
    assert_eq!(world.status().powered_on, Some(true));
    assert_eq!(world.power().off_confirmed_at, None);
    assert_eq!(
        find_off_proof(&world.seen, &world.config, world.now()),
        None
    );
    assert_eq!(world.kinds(), [PowerCommand::Off], "nothing is sent");
    world.set_power(false);
    world.until("proved", |world| {
        find_off_proof(&world.seen, &world.config, world.now()).is_some()
    });
}

#[test]
fn a_lease_is_read_only_of_a_host_that_says_off() {
    let mut world = World::new(&[], true, true);
    world.carries_node(10_000);
    world.run(3_600);
    assert_eq!(world.life_looks, 0);
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.carries_node(10_000);
    world.until_confirmed();
    assert_eq!(world.life_looks, 0, "a proof waits for no Lease");
    world.run(600);
    assert!(world.life_looks <= 16, "{}", world.life_looks);
}

#[test]
fn no_power_on_is_even_intended_for_a_host_whose_node_lives() {
    let mut world = lied_about(&[], true);
    world.run(600);
    assert!(!world.said(PowerReason::FoundOff), "{:?}", world.events);
    let mut written = world.writes.iter().map(|(_, status)| &status.power.command);
    assert!(written.all(Option::is_none));
}

#[test]
fn nothing_is_sent_before_it_is_known_whether_the_node_lives() {
    // Off is read twice before a live kubelet has to renew its Lease.
    let mut world = World::new(&[], true, true);
    world.config.settle = Duration::from_secs(1);
    world.carries_node(10_000);
    world.run(120);
    world.bmcs[0].default_says = Says::Lie(PowerReading::Off);
    world.run(600);
    assert_eq!(world.kinds(), []);
    assert_eq!(world.because(), PowerReason::PowerContradicted);
}

#[test]
fn a_host_that_is_to_be_off_is_not_as_wanted_while_its_node_lives() {
    let mut world = lied_about(&[], false);
    for _ in 0..600 {
        world.run(1);
        assert_ne!(world.because(), PowerReason::AsWanted, "{}", world.time);
    }
    assert_eq!(world.because(), PowerReason::PowerContradicted);
}

#[test]
fn an_off_that_was_answered_is_not_confirmed_while_the_node_lives() {
    let mut world = lied_about(&[], true);
    world.run(200);
    world.bmcs[0].default_takes = Takes::Ignores;
    world.annotate(KEY, HARD);
    world.run(300);
    assert_eq!(world.kinds(), [PowerCommand::Off]);
    let mut written = world.writes.iter();
    assert!(written.all(|(_, status)| status.power.off_confirmed_at.is_none()));
    assert_eq!(world.because(), PowerReason::PowerContradicted);
    world.set_power(false);
    world.until_confirmed();
}

#[test]
fn a_lease_that_was_renewed_before_the_host_went_off_contradicts_nothing() {
    let mut world = lied_about(&[], true);
    world.run(200);
    world.bmcs[0].default_says = Says::Truth;
    world.run(120);
    assert_eq!(world.because(), PowerReason::AsWanted);
    world.set_power(false);
    world.until("powered on", |world| {
        assert_ne!(world.because(), PowerReason::PowerContradicted);
        world.is_on()
    });
}

#[test]
fn a_lease_that_came_was_not_renewed() {
    let mut world = World::new(&[], false, false);
    world.run(60);
    assert_eq!(world.because(), PowerReason::AsWanted);
    world.node = Some(world.time);
    world.run(300);
    assert!(world.life_looks > 2);
    assert!(!world.said(PowerReason::PowerContradicted));
}

#[test]
fn a_proof_ends_with_the_nodes_first_sign_of_life_whatever_was_decided() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.until("proved", |world| {
        find_off_proof(&world.seen, &world.config, world.now()).is_some()
    });
    let renewed = |second: i64| {
        let lease = KubeletLease {
            renewed: jiff::Timestamp::from_second(second).ok(),
            lasts: None,
        };
        KubeletLeases {
            leases: [(crate::name::NodeName::new("n1").unwrap(), lease)].into(),
            unread: None,
        }
    };
    let at = world.mono();
    world.seen.memory.record_kubelet_leases(at, renewed(1));
    assert!(find_off_proof(&world.seen, &world.config, world.now()).is_some());
    world.seen.memory.record_kubelet_leases(at, renewed(2));
    assert_eq!(
        find_off_proof(&world.seen, &world.config, world.now()),
        None
    );
}

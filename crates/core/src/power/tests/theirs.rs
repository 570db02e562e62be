//! Hosts that metal3's own power controller manages. Source: specification §4.3; `facts/fencing.md`
//! §2.2, §3.

use std::time::Duration;

use super::world::*;
use crate::power::*;

const OTHER: &str = "reboot.metal3.io/other";

fn proved(world: &World) -> Option<PowerOffProof> {
    find_off_proof(&world.seen, &world.config, world.now())
}

fn is_for(world: &World, name: &str) -> bool {
    let all = reboot_annotations(&world.seen.host);
    let request = all.iter().find(|request| request.name == name).unwrap();
    proved(world).is_some_and(|proof| proof.covers_annotation(request))
}

/// A provisioned host of a live baremetal-operator.
fn theirs() -> World {
    let mut world = World::new(&[], true, true);
    world.seen.owner = HostOwner::Metal3 {
        leader: "bmo-1".into(),
    };
    let status = &mut world.seen.host_mut().status;
    status.provisioning = Some("provisioned".into());
    status.operational = Some("OK".into());
    status.powered_on = Some(true);
    world.run(10);
    world
}

/// metal3's controller obeys the key, and records that.
fn powers_off(world: &mut World) {
    world.set_power(false);
    world.seen.host_mut().status.powered_on = Some(false);
    world.version += 1;
}

#[test]
fn their_off_is_proved_by_our_own_readings_a_settle_time_after_our_key_was_seen() {
    let mut world = theirs();
    world.annotate(KEY, HARD);
    world.tick();
    let seen = world.mono();
    world.run(2);
    powers_off(&mut world);
    world.until("proved", |world| proved(world).is_some());
    let proof = proved(&world).unwrap();
    assert_eq!(*proof.source(), ProofSource::Metal3Controller);
    let both = proof.off_readings().unwrap();
    let [first, second] = both.both;
    assert!(first.asked >= seen + world.config.settle);
    assert!(second.asked >= first.answered + world.config.confirm);
    assert_eq!((both.level, proof.valid_since()), (0, first.asked));
    assert!(is_for(&world, KEY));
    let took = world.mono().saturating_sub(seen);
    let at_most = world.config.settle + world.config.confirm * 2 + Duration::from_secs(1);
    assert!(took <= at_most, "not one reading a poll: {took:?}");
    assert!(
        world.writes.is_empty() && world.sent.is_empty(),
        "only read"
    );
    // The proof lasts as long as the host is read.
    world.run(600);
    assert!(is_for(&world, KEY));
    world.set_power(true);
    world.run(61);
    assert_eq!(proved(&world), None);
}

#[test]
fn two_readings_closer_than_the_confirm_interval_or_too_old_prove_nothing() {
    let mut world = theirs();
    world.annotate(KEY, HARD);
    powers_off(&mut world);
    world.until("proved", |world| proved(world).is_some());
    world.run(200);
    for (first, second, is_proved) in [(8, 2, true), (6, 2, false), (120, 2, true), (121, 2, false)]
    {
        world.seen.memory.readings.clear();
        for ago in [first, second] {
            let at = world.mono().saturating_sub(Duration::from_secs(ago));
            world.seen.memory.record_reading(LevelReading {
                level: 0,
                asked: at,
                answered: at,
                result: Ok(PowerReading::Off),
                system_uuid: None,
            });
        }
        assert_eq!(proved(&world).is_some(), is_proved, "{first} {second}");
    }
}

#[test]
fn a_longer_confirm_interval_is_kept_and_reached() {
    let mut world = theirs();
    world.config.confirm = Duration::from_secs(20);
    world.annotate(KEY, HARD);
    world.run(2);
    powers_off(&mut world);
    world.until("proved", |world| proved(world).is_some());
    let [first, second] = proved(&world).unwrap().off_readings().unwrap().both;
    assert!(second.asked >= first.answered + world.config.confirm);
}

#[test]
fn nothing_less_proves_their_off() {
    type Change = fn(&mut World);
    let rows: [(&str, Change); 13] = [
        ("it is on", |world| world.set_power(true)),
        ("they say on", |world| {
            world.seen.host_mut().status.powered_on = Some(true);
        }),
        ("they say nothing", |world| {
            world.seen.host_mut().status.powered_on = None;
        }),
        ("no power-off", |world| {
            world.seen.host_mut().disable_power_off = true;
        }),
        ("in error", |world| {
            world.seen.host_mut().status.operational = Some("error".into());
        }),
        ("delayed", |world| {
            world.seen.host_mut().status.operational = Some("delayed".into());
        }),
        ("detached by status", |world| {
            world.seen.host_mut().status.operational = Some("detached".into());
        }),
        ("detached", |world| {
            world.annotate("baremetalhost.metal3.io/detached", "");
        }),
        ("not provisioned", |world| {
            world.annotate(KEY, r#"{"mode":"hard","force":true}"#);
            world.seen.host_mut().status.provisioning = Some("available".into());
        }),
        ("no state", |world| {
            world.seen.host_mut().status.provisioning = None;
        }),
        ("only the annotation that is set and forgotten", |world| {
            world.remove(KEY);
            world.annotate(BASE, HARD);
        }),
        ("shared", |world| {
            world.seen.shared_with = vec![HostName::new("hosts", "h2")];
        }),
        ("another machine", |world| {
            world.seen.same_system = vec![HostName::new("hosts", "h2")];
        }),
    ];
    for (name, change) in rows {
        let mut world = theirs();
        world.annotate(KEY, HARD);
        powers_off(&mut world);
        change(&mut world);
        world.run(300);
        assert_eq!(proved(&world), None, "{name}");
        assert!(world.writes.is_empty() && world.sent.is_empty(), "{name}");
    }
}

#[test]
fn a_power_on_of_theirs_that_was_on_its_way_is_not_missed() {
    let mut world = theirs();
    powers_off(&mut world);
    world.run(100);
    // metal3's controller sent a power-on just before it saw the key; its status lags behind.
    world.annotate(KEY, HARD);
    for _ in 0..(29 * 20) {
        world.tick();
        assert_eq!(proved(&world), None);
    }
    world.set_power(true);
    world.run(60);
    assert_eq!(proved(&world), None);
}

#[test]
fn a_key_is_proved_only_when_it_was_seen_so_long_by_the_one_who_leads() {
    let mut world = theirs();
    world.annotate(KEY, HARD);
    powers_off(&mut world);
    world.until("proved", |world| proved(world).is_some());
    world.annotate(OTHER, HARD);
    world.run(29);
    assert!(is_for(&world, KEY) && !is_for(&world, OTHER));
    world.until("proved for both", |world| is_for(world, OTHER));
    world.crash(1_000);
    for _ in 0..(30 * 20) {
        world.tick();
        assert_eq!(
            proved(&world),
            None,
            "another process has not seen it so long"
        );
    }
    world.until("proved", |world| is_for(world, KEY) && is_for(world, OTHER));
}

#[test]
fn they_are_read_once_a_poll_unless_a_key_waits_and_only_their_bmc() {
    let mut world = theirs();
    world.add_level();
    world.annotate(BASE, "");
    world.run(300);
    let apart = |world: &World| {
        let readings = &world.seen.memory.readings;
        assert!(readings.iter().all(|read| read.level == 0));
        readings[0].asked.saturating_sub(readings[1].answered)
    };
    assert!(
        apart(&world) >= Duration::from_secs(45),
        "{:?}",
        apart(&world)
    );
    world.annotate(KEY, HARD);
    world.run(20);
    assert!(
        apart(&world) <= Duration::from_secs(6),
        "{:?}",
        apart(&world)
    );
    powers_off(&mut world);
    world.run(400);
    assert!(apart(&world) >= Duration::from_secs(45), "proved");
    // The BMC's info is kept in memory, and nothing is written.
    assert!(world.seen.memory.bmc_infos.get(0).is_some());
    assert!(world.seen.memory.bmc_infos.get(1).is_none());
    assert!(world.writes.is_empty());
}

#[test]
fn a_host_that_was_ours_a_moment_ago_waits_for_the_end_of_our_own_commands() {
    let mut world = World::new(&[], true, true);
    world.seen.host_mut().status.provisioning = Some("provisioned".into());
    world.run(5);
    world.bmcs[0].default_takes = Takes::Silent {
        after: 10_000,
        runs: None,
    };
    world.annotate(KEY, HARD);
    world.run(40);
    world.seen.owner = HostOwner::Metal3 {
        leader: "bmo-1".into(),
    };
    world.seen.memory.unsettled_since = Some(world.mono());
    let loose = world.mono();
    powers_off(&mut world);
    world.until("proved", |world| proved(world).is_some());
    let first = proved(&world).unwrap().valid_since();
    assert!(first >= loose + world.config.settle);
}

#[test]
fn the_off_of_another_machine_at_the_address_proves_nothing_of_theirs() {
    let (one, other) = (
        "4c4c4544-0000-1111-8000-000000000001",
        "4c4c4544-0000-2222-8000-000000000002",
    );
    let mut world = theirs();
    world.readings_have_uuid = true;
    world.about.system_uuid = Some(one.into());
    world.run(70);
    world.annotate(KEY, HARD);
    world.run(10);
    world.about.system_uuid = Some(other.into());
    world.until("the other machine is noticed", |world| {
        world.said(PowerReason::OtherMachineAnswers)
    });
    // It reports no UUID while it is off.
    world.about.system_uuid = None;
    powers_off(&mut world);
    world.run(300);
    assert_eq!(proved(&world), None);
    // A key that was set afterwards is for the machine that answers now.
    world.remove(KEY);
    world.run(1);
    world.annotate(KEY, HARD);
    world.until("proved", |world| proved(world).is_some());
}

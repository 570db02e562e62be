//! The machine that a proof belongs to. Source: specification §4.1.

use std::slice::from_ref;
use std::sync::Arc;

use super::world::*;
use crate::condition::ConditionStatus;
use crate::power::*;

pub(super) const ONE: &str = "4c4c4544-0047-4b10-8031-b5c04f4e4833";
pub(super) const OTHER: &str = "4c4c4544-0047-4b10-8031-b5c04f4e4899";
const THIRD: &str = "4c4c4544-0047-4b10-8031-b5c04f4e48aa";
const SWAPPED: &str = "44454c4c-4700-104b-8031-b5c04f4e4833";

#[test]
fn one_machine_is_the_same_in_every_spelling_and_byte_order_and_a_dummy_is_compared_with_nothing() {
    use SystemMatch::{Different, NotComparable, Same};
    let upper = ONE.to_uppercase();
    let plain = ONE.replace('-', "");
    let braced = format!("{{{ONE}}}");
    let spaced = format!(" {ONE}\n");
    for (bmc, node, expected) in [
        (ONE, ONE, Same),
        (ONE, upper.as_str(), Same),
        (ONE, &plain, Same),
        (ONE, &braced, Same),
        (ONE, &spaced, Same),
        (ONE, SWAPPED, Same),
        (SWAPPED, ONE, Same),
        (SWAPPED, &upper, Same),
        (ONE, "4c4c4544-0047-4b10-8031-b5c04f4e4834", Different),
        // The last two groups have only one byte order.
        (ONE, "4c4c4544-0047-4b10-3180-b5c04f4e4833", Different),
        // A swap of one of the three groups alone does not count.
        (ONE, "44454c4c-0047-4b10-8031-b5c04f4e4833", Different),
        (ONE, "", NotComparable),
        ("Not Settable", ONE, NotComparable),
        (ONE, "4c4c4544-0047-4b10-8031-b5c04f4e483", NotComparable),
        (ONE, "4c4c4544-0047-4b10-8031-b5c04f4e48333", NotComparable),
        (ONE, "4c4c4544-0047-4b10-8031-b5c04f4e483g", NotComparable),
        (ONE, "ec2f8031-b5c0", NotComparable),
    ] {
        assert_eq!(compare_system_uuids(bmc, node), expected, "{bmc} {node}");
    }
    for dummy in [
        "00000000-0000-0000-0000-000000000000",
        "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
        "fefefefe-fefe-fefe-fefe-fefefefefefe",
        "03000200-0400-0500-0006-000700080009",
        "00020003-0004-0005-0006-000700080009",
        "03020100-0504-0706-0809-0a0b0c0d0e0f",
        "12345678-1234-5678-90AB-CDDEEFAABBCC",
        "4C4C4544-0000-2010-8020-80C04F202020",
    ] {
        assert_eq!(compare_system_uuids(dummy, dummy), NotComparable, "{dummy}");
        assert_eq!(compare_system_uuids(dummy, ONE), NotComparable, "{dummy}");
    }
}

#[test]
fn a_proof_says_which_machine_it_is_of_as_the_bmc_told_it() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.about.system_uuid = Some(ONE.into());
    world.until_confirmed();
    let mut unasked = world.seen.clone();
    unasked.memory.checks.clear();
    let none = find_off_proof(&unasked, &world.config, world.now());
    assert_eq!(none, None, "nobody has asked which machine it is");
    let uuid = |world: &World| {
        let proof = find_off_proof(&world.seen, &world.config, world.now()).unwrap();
        proof.system_uuid().map(str::to_owned)
    };
    assert_eq!(uuid(&world).as_deref(), Some(ONE));
    // A later failed check does not clear the result.
    world.checks_are_good = false;
    world.run(600);
    assert_eq!(uuid(&world).as_deref(), Some(ONE));
    // Another address means another BMC.
    world.seen.memory.forget_bmc();
    assert_eq!(
        find_off_proof(&world.seen, &world.config, world.now()),
        None
    );
    world.run(70);
    assert_eq!(uuid(&world), None, "its check failed: nothing to compare");
}

pub(super) fn proof(world: &World) -> Option<PowerOffProof> {
    find_off_proof(&world.seen, &world.config, world.now())
}

/// A host of machine `ONE` whose BMC hangs while the host is to go off. Then another machine answers
/// at its address.
pub(super) fn answered_by_another_machine(readings_have_uuid: bool) -> World {
    let mut world = World::new(&[], true, true);
    world.readings_have_uuid = readings_have_uuid;
    world.about.system_uuid = Some(ONE.into());
    world.run(70);
    world.annotate(KEY, HARD);
    world.checks_are_good = false;
    world.bmcs[0].default_says = Says::Fails(FaultClass::TimedOut);
    world.bmcs[0].default_takes = Takes::Silent {
        after: 10_000,
        runs: None,
    };
    world.run(600);
    assert!(world.is_on() && world.sent.len() > 3, "it hangs");
    world.checks_are_good = true;
    world.about.system_uuid = Some(OTHER.into());
    world.bmcs[0].default_says = Says::Truth;
    world.bmcs[0].default_takes = Takes::Runs(300);
    world
}

#[test]
fn what_another_machine_says_at_the_address_proves_nothing_of_the_one_that_was_checked() {
    for readings_have_uuid in [true, false] {
        let mut world = answered_by_another_machine(readings_have_uuid);
        world.set_power(false);
        for _ in 0..3_600 {
            world.run(1);
            assert_eq!(proof(&world), None, "{readings_have_uuid}");
        }
        assert_eq!(bmc_system_uuid(&world.seen), Some(OTHER));
        assert_eq!(world.because(), PowerReason::OtherMachineAnswers);
        assert_eq!(world.status().powered_on, Some(true));
        let power = current_power(&world.seen, &world.config, world.now());
        assert_eq!(power, CurrentPower::Unknown);
        let ready = world.condition("PowerControlReady");
        assert_eq!(ready.reason, PowerReason::OtherMachineAnswers.as_str());
        assert!(
            ready.message.contains(ONE) && ready.message.contains(OTHER),
            "{}",
            ready.message
        );
        // A later request is about the machine that is there by then.
        world.remove(KEY);
        world.run(60);
        world.annotate(KEY, HARD);
        world.until("proved", |world| proof(world).is_some());
        assert_eq!(proof(&world).unwrap().system_uuid(), Some(OTHER));
    }
}

#[test]
fn a_machine_that_answers_at_the_address_of_another_one_gets_no_power_off() {
    let mut world = answered_by_another_machine(true);
    world.until("it is noticed", |world| {
        world.said(PowerReason::OtherMachineAnswers)
    });
    let sent = world.sent.len();
    world.run(3_600);
    assert_eq!(world.sent.len(), sent);

    // Nor does it if it is on where the right one was held off.
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.readings_have_uuid = true;
    world.about.system_uuid = Some(ONE.into());
    world.until_confirmed();
    world.about.system_uuid = Some(OTHER.into());
    world.set_power(true);
    world.run(600);
    assert!(world.is_on() && world.power_offs() == 1);
    assert_eq!(world.because(), PowerReason::OtherMachineAnswers);
    assert_eq!(proof(&world), None);
}

#[test]
fn a_uuid_that_is_shared_after_the_change_is_no_correction() {
    for later in [OTHER, THIRD] {
        let mut world = answered_by_another_machine(true);
        world.until("it is noticed", |world| {
            world.said(PowerReason::OtherMachineAnswers)
        });
        // The machine at the address is another host's.
        world.seen.same_system = vec![HostName::new("hosts", "h2")];
        let sent = world.sent.len();
        world.run(600);
        world.about.system_uuid = Some(later.into());
        world.run(70);
        world.seen.same_system.clear();
        world.run(3_600);
        assert_eq!(world.sent.len(), sent, "{later}");
        assert_eq!(world.because(), PowerReason::OtherMachineAnswers);
    }
}

#[test]
fn the_right_machine_that_answers_again_is_switched_off_and_proved() {
    for (readings_have_uuid, is_silent_between) in [(true, false), (true, true), (false, false)] {
        let mut world = answered_by_another_machine(readings_have_uuid);
        world.until("it is noticed", |world| {
            world.said(PowerReason::OtherMachineAnswers)
        });
        world.run(60);
        let sent = world.sent.len();
        if is_silent_between {
            world.checks_are_good = false;
            world.bmcs[0].default_says = Says::Fails(FaultClass::TimedOut);
            world.run(300);
            world.bmcs[0].default_says = Says::Truth;
            world.checks_are_good = true;
        }
        world.about.system_uuid = Some(ONE.into());
        world.until("proved", |world| proof(world).is_some());
        assert_eq!(proof(&world).unwrap().system_uuid(), Some(ONE));
        assert_eq!(world.sent.len(), sent + 1, "the other one's answer is void");
        world.run(600);
        assert!(proof(&world).is_some() && world.sent.len() == sent + 1);
        let ready = world.condition("PowerControlReady");
        assert_eq!(ready.status, ConditionStatus::True, "{}", ready.message);
    }
}

#[test]
fn a_late_answer_of_the_other_machine_changes_nothing() {
    let mut world = answered_by_another_machine(true);
    world.until("it is noticed", |world| {
        world.said(PowerReason::OtherMachineAnswers)
    });
    let asked = world.mono();
    world.about.system_uuid = Some(ONE.into());
    world.until("proved", |world| proof(world).is_some());
    let before = world.seen.clone();
    let answered = world.mono();
    world.seen.record_reading(LevelReading {
        level: 0,
        asked,
        answered,
        result: Ok(PowerReading::On),
        system_uuid: Some(OTHER.into()),
    });
    assert_eq!(world.seen, before);
}

#[test]
fn an_off_of_an_outlet_is_not_proved_while_the_bmcs_address_leads_to_another_machine() {
    for other_is_on in [true, false] {
        let mut world = World::new(&[(KEY, HARD)], true, true);
        world.add_level();
        world.is_wrong_outlet = true;
        world.readings_have_uuid = true;
        world.about.system_uuid = Some(ONE.into());
        world.bmcs[0].default_takes = Takes::Fails(FaultClass::Refused);
        world.until("the outlet is off", |world| !world.bmcs[1].gives);
        world.about.system_uuid = Some(OTHER.into());
        world.set_power(other_is_on);
        world.until("it is read", |world| {
            bmc_system_uuid(&world.seen) == Some(OTHER)
        });
        let sent = world.sent.len();
        let reads = world.reads_begun[0];
        for _ in 0..600 {
            world.run(1);
            assert_eq!(proof(&world), None, "{other_is_on}");
            assert_ne!(world.status().powered_on, Some(false));
        }
        assert_eq!(world.sent.len(), sent);
        assert!(world.reads_begun[0] - reads < 60, "at polls");
        let ready = world.condition("PowerControlReady");
        assert_eq!(ready.reason, PowerReason::OtherMachineAnswers.as_str());
        world.about.system_uuid = Some(ONE.into());
        world.set_power(false);
        world.until("proved", |world| proof(world).is_some());
        // The outlet gets its power back whatever answers.
        world.about.system_uuid = Some(OTHER.into());
        world.set_power(other_is_on);
        world.run(120);
        assert_eq!(proof(&world), None, "{other_is_on}");
        world.remove(KEY);
        world.until("its power is back", |world| world.bmcs[1].gives);
    }
}

#[test]
fn the_uuid_of_a_proof_was_read_while_the_machine_was_off() {
    for readings_have_uuid in [true, false] {
        let mut world = World::new(&[], true, true);
        world.readings_have_uuid = readings_have_uuid;
        world.about.system_uuid = Some(ONE.into());
        world.run(70);
        world.annotate(KEY, HARD);
        let begun = world.time;
        world.until("proved", |world| proof(world).is_some());
        assert!(world.time - begun < 7_000, "{}", world.time - begun);
        assert_eq!(proof(&world).unwrap().system_uuid(), Some(ONE));
    }
    // No reading names it, and it cannot be checked any more.
    let mut world = World::new(&[], true, true);
    world.about.system_uuid = Some(ONE.into());
    world.run(70);
    world.annotate(KEY, HARD);
    world.checks_are_good = false;
    world.until("proved", |world| proof(world).is_some());
    assert_eq!(proof(&world).unwrap().system_uuid(), None);
    world.checks_are_good = true;
    world.run(120);
    assert_eq!(proof(&world).unwrap().system_uuid(), Some(ONE));
}

#[test]
fn a_uuid_that_was_a_senior_hosts_may_be_corrected_while_the_host_is_held_off() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.readings_have_uuid = true;
    world.about.system_uuid = Some(ONE.into());
    world.seen.same_system = vec![HostName::new("hosts", "h2")];
    world.until_confirmed();
    world.about.system_uuid = Some(OTHER.into());
    world.until("it is read", |world| {
        bmc_system_uuid(&world.seen) == Some(OTHER)
    });
    world.seen.same_system.clear();
    world.until("proved", |world| proof(world).is_some());
    assert_eq!(proof(&world).unwrap().system_uuid(), Some(OTHER));
}

#[test]
fn hosts_whose_bmcs_tell_one_system_are_proved_off_neither_and_it_is_said() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.seen.same_system = vec![HostName::new("hosts", "h2")];
    world.run(300);
    assert!(!world.is_on(), "it is still powered as it is wanted");
    assert_eq!(
        find_off_proof(&world.seen, &world.config, world.now()),
        None
    );
    assert_eq!(
        current_power(&world.seen, &world.config, world.now()),
        CurrentPower::Unknown
    );
    assert_eq!(world.status().powered_on, Some(true));
    let ready = world.condition("PowerControlReady");
    assert_eq!(
        (ready.status, ready.reason.as_str()),
        (ConditionStatus::False, PowerReason::SameSystemUUID.as_str())
    );
    assert!(ready.message.contains("hosts/h2"), "{}", ready.message);
    world.seen.same_system.clear();
    world.run(1);
    assert!(find_off_proof(&world.seen, &world.config, world.now()).is_some());
    assert_eq!(world.status().powered_on, Some(false));
}

#[test]
fn of_hosts_that_tell_one_system_the_older_is_believed_until_it_tells_another_or_is_gone() {
    let name = |name: &str| HostName::new("hosts", name);
    let age = |second| {
        let mut host = host(&[], true);
        host.created = jiff::Timestamp::from_second(second).ok();
        Arc::new(HostSeniority::of_host(&host, &OwnerRules::default()))
    };
    let (a, b, c) = (name("a"), name("b"), name("c"));
    let (old, newer, newest) = (age(1), age(2), age(3));
    let mut systems = SharedSystemIds::default();
    systems.put_host(&a, &newer, Some(ONE));
    systems.put_host(&b, &old, Some(SWAPPED));
    systems.put_host(&c, &newest, Some("4c4c4544-0047-4b10-8031-b5c04f4e4834"));
    assert_eq!(systems.senior_hosts(&a), from_ref(&b));
    assert_eq!(systems.senior_hosts(&b), [], "it was there first");
    assert_eq!(systems.senior_hosts(&c), []);
    systems.put_host(&c, &newest, Some(ONE));
    assert_eq!(systems.senior_hosts(&c), [a.clone(), b.clone()]);
    assert_eq!(systems.senior_hosts(&b), [], "whoever comes after it");
    systems.put_host(&c, &newest, None);
    systems.remove_host(&b);
    assert_eq!(systems.senior_hosts(&a), []);
    for dummy in ["", "00000000-0000-0000-0000-000000000000"] {
        systems.put_host(&a, &newer, Some(dummy));
        systems.put_host(&b, &old, Some(dummy));
        assert_eq!(systems.senior_hosts(&a), [], "{dummy}");
    }
}

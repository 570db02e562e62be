//! What is remembered of the machine behind an address, and for how long. Source: specification
//! §4.1.

use super::identity::*;
use super::person::confirm;
use super::world::*;
use crate::power::*;

#[test]
fn an_answer_without_a_uuid_does_not_hide_that_another_machine_answers_later() {
    for (readings_have_uuid, nothing) in [
        (true, None),
        (false, None),
        (true, Some("00000000-0000-0000-0000-000000000000")),
        (false, Some("00000000-0000-0000-0000-000000000000")),
    ] {
        let mut world = World::new(&[(KEY, HARD)], true, true);
        world.readings_have_uuid = readings_have_uuid;
        world.about.system_uuid = Some(ONE.into());
        world.until_confirmed();
        world.about.system_uuid = nothing.map(str::to_owned);
        world.run(700);
        let known = world.seen.memory.bmc_infos.get(0).unwrap();
        assert_eq!(known.system_uuid.as_deref(), nothing);
        let of_proof = proof(&world).unwrap();
        assert_eq!(of_proof.system_uuid(), nothing, "not of the last one known");
        world.about.system_uuid = Some(OTHER.into());
        if !readings_have_uuid {
            world.until("it is checked", |world| {
                bmc_system_uuid(&world.seen) == Some(OTHER)
            });
        }
        world.set_power(true);
        world.run(600);
        assert!(world.is_on() && world.power_offs() == 1, "{nothing:?}");
        assert_eq!(world.because(), PowerReason::OtherMachineAnswers);
        assert_eq!(proof(&world), None);
    }
}

#[test]
fn a_changed_secret_or_another_level_does_not_make_the_other_machine_the_right_one() {
    for (adds_level, readings_have_uuid) in
        [(false, true), (false, false), (true, true), (true, false)]
    {
        let mut world = answered_by_another_machine(readings_have_uuid);
        world.until("it is noticed", |world| {
            world.because() == PowerReason::OtherMachineAnswers
        });
        if adds_level {
            world.add_level();
        }
        world.seen.memory.forget_bmc();
        world.version += 1;
        let sent = world.sent.len();
        world.run(600);
        assert_eq!(world.sent.len(), sent, "{adds_level} {readings_have_uuid}");
        assert_eq!(world.because(), PowerReason::OtherMachineAnswers);
        world.set_power(false);
        world.run(600);
        assert_eq!(world.status().powered_on, Some(true));
        assert_eq!(world.power().off_confirmed_at, None);
        assert_eq!(proof(&world), None);
    }
}

#[test]
fn the_secret_may_change_before_the_other_machine_answers() {
    let mut world = answered_by_another_machine(true);
    let sent = world.sent.len();
    world.seen.memory.forget_bmc();
    world.until("it is noticed", |world| {
        world.said(PowerReason::OtherMachineAnswers)
    });
    world.run(600);
    assert_eq!(world.sent.len(), sent);
}

#[test]
fn the_machine_at_a_corrected_address_is_switched_off_and_proved() {
    let mut world = answered_by_another_machine(true);
    world.until("it is noticed", |world| {
        world.said(PowerReason::OtherMachineAnswers)
    });
    let address = BmcAddress::parse("redfish://192.0.2.77/redfish/v1/Systems/1");
    world.seen.host_mut().levels[0].devices[0].address = address;
    world.seen.memory.forget_bmc();
    world.version += 1;
    world.until("proved", |world| proof(world).is_some());
    assert_eq!(proof(&world).unwrap().system_uuid(), Some(OTHER));
}

/// The warnings about the former machine so far.
fn former_machine_warnings(world: &World) -> usize {
    let text = format!("reports system UUID {OTHER}, and reported {ONE} before: the former");
    let all = world.events.iter();
    let warnings = all.filter(|(_, reason, said)| {
        *reason == PowerReason::OtherMachineAnswers.as_str() && said.contains(&text)
    });
    warnings.count()
}

/// Nothing asks for off any more: the key goes, as if the reboot had taken place already.
fn release(world: &mut World) {
    let host = world.seen.host_mut();
    host.status.last_powered_on = host.status.pending_reboot_since.take();
    world.remove(KEY);
}

#[test]
fn a_host_that_need_not_be_off_any_more_says_that_another_machine_was_switched_off() {
    for other_is_on in [true, false] {
        // Held off, with a proof of the former machine.
        let mut world = World::new(&[(KEY, HARD)], true, true);
        world.readings_have_uuid = true;
        world.about.system_uuid = Some(ONE.into());
        world.until_confirmed();
        world.about.system_uuid = Some(OTHER.into());
        world.until("it is read", |world| {
            bmc_system_uuid(&world.seen) == Some(OTHER)
        });
        world.set_power(other_is_on);
        release(&mut world);
        world.until_on();
        assert_eq!(former_machine_warnings(&world), 1, "{other_is_on}");

        // The power-off is withdrawn before it was confirmed.
        let mut world = answered_by_another_machine(true);
        world.until("it is noticed", |world| {
            world.said(PowerReason::OtherMachineAnswers)
        });
        assert_eq!(former_machine_warnings(&world), 0, "the key holds it");
        world.set_power(other_is_on);
        release(&mut world);
        world.until_on();
        assert_eq!(former_machine_warnings(&world), 1, "{other_is_on}");
    }
}

/// Machine ONE's BMC is dead, so an outlet cut its power, and has given it back.
fn given_back_by_its_outlet() -> World {
    let mut world = World::new(&[], true, true);
    world.add_level();
    world.readings_have_uuid = true;
    world.about.system_uuid = Some(ONE.into());
    world.run(70);
    world.annotate(KEY, HARD);
    world.bmcs[0].default_takes = Takes::Fails(FaultClass::Unreachable);
    world.bmcs[0].default_says = Says::Fails(FaultClass::Unreachable);
    world.checks_are_good = false;
    world.until_confirmed();
    world.remove(KEY);
    world.until("the outlet is on", |world| world.bmcs[1].gives);
    world
}

#[test]
fn another_machine_that_answers_once_an_outlet_gives_its_power_back_is_named() {
    let mut world = given_back_by_its_outlet();
    assert_eq!(former_machine_warnings(&world), 0);
    world.about.system_uuid = Some(OTHER.into());
    world.bmcs[0] = Bmc::new(false);
    world.until_on();
    assert_eq!(former_machine_warnings(&world), 1);
}

#[test]
fn a_former_machine_is_named_also_where_the_power_on_was_decided_before_the_other_one_answered() {
    for other_is_on in [true, false] {
        let mut world = World::new(&[(KEY, HARD)], true, true);
        world.readings_have_uuid = true;
        world.about.system_uuid = Some(ONE.into());
        world.until_confirmed();
        world.bmcs[0].default_takes = Takes::Fails(FaultClass::Unreachable);
        world.remove(KEY);
        world.until("a power-on fails", |world| {
            world.kinds().last() == Some(&PowerCommand::On)
        });
        assert_eq!(former_machine_warnings(&world), 0);
        world.about.system_uuid = Some(OTHER.into());
        world.bmcs[0] = Bmc::new(other_is_on);
        world.until("the host is on", |world| {
            world.is_on() && world.power().command.is_none()
        });
        assert!(former_machine_warnings(&world) >= 1, "{other_is_on}");
    }

    // The outlet gave its power back, and the other machine is on already.
    let mut world = given_back_by_its_outlet();
    world.about.system_uuid = Some(OTHER.into());
    world.bmcs[0] = Bmc::new(true);
    world.until("it is over", |world| world.power().command.is_none());
    assert_eq!(former_machine_warnings(&world), 1);
}

#[test]
fn a_persons_word_that_another_machines_bmc_contradicts_says_to_correct_the_address_first() {
    let mut world = answered_by_another_machine(true);
    let refused = |world: &World| {
        let contradicted = PowerReason::ConfirmationContradicted.as_str();
        let mut all = world.events.iter().rev();
        let last = all.find(|(_, reason, _)| *reason == contradicted);
        last.map_or_else(String::new, |(_, _, text)| text.clone())
    };
    world.until("it is noticed", |world| {
        world.said(PowerReason::OtherMachineAnswers)
    });
    confirm(&mut world);
    world.run(60);
    assert_eq!(proof(&world), None);
    let text = refused(&world);
    assert!(text.contains("OtherMachineAnswers"), "{text}");
    assert!(text.contains("correct the BMC's address first"), "{text}");

    // A machine that was always this host's only contradicts.
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.bmcs[0].default_takes = Takes::Ignores;
    world.run(60);
    confirm(&mut world);
    world.run(60);
    let text = refused(&world);
    assert!(text.contains("that it is not; the Node"), "{text}");
}

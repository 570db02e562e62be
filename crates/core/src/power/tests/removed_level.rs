//! The level of an unfinished command is removed from the host's spec.

use super::single_host::*;
use super::world::*;
use crate::power::*;

/// A command to a PDU, of unknown end since 100 s, so it settles at 130 s; then the PDU is removed.
fn without_pdu(annotations: &[(&str, &str)], command: PowerCommand, now: u64) -> PowerDecision {
    let mut host = SingleHost::with_pdu(annotations, true);
    host.intend(command, 1);
    host.end(100, unknown());
    host.seen.host_mut().levels.truncate(1);
    host.now = secs(now);
    host.decide()
}

fn next_command(decision: &PowerDecision) -> Option<(PowerCommand, usize)> {
    let [PowerAction::WriteStatus(write)] = &decision.actions[..] else {
        panic!("{decision:?}");
    };
    let command = write.status.power.command.as_ref()?;
    Some((command.command, command.level))
}

#[test]
fn a_host_that_may_be_on_waits_until_the_command_has_settled() {
    for command in [PowerCommand::On, PowerCommand::Off] {
        for now in [110, 129] {
            let waits = without_pdu(&[], command, now);
            assert_eq!(waits.cause.reason, PowerReason::CommandOfUnknownEnd);
            assert_eq!(waits.wake.map(|wake| wake.at), Some(secs(130)));
        }
    }
}

#[test]
fn then_a_power_on_is_sent_by_the_bmc_and_a_power_off_is_over() {
    let on = without_pdu(&[], PowerCommand::On, 130);
    assert_eq!(next_command(&on), Some((PowerCommand::On, 0)));
    let off = without_pdu(&[], PowerCommand::Off, 130);
    assert_eq!(next_command(&off), None);
}

#[test]
fn a_host_that_must_be_off_is_switched_off_by_the_bmc_at_once() {
    let off = without_pdu(&[(KEY, HARD)], PowerCommand::Off, 110);
    assert_eq!(next_command(&off), Some((PowerCommand::Off, 0)));
}

/// A host whose BMC is dead, kept off by its PDU.
pub(super) fn held_off_by_pdu() -> World {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.add_level();
    world.bmcs[0].default_takes = Takes::Fails(FaultClass::Unreachable);
    world.bmcs[0].default_says = Says::Fails(FaultClass::Unreachable);
    world.until_confirmed();
    assert!(!world.bmcs[1].gives);
    world
}

fn change_levels(world: &mut World, change: impl FnOnce(&mut Vec<PowerLevel>)) {
    change(&mut world.seen.host_mut().levels);
    world.seen.memory.forget_bmc();
    world.version += 1;
}

#[test]
fn an_outlet_that_was_cut_and_is_removed_from_the_spec_is_named_until_the_bmc_has_power() {
    for keeps_key in [true, false] {
        let mut world = held_off_by_pdu();
        change_levels(&mut world, |levels| levels.truncate(1));
        if !keeps_key {
            world.remove(KEY);
        }
        let sent = world.sent.len();
        world.run(3_600);
        assert_eq!(world.because(), PowerReason::OutletLeftOff);
        assert!(world.said(PowerReason::OutletLeftOff));
        assert_eq!(world.sent.len(), sent, "the BMC has no power");
        assert_eq!(
            find_off_proof(&world.seen, &world.config, world.now()),
            None
        );
        let said_before = world.events.len();
        // Somebody switches the outlet on, and the BMC starts.
        world.bmcs[1].set_power(true);
        world.bmcs[0] = Bmc::new(true);
        if keeps_key {
            world.until_confirmed();
        } else {
            world.until("the reboot is done", |world| {
                !world.status().is_reboot_pending()
            });
            world.until_on();
        }
        world.run(60);
        let left = PowerReason::OutletLeftOff.as_str();
        let stays = |text: &str| text.contains("may stay off");
        assert!(
            !world.events[said_before..]
                .iter()
                .any(|(_, _, text)| stays(text))
        );
        let history = &world.power().history;
        assert!(!history.iter().any(|done| done.outcome == left));
    }
}

#[test]
fn a_level_that_is_put_back_gives_its_power_back() {
    let mut world = held_off_by_pdu();
    let pdu = world.seen.host.levels[1].clone();
    change_levels(&mut world, |levels| levels.truncate(1));
    world.run(600);
    world.bmcs[0] = Bmc::new(true);
    change_levels(&mut world, |levels| levels.push(pdu));
    world.until_confirmed();
    world.remove(KEY);
    world.until_on();
    assert!(world.bmcs[1].gives);
}

#[test]
fn an_outlet_that_was_cut_is_named_when_its_level_names_another_one() {
    for other_outlet_is_on in [true, false] {
        let mut world = held_off_by_pdu();
        change_levels(&mut world, |levels| {
            levels[1].devices[0].address = BmcAddress::parse("fence+fence_apc://192.0.2.9?plug=5");
        });
        world.bmcs[1].set_power(other_outlet_is_on);
        world.until_confirmed();
        world.until("it is said", |world| world.said(PowerReason::OutletLeftOff));
        let history = &world.power().history;
        let left = PowerReason::OutletLeftOff.as_str();
        assert!(history.iter().any(|done| done.outcome == left));
    }
}

#[test]
fn a_bmc_that_does_not_start_once_its_outlet_gives_power_is_named() {
    let mut world = held_off_by_pdu();
    world.remove(KEY);
    world.until("the outlet is on", |world| world.bmcs[1].gives);
    world.run(500);
    assert!(!world.said(PowerReason::Unreachable));
    world.run(150);
    assert!(world.said(PowerReason::Unreachable));
}

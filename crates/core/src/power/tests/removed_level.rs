//! The level of an unfinished command is removed from the host's spec.

use super::single_host::*;
use super::world::{HARD, KEY};
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

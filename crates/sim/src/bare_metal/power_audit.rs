//! Compares what a host's status says with what its machine did.

use std::time::Duration;

use dogwatch_core::power::HostSnapshot;
use dogwatch_kubesim::machine::{
    MachineLog, MachineState, MachineTransition, SimMachine, TransitionCause,
};
use jiff::Timestamp;

use super::bmc_readings::ObservedReading;
use crate::bmc::{ReceivedCommand, ResetType};
use crate::observer::PromiseViolation;

/// A power-on by a device, with the readings before its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedPowerOn {
    pub at: Timestamp,
    /// How many consecutive readings before the command reported "off".
    pub readings: usize,
    /// The time between the first and the last of these readings.
    pub apart: Duration,
}

/// Returns every power-on of a machine by a device, with the readings before its command.
pub fn device_power_ons(
    log: &MachineLog,
    received: &[ReceivedCommand],
    said: &[ObservedReading],
) -> Vec<ObservedPowerOn> {
    let changes = &log.transitions;
    let was_off = |at: usize| match at.checked_sub(1) {
        Some(before) => !changes[before].to.is_powered(),
        None => true,
    };
    let is_on = |(at, change): &(usize, &MachineTransition)| {
        let by_device = matches!(change.cause, TransitionCause::Device(_));
        by_device && change.to.is_powered() && was_off(*at)
    };
    let ons = changes.iter().enumerate().filter(is_on);
    ons.filter(|(_, change)| matches!(change.to, MachineState::Booting { .. }))
        .map(|(_, change)| {
            power_on_after_readings(change.at, commanded_at(change.at, received), said)
        })
        .collect()
}

/// The arrival of the command that was carried out at this time; only readings before it count.
fn commanded_at(at: Timestamp, received: &[ReceivedCommand]) -> Timestamp {
    let earlier = received.iter().filter(|one| one.at <= at);
    let mut ons = earlier
        .filter(|one| matches!(one.kind, Some(ResetType::On | ResetType::ForceOn)))
        .map(|one| one.at);
    ons.next_back().unwrap_or(at)
}

fn power_on_after_readings(
    at: Timestamp,
    commanded: Timestamp,
    said: &[ObservedReading],
) -> ObservedPowerOn {
    let earlier = said.iter().rev().skip_while(|said| said.at > commanded);
    let run: Vec<Timestamp> = earlier
        .take_while(|said| said.power == "Off")
        .map(|said| said.at)
        .collect();
    let apart = match (run.first(), run.last()) {
        (Some(last), Some(first)) => last.duration_since(*first),
        (Some(_) | None, None) | (None, Some(_)) => jiff::SignedDuration::ZERO,
    };
    ObservedPowerOn {
        at,
        readings: run.len(),
        apart: Duration::try_from(apart).unwrap_or(Duration::ZERO),
    }
}

/// Finds a proof that was written for a time at which a process lived (S1).
pub(super) fn find_false_proof(
    before: Option<&HostSnapshot>,
    after: &HostSnapshot,
    log: &MachineLog,
) -> Option<PromiseViolation> {
    let proved = |host: &HostSnapshot| host.status.power.off_confirmed_at;
    let at = proved(after).filter(|at| before.and_then(proved) != Some(*at))?;
    let text = || {
        format!(
            "{} was reported as proved off at {at}, but its processes were running",
            after.name
        )
    };
    log.had_processes_at(at).then(|| PromiseViolation(text()))
}

/// Finds a proof that is still in the status while a process lives, if only a device can have
/// started it.
pub(super) fn find_stale_proof(
    host: &HostSnapshot,
    machine: &SimMachine,
) -> Option<PromiseViolation> {
    host.status.power.off_confirmed_at?;
    machine.power_state().running_boot()?;
    let log = machine.transition_log();
    let mut causes = log.transitions.iter().rev().map(|change| &change.cause);
    let cause = causes.find(|cause| **cause != TransitionCause::Done);
    let is_known = matches!(cause, Some(TransitionCause::Device(_)) | None);
    let text = || {
        format!(
            "{} is reported as proved off, but its processes are running",
            host.name
        )
    };
    is_known.then(|| PromiseViolation(text()))
}

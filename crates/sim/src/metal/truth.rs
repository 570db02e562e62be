//! What is said of a host, held against what its machine did.

use std::time::Duration;

use dogwatch_core::power::Host;
use jiff::Timestamp;

use super::readings::Said;
use crate::bmc::{Cause, Log, Machine, Received, ResetType, State, Transition};
use crate::chronicle::Violation;

/// What went before one power-on that a device was told to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowerOn {
    /// When.
    pub at: Timestamp,
    /// How many readings in a row said off right before it.
    pub readings: usize,
    /// How far the first and the last of them are apart.
    pub apart: Duration,
}

/// Every power-on of a machine by a device, with the readings before its command.
pub fn power_ons(log: &Log, received: &[Received], said: &[Said]) -> Vec<PowerOn> {
    let changes = &log.transitions;
    let was_off = |at: usize| match at.checked_sub(1) {
        Some(before) => !changes[before].to.is_powered(),
        None => true,
    };
    let is_on = |(at, change): &(usize, &Transition)| {
        let by_device = matches!(change.cause, Cause::Device(_));
        by_device && change.to.is_powered() && was_off(*at)
    };
    let ons = changes.iter().enumerate().filter(is_on);
    ons.filter(|(_, change)| matches!(change.to, State::Booting { .. }))
        .map(|(_, change)| power_on(change.at, commanded(change.at, received), said))
        .collect()
}

/// When the command came that was carried out at this time: what is read after it is about it.
fn commanded(at: Timestamp, received: &[Received]) -> Timestamp {
    let earlier = received.iter().filter(|one| one.at <= at);
    let mut ons = earlier
        .filter(|one| matches!(one.kind, Some(ResetType::On | ResetType::ForceOn)))
        .map(|one| one.at);
    ons.next_back().unwrap_or(at)
}

fn power_on(at: Timestamp, commanded: Timestamp, said: &[Said]) -> PowerOn {
    let earlier = said.iter().rev().skip_while(|said| said.at > commanded);
    let run: Vec<Timestamp> = earlier
        .take_while(|said| said.power == "Off")
        .map(|said| said.at)
        .collect();
    let apart = match (run.first(), run.last()) {
        (Some(last), Some(first)) => last.duration_since(*first),
        (Some(_) | None, None) | (None, Some(_)) => jiff::SignedDuration::ZERO,
    };
    PowerOn {
        at,
        readings: run.len(),
        apart: Duration::try_from(apart).unwrap_or(Duration::ZERO),
    }
}

/// A proof that was written for a time at which a process lived (S1).
pub(super) fn false_proof(before: Option<&Host>, after: &Host, log: &Log) -> Option<Violation> {
    let proved = |host: &Host| host.status.power.off_confirmed_at;
    let at = proved(after).filter(|at| before.and_then(proved) != Some(*at))?;
    let text = || {
        format!(
            "{} was said to be proved off at {at}; its processes lived",
            after.name
        )
    };
    log.lived_at(at).then(|| Violation(text()))
}

/// A proof that still stands though a process lives which nobody but a device can have brought back.
pub(super) fn stale_proof(host: &Host, machine: &Machine) -> Option<Violation> {
    host.status.power.off_confirmed_at?;
    machine.state().living()?;
    let log = machine.log();
    let mut causes = log.transitions.iter().rev().map(|change| &change.cause);
    let cause = causes.find(|cause| **cause != Cause::Done);
    let is_known = matches!(cause, Some(Cause::Device(_)) | None);
    let text = || format!("{} is said to be proved off; its processes live", host.name);
    is_known.then(|| Violation(text()))
}

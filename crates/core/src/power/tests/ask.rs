//! How a test waits for the world and asks about it.

use super::world::World;
use crate::power::*;

impl World {
    pub(crate) fn run(&mut self, seconds: u64) {
        self.is_poked = true;
        let end = self.time + seconds * 1_000;
        while self.time < end {
            self.tick();
        }
    }

    /// Runs until `holds` is true; panics after ten minutes.
    pub(crate) fn until(&mut self, what: &str, holds: impl Fn(&World) -> bool) {
        self.is_poked = true;
        let end = self.time + 600_000;
        while !holds(self) {
            assert!(
                self.time < end,
                "never {what}: {:?}",
                self.last.as_ref().map(|last| &last.cause)
            );
            self.tick();
        }
    }

    /// Runs until off is confirmed anew; the host may be powering on by then.
    pub(crate) fn until_confirmed(&mut self) {
        let (before, standing) = (self.writes.len(), self.power().off_confirmed_at);
        self.until("off confirmed", |world| {
            let new = world.writes[before..].iter();
            let mut times = new.filter_map(|(_, status)| status.power.off_confirmed_at);
            times.any(|at| Some(at) != standing)
        });
    }

    /// Runs until the host is on and no command is pending.
    pub(crate) fn until_on(&mut self) {
        self.run(1);
        self.until("on", |world| {
            world.is_on() && world.power().command.is_none()
        });
    }

    pub(crate) fn kinds(&self) -> Vec<PowerCommand> {
        self.sent.iter().map(|trace| trace.command).collect()
    }

    pub(crate) fn said(&self, reason: PowerReason) -> bool {
        self.events
            .iter()
            .any(|(_, said, _)| *said == reason.as_str())
    }

    pub(crate) fn because(&self) -> PowerReason {
        self.last.as_ref().expect("it decided").cause.reason
    }

    pub(crate) fn condition(&self, kind: &str) -> crate::condition::DesiredCondition {
        let report = &self.last.as_ref().expect("it decided").report;
        let found = report
            .conditions
            .iter()
            .find(|condition| condition.kind == kind);
        found.cloned().expect("it is reported")
    }

    pub(crate) fn power_offs(&self) -> usize {
        self.transitions.iter().filter(|(_, is_on)| !is_on).count()
    }
}

//! The input of a power decision, with the queries that all its parts share.

use std::time::Duration;

use jiff::Timestamp;

use super::address::BadBmcAddress;
use super::annotations::{self, HostRebootAnnotation};
use super::bmc::{BmcInfo, CallCost, PowerCommand, PowerReading};
use super::bmc_crosscheck::BmcCrosscheck;
use super::config::PowerConfig;
use super::host::{HostStatus, PendingCommand, PendingCommandEnd};
use super::level_digest::digest_level;
use super::provisioning;
use super::snapshot::{LevelAccess, LevelReading, PowerSnapshot};
use crate::Now;

/// The arguments of [`super::decide`], and what follows from them directly.
pub(super) struct PowerContext<'a> {
    pub(super) seen: &'a PowerSnapshot,
    pub(super) config: &'a PowerConfig,
    pub(super) id: &'a str,
    pub(super) jitter: f64,
    pub(super) now: Now,
    pub(super) requests: Vec<HostRebootAnnotation>,
    is_provisioned: bool,
}

impl<'a> PowerContext<'a> {
    pub(super) fn new(
        seen: &'a PowerSnapshot,
        config: &'a PowerConfig,
        id: &'a str,
        jitter: f64,
        now: Now,
    ) -> Self {
        let state = provisioning::provisioning_state(&seen.host);
        Self {
            seen,
            config,
            id,
            jitter: jitter.clamp(0.0, 1.0),
            now,
            requests: annotations::reboot_annotations(&seen.host),
            is_provisioned: provisioning::is_provisioned(state.as_deref()),
        }
    }

    pub(super) fn host_status(&self) -> &'a HostStatus {
        &self.seen.host.status
    }

    pub(super) fn pending_command(&self) -> Option<&'a PendingCommand> {
        self.host_status().power.command.as_ref()
    }

    /// The power-off on the host, if the BMC answered it. Only an answered power-off can become a
    /// proof, whatever the status says about a confirmed off.
    pub(super) fn answered_power_off(&self) -> Option<&'a PendingCommand> {
        self.pending_command().filter(|command| {
            command.command.is_power_off()
                && matches!(command.end, PendingCommandEnd::Answered { .. })
        })
    }

    /// The annotations that are obeyed in the host's provisioning state.
    pub(super) fn obeyed_annotations(&self) -> impl Iterator<Item = &HostRebootAnnotation> {
        let all = self.is_provisioned;
        self.requests
            .iter()
            .filter(move |request| all || request.is_forced)
    }

    /// The annotations that are not obeyed in the host's provisioning state.
    pub(super) fn ignored_annotations(&self) -> impl Iterator<Item = &HostRebootAnnotation> {
        let none = self.is_provisioned;
        self.requests
            .iter()
            .filter(move |request| !none && !request.is_forced)
    }

    /// Whether an annotation, a key or a pending reboot waits for a proof of off.
    pub(super) fn is_proof_wanted(&self) -> bool {
        self.host_status().is_reboot_pending() || self.obeyed_annotations().next().is_some()
    }

    /// The names of the obeyed keys: they hold the host off until their writers remove them.
    pub(super) fn obeyed_keys(&self) -> Vec<&str> {
        self.obeyed_annotations()
            .filter(|request| request.key.is_some())
            .map(|request| request.name.as_str())
            .collect()
    }

    /// The annotation without a key, if it is there and obeyed.
    pub(super) fn keyless_annotation(&self) -> Option<&HostRebootAnnotation> {
        self.obeyed_annotations()
            .find(|request| request.key.is_none())
    }

    /// One hard annotation among several makes the power-off hard.
    pub(super) fn is_hard_wanted(&self) -> bool {
        self.obeyed_annotations().any(|request| request.is_hard)
    }

    /// Whether a requested reboot has not had its power-on yet.
    pub(super) fn is_reboot_pending(status: &HostStatus) -> bool {
        status.is_reboot_pending()
    }

    /// The level whose readings count now: from cutting the power until restoring it the level that
    /// cut it, otherwise the first.
    pub(super) fn level_in_use(&self) -> usize {
        let Some(command) = self.pending_command() else {
            return 0;
        };
        if command.level >= self.seen.host.levels.len() {
            return 0;
        }
        let since = self.need_seen_at(command);
        let gave_back = |level| {
            let read = self.newest_reading_since(level, since);
            read.is_some_and(|read| read.result == Ok(PowerReading::On))
        };
        match command.command {
            PowerCommand::On if gave_back(0) || gave_back(command.level) => 0,
            PowerCommand::On | PowerCommand::SoftOff | PowerCommand::Off => command.level,
        }
    }

    /// Whether the host's spec still contains the level.
    pub(super) fn has_level(&self, level: usize) -> bool {
        level < self.seen.host.levels.len()
    }

    pub(super) fn is_level_usable(&self, level: usize) -> bool {
        let addressed = self.seen.host.levels.get(level).is_some_and(|level| {
            let devices = &level.devices;
            !devices.is_empty() && devices.iter().all(|device| device.address.is_ok())
        });
        addressed && matches!(self.seen.access.get(level), Some(LevelAccess::Ready { .. }))
    }

    /// Whether the newest command went to a usable level beside the BMC.
    pub(super) fn is_further_level_in_use(&self) -> bool {
        let command = self.pending_command();
        command.is_some_and(|command| command.level > 0 && self.is_level_usable(command.level))
    }

    pub(super) fn invalid_bmc_address(&self) -> Option<&'a BadBmcAddress> {
        let mut devices = self.seen.host.levels.first()?.devices.iter();
        devices.find_map(|device| device.address.as_ref().err())
    }

    /// Whether no BMC can be called before a person repairs its Secret or its address.
    pub(super) fn is_bmc_unusable(&self) -> bool {
        let access = self.seen.access.first();
        self.invalid_bmc_address().is_some() || matches!(access, Some(LevelAccess::Missing { .. }))
    }

    pub(super) fn call_cost(&self, level: usize) -> CallCost {
        match self.seen.access.get(level) {
            Some(LevelAccess::Ready { cost }) => *cost,
            Some(LevelAccess::NotYet | LevelAccess::Missing { .. }) | None => CallCost::Process,
        }
    }

    pub(super) fn level_digest(&self, level: usize) -> Option<String> {
        self.seen.host.levels.get(level).map(digest_level)
    }

    /// What the last successful check of the level found.
    pub(super) fn bmc_info(&self, level: usize) -> Option<&'a BmcInfo> {
        self.seen.memory.bmc_infos.get(level)
    }

    /// Whether the level was ever checked, successfully or not.
    pub(super) fn was_checked(&self, level: usize) -> bool {
        let check = self.seen.memory.checks.get(level);
        check.is_some_and(Option::is_some)
    }

    /// When this process first saw this annotation with this value.
    pub(super) fn annotation_seen_at(&self, request: &HostRebootAnnotation) -> Option<Duration> {
        self.seen.memory.keys.get(&request.id()).copied()
    }

    pub(super) fn newest_reading(&self, level: usize) -> Option<&'a LevelReading> {
        let readings = &self.seen.memory.readings;
        readings.iter().find(|read| read.level == level)
    }

    /// The newest reading, if it was requested at `since` or later.
    pub(super) fn newest_reading_since(
        &self,
        level: usize,
        since: Duration,
    ) -> Option<&'a LevelReading> {
        self.newest_reading(level)
            .filter(|read| read.asked >= since)
    }

    pub(super) fn is_read_off_since(&self, level: usize, since: Duration) -> bool {
        self.newest_reading_since(level, since)
            .is_some_and(|read| read.result == Ok(PowerReading::Off))
    }

    /// The two newest readings, older one first, if both say off, were requested at `since` or
    /// later, and the second was requested at least `apart` after the first was answered.
    pub(super) fn two_off_readings(
        &self,
        level: usize,
        since: Duration,
        apart: Duration,
    ) -> Option<(&'a LevelReading, &'a LevelReading)> {
        let readings = &self.seen.memory.readings;
        let mut of_level = readings.iter().filter(|read| read.level == level);
        let (second, first) = (of_level.next()?, of_level.next()?);
        let is_off =
            |read: &LevelReading| read.result == Ok(PowerReading::Off) && read.asked >= since;
        let is_apart = second.asked >= first.answered.saturating_add(apart);
        (is_off(first) && is_off(second) && is_apart).then_some((first, second))
    }

    /// The two newest readings of off, made after every command of unknown end and still fresh.
    pub(super) fn current_off_readings(
        &self,
        level: usize,
    ) -> Option<(&'a LevelReading, &'a LevelReading)> {
        self.fresh_off_readings(level)
            .filter(|_| self.crosscheck_level(level) == BmcCrosscheck::Agrees)
    }

    /// What the level alone says: the same as [`Self::current_off_readings`], whatever the BMC says.
    pub(super) fn fresh_off_readings(
        &self,
        level: usize,
    ) -> Option<(&'a LevelReading, &'a LevelReading)> {
        self.two_off_readings(level, self.settled_at(), self.config.confirm)
            .filter(|(first, _)| self.is_reading_fresh(first))
    }

    /// When the newest reading was requested that showed that the machine may run: at `since` or
    /// later, and at most two polls ago. `None` also if the level said off since. A later failed
    /// reading does not hide it.
    pub(super) fn last_running_at(&self, level: usize, since: Duration) -> Option<Duration> {
        let asked = self.seen.memory.last_running.get(level).copied()?;
        (asked >= since && self.is_recent(asked)).then_some(asked)
    }

    /// Whether the reading is at most two polls old.
    pub(super) fn is_reading_fresh(&self, read: &LevelReading) -> bool {
        self.is_recent(read.answered)
    }

    /// Whether the moment is at most two polls ago.
    pub(super) fn is_recent(&self, moment: Duration) -> bool {
        moment.saturating_add(self.config.max_reading_age()) >= self.now.mono
    }

    /// Converts a monotonic moment of this process to wall-clock time, in microseconds.
    pub(super) fn wall_time_of(&self, mono: Duration) -> Timestamp {
        let ago = self.now.mono.saturating_sub(mono);
        let ahead = mono.saturating_sub(self.now.mono);
        let at = self.now.wall.checked_sub(ago).unwrap_or(Timestamp::MIN);
        super::status_times::truncate_to_micros(at.checked_add(ahead).unwrap_or(Timestamp::MAX))
    }

    pub(super) fn format_time_of(&self, mono: Duration) -> String {
        self.wall_time_of(mono).strftime("%H:%M:%SZ").to_string()
    }

    /// When this process first saw the current need.
    pub(super) fn need_seen_at(&self, command: &PendingCommand) -> Duration {
        let need = self.seen.memory.need;
        need.filter(|need| need.since == command.since)
            .map_or(self.now.mono, |need| need.seen)
    }

    /// The age of the current need, by this process' monotonic clock since it first saw the need.
    pub(super) fn need_age(&self, command: &PendingCommand) -> Duration {
        let need = self.seen.memory.need;
        match need.filter(|need| need.since == command.since) {
            Some(need) => need
                .age
                .saturating_add(self.now.mono.saturating_sub(need.seen)),
            None => self.now.elapsed_since(command.since),
        }
    }
}

//! What a decision starts from, with the questions that all its parts ask.

use std::time::Duration;

use jiff::Timestamp;

use super::annotations::{self, Request};
use super::bmc::{About, Command, Cost, Reading};
use super::config::Config;
use super::host::{End, HostStatus, Intention};
use super::provisioning;
use super::seen::{Access, Read, Seen};
use super::target::target;
use super::witness::Witness;
use crate::Now;

/// The arguments of [`super::decide`], and what follows from them at once.
pub(super) struct Context<'a> {
    pub(super) seen: &'a Seen,
    pub(super) config: &'a Config,
    pub(super) id: &'a str,
    pub(super) jitter: f64,
    pub(super) now: Now,
    /// All reboot annotations.
    pub(super) requests: Vec<Request>,
    is_provisioned: bool,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        seen: &'a Seen,
        config: &'a Config,
        id: &'a str,
        jitter: f64,
        now: Now,
    ) -> Self {
        let state = provisioning::state(&seen.host);
        Self {
            seen,
            config,
            id,
            jitter: jitter.clamp(0.0, 1.0),
            now,
            requests: annotations::requests(&seen.host),
            is_provisioned: provisioning::is_provisioned(state.as_deref()),
        }
    }

    pub(super) fn status(&self) -> &'a HostStatus {
        &self.seen.host.status
    }

    pub(super) fn command(&self) -> Option<&'a Intention> {
        self.status().power.command.as_ref()
    }

    /// The power-off on the host, if it was answered: nothing else makes a proof, whoever wrote that off is
    /// confirmed.
    pub(super) fn answered_off(&self) -> Option<&'a Intention> {
        self.command().filter(|command| {
            command.command.is_off() && matches!(command.end, End::Answered { .. })
        })
    }

    /// The requests that are obeyed in the host's provisioning state.
    pub(super) fn obeyed(&self) -> impl Iterator<Item = &Request> {
        let all = self.is_provisioned;
        self.requests
            .iter()
            .filter(move |request| all || request.is_forced)
    }

    /// Those that are not.
    pub(super) fn disobeyed(&self) -> impl Iterator<Item = &Request> {
        let none = self.is_provisioned;
        self.requests
            .iter()
            .filter(move |request| !none && !request.is_forced)
    }

    /// Somebody waits for a proof of off: a request, a key, or a reboot that is pending.
    pub(super) fn is_proof_wanted(&self) -> bool {
        self.status().is_reboot_pending() || self.obeyed().next().is_some()
    }

    /// The obeyed ones that hold the host off until their writers remove them.
    pub(super) fn keys(&self) -> Vec<&str> {
        self.obeyed()
            .filter(|request| request.key.is_some())
            .map(|request| request.name.as_str())
            .collect()
    }

    /// The set-and-forget one, if it is there and obeyed.
    pub(super) fn base(&self) -> Option<&Request> {
        self.obeyed().find(|request| request.key.is_none())
    }

    /// One hard among several makes it hard.
    pub(super) fn is_hard(&self) -> bool {
        self.obeyed().any(|request| request.is_hard)
    }

    /// Whether a reboot that was asked for has not got its power-on yet.
    pub(super) fn is_reboot_pending(status: &HostStatus) -> bool {
        status.is_reboot_pending()
    }

    /// The level whose readings count now: the one that cut the power until it has given it back,
    /// else the first.
    pub(super) fn level(&self) -> usize {
        let Some(command) = self.command() else {
            return 0;
        };
        if command.level >= self.seen.host.levels.len() {
            return 0;
        }
        let since = self.need_seen(command);
        let gave_back = |level| {
            let read = self.newest_since(level, since);
            read.is_some_and(|read| read.said == Ok(Reading::On))
        };
        match command.command {
            Command::On if gave_back(0) || gave_back(command.level) => 0,
            Command::On | Command::SoftOff | Command::Off => command.level,
        }
    }

    /// Whether the host's specification still has the level.
    pub(super) fn has_level(&self, level: usize) -> bool {
        level < self.seen.host.levels.len()
    }

    /// Whether commands can be sent to the level.
    pub(super) fn is_usable(&self, level: usize) -> bool {
        let addressed = self.seen.host.levels.get(level).is_some_and(|level| {
            let devices = &level.devices;
            !devices.is_empty() && devices.iter().all(|device| device.address.is_ok())
        });
        addressed && matches!(self.seen.access.get(level), Some(Access::Ready { .. }))
    }

    pub(super) fn cost(&self, level: usize) -> Cost {
        match self.seen.access.get(level) {
            Some(Access::Ready { cost }) => *cost,
            Some(Access::NotYet | Access::Missing { .. }) | None => Cost::Process,
        }
    }

    pub(super) fn target(&self, level: usize) -> Option<String> {
        self.seen.host.levels.get(level).map(target)
    }

    /// What the last check of the level that was answered found out.
    pub(super) fn about(&self, level: usize) -> Option<&'a About> {
        self.seen.memory.abouts.get(level)
    }

    /// Whether the level was ever asked what it is, however that ended.
    pub(super) fn was_checked(&self, level: usize) -> bool {
        let check = self.seen.memory.checks.get(level);
        check.is_some_and(Option::is_some)
    }

    /// Since when this annotation has been seen, by this process.
    pub(super) fn key_seen(&self, request: &Request) -> Option<Duration> {
        self.seen.memory.keys.get(&request.id()).copied()
    }

    pub(super) fn newest(&self, level: usize) -> Option<&'a Read> {
        let readings = &self.seen.memory.readings;
        readings.iter().find(|read| read.level == level)
    }

    /// The newest reading, if it was asked at `since` or later.
    pub(super) fn newest_since(&self, level: usize, since: Duration) -> Option<&'a Read> {
        self.newest(level).filter(|read| read.asked >= since)
    }

    pub(super) fn says_off(&self, level: usize, since: Duration) -> bool {
        self.newest_since(level, since)
            .is_some_and(|read| read.said == Ok(Reading::Off))
    }

    /// The two newest readings, if both say off, were asked at `since` or later, and the second one
    /// was asked at least `apart` after the first was answered. The older one comes first.
    pub(super) fn off_twice(
        &self,
        level: usize,
        since: Duration,
        apart: Duration,
    ) -> Option<(&'a Read, &'a Read)> {
        let readings = &self.seen.memory.readings;
        let mut of_level = readings.iter().filter(|read| read.level == level);
        let (second, first) = (of_level.next()?, of_level.next()?);
        let is_off = |read: &Read| read.said == Ok(Reading::Off) && read.asked >= since;
        let is_apart = second.asked >= first.answered.saturating_add(apart);
        (is_off(first) && is_off(second) && is_apart).then_some((first, second))
    }

    /// The same, and nothing that happened since can be hidden by their age.
    pub(super) fn off_now(&self, level: usize) -> Option<(&'a Read, &'a Read)> {
        self.off_twice(level, self.settled_at(), self.config.confirm)
            .filter(|(first, _)| self.is_fresh(first) && self.witness(level) == Witness::Agrees)
    }

    /// When the level was last asked, at `since` or later and not longer than two polls ago, and showed that
    /// the machine may run; `None` as well where it said off since. An answer that fails now and then does
    /// not hide it.
    pub(super) fn life(&self, level: usize, since: Duration) -> Option<Duration> {
        let asked = self.seen.memory.alive.get(level).copied()?;
        (asked >= since && self.is_recent(asked)).then_some(asked)
    }

    /// Not older than two polls.
    pub(super) fn is_fresh(&self, read: &Read) -> bool {
        self.is_recent(read.answered)
    }

    /// Not longer than two polls ago.
    pub(super) fn is_recent(&self, moment: Duration) -> bool {
        moment.saturating_add(self.config.fresh_for()) >= self.now.mono
    }

    /// The wall-clock time of a monotonic moment of this process, in microseconds.
    pub(super) fn wall(&self, mono: Duration) -> Timestamp {
        let ago = self.now.mono.saturating_sub(mono);
        let ahead = mono.saturating_sub(self.now.mono);
        let at = self.now.wall.checked_sub(ago).unwrap_or(Timestamp::MIN);
        super::times::micros(at.checked_add(ahead).unwrap_or(Timestamp::MAX))
    }

    /// The same as a person reads it.
    pub(super) fn second(&self, mono: Duration) -> String {
        self.wall(mono).strftime("%H:%M:%SZ").to_string()
    }

    /// When this process first saw the need under way.
    pub(super) fn need_seen(&self, command: &Intention) -> Duration {
        let need = self.seen.memory.need;
        need.filter(|need| need.since == command.since)
            .map_or(self.now.mono, |need| need.seen)
    }

    /// How long the need under way has been there: by our own clock since we first saw it.
    pub(super) fn spent(&self, command: &Intention) -> Duration {
        let need = self.seen.memory.need;
        match need.filter(|need| need.since == command.since) {
            Some(need) => need
                .age
                .saturating_add(self.now.mono.saturating_sub(need.seen)),
            None => self.now.since(command.since),
        }
    }
}

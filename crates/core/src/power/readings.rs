//! What the readings say of the power. Source: specification §3.1.

use std::time::Duration;

use super::bmc::{Class, Command, Cost, Reading};
use super::context::Context;
use super::host::{HostStatus, State};
use super::life::Life;
use super::seen::Read;

/// How often a level is read while something is expected of it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pace {
    /// After a hard power-off: BMCs take 0.1 s to some seconds. Source: `facts/bmc.md` §1.
    Fast {
        /// When the command was answered.
        since: Duration,
    },
    /// After a power-on or a soft power-off: an operating system takes seconds.
    Steady,
    /// Nothing is expected soon.
    Slow,
}

/// A BMC that refuses our password is not asked more often: some lock the account.
const LOCKOUT: Duration = Duration::from_secs(30);
/// How long a hard power-off is looked for with every request.
const HOT: Duration = Duration::from_secs(10);

impl Pace {
    fn every(self, ctx: &Context<'_>, level: usize) -> Duration {
        let second = Duration::from_secs(1);
        match self {
            Pace::Fast { since } => {
                let age = ctx.now.mono.saturating_sub(since);
                match ctx.cost(level) {
                    Cost::Request if age < HOT => Duration::from_millis(200),
                    Cost::Request | Cost::Process if age < ctx.config.settle => second,
                    Cost::Request | Cost::Process => second * 5,
                }
            }
            Pace::Steady => second,
            Pace::Slow => second * 5,
        }
    }
}

/// When the level is to be read next, to have a reading asked at `since` or later and one each pace
/// after it.
pub(super) fn due(ctx: &Context<'_>, level: usize, since: Duration, pace: Pace) -> Duration {
    let Some(read) = ctx.newest_since(level, since) else {
        let locked = ctx.newest(level).filter(|read| is_locked_out(read));
        return locked.map_or(since, |read| read.answered + LOCKOUT);
    };
    let every = match &read.said {
        Err(_) if is_locked_out(read) => LOCKOUT,
        Err(_) => pace.every(ctx, level).max(Duration::from_secs(1)),
        Ok(_) => pace.every(ctx, level),
    };
    read.answered.saturating_add(every)
}

fn is_locked_out(read: &Read) -> bool {
    let fault = read.said.as_ref().err();
    fault.is_some_and(|fault| fault.class == Class::WrongCredentials)
}

/// When a level that said off is to be read again, to have said it twice, a confirm interval apart.
pub(super) fn second_reading(ctx: &Context<'_>, level: usize) -> Duration {
    let settled = ctx.settled_at();
    let first = ctx.newest_since(level, settled);
    first.map_or(settled, |read| {
        read.answered.saturating_add(ctx.config.confirm)
    })
}

/// When the next poll is due. Two polls in a row end within two poll intervals, so that a host that is
/// off stays "off" in between, also where its BMC is slow; spread, so that hosts that began together part.
pub(super) fn next_poll(ctx: &Context<'_>, level: usize) -> Duration {
    let Some(read) = ctx.newest(level) else {
        return Duration::ZERO;
    };
    let every = ctx.config.poll.mul_f64(0.8 + 0.15 * ctx.jitter);
    let spared = ctx.config.poll.saturating_sub(ctx.config.call / 2);
    let every = every.min(spared.max(ctx.config.poll / 2));
    let soon = ctx.config.poll.min(Duration::from_secs(10));
    match &read.said {
        // Said unknown at once, and asked again before the next poll: often it is one lost answer.
        Err(_) if !is_locked_out(read) && !failed_before(ctx, read) => read.answered + soon,
        Err(_) => read.answered.saturating_add(every),
        Ok(_) => {
            let least = read.answered.saturating_add(ctx.config.confirm);
            read.asked.saturating_add(every).max(least)
        }
    }
}

fn failed_before(ctx: &Context<'_>, read: &Read) -> bool {
    let readings = ctx.seen.memory.readings.iter();
    let mut older = readings.filter(|other| other.level == read.level).skip(1);
    older.next().is_some_and(|older| older.said.is_err())
}

/// Writes what the readings say into the status: `poweredOn` is false only on two of them.
pub(super) fn note(ctx: &Context<'_>, status: &mut HostStatus) {
    let level = ctx.level();
    status.powered_on = match ctx.newest(level) {
        // A fresh leader reads at once; only "off" must not stand on somebody else's word.
        None if status.powered_on != Some(false) => status.powered_on,
        None => Some(true),
        Some(_) => Some(is_powered_on(ctx, status)),
    };
    status.power.state = state(ctx, status);
    if let Some(read) = ctx.newest(level) {
        let at = ctx.wall(read.answered);
        status.power.observed_at = Some(status.power.observed_at.map_or(at, |old| old.max(at)));
    }
}

/// False only while the two newest readings say off, a confirm interval apart and not older than two
/// polls, with no power-on and no command of unknown end under way, and no Node that contradicts.
pub(super) fn is_powered_on(ctx: &Context<'_>, status: &HostStatus) -> bool {
    let is_turning_on = status
        .power
        .command
        .as_ref()
        .is_some_and(|command| command.command == Command::On);
    let is_doubtful = !ctx.seen.same_system.is_empty();
    is_turning_on || is_doubtful || ctx.off_now(ctx.level()).is_none() || may_live(ctx)
}

/// The Node that it carries lives; or nobody switched the host off, and that is not known yet.
fn may_live(ctx: &Context<'_>) -> bool {
    match ctx.node_life() {
        Life::Lives(_) => true,
        Life::NotKnown { .. } => ctx.answered_off().is_none(),
        Life::NoNode | Life::Silent => false,
    }
}

fn state(ctx: &Context<'_>, status: &HostStatus) -> Option<State> {
    let Some(read) = ctx.newest(ctx.level()) else {
        return match status.power.state {
            Some(State::Off) => Some(State::Unknown),
            standing => standing,
        };
    };
    if !ctx.is_fresh(read) {
        return Some(State::Unknown);
    }
    let power = &status.power;
    let turning = power.command.as_ref().map(|command| command.command);
    let turning_off = turning.is_some_and(Command::is_off) && power.off_confirmed_at.is_none();
    Some(match &read.said {
        Ok(Reading::On) if turning_off => State::PoweringOff,
        Ok(Reading::On) => State::On,
        Ok(Reading::PoweringOn) => State::PoweringOn,
        Ok(Reading::PoweringOff) => State::PoweringOff,
        Ok(Reading::Off) if turning == Some(Command::On) => State::PoweringOn,
        Ok(Reading::Off) if !is_powered_on(ctx, status) => State::Off,
        Ok(Reading::Off) if turning_off => State::PoweringOff,
        Err(_) | Ok(Reading::Off) => State::Unknown,
    })
}

/// When what is said of the power now is too old to be said.
pub(super) fn stale_at(ctx: &Context<'_>) -> Option<Duration> {
    let level = ctx.level();
    let oldest = match ctx.off_now(level) {
        Some((first, _)) => first,
        None => ctx.newest(level)?,
    };
    let at = oldest.answered + ctx.config.fresh_for() + Duration::from_millis(1);
    (at > ctx.now.mono).then_some(at)
}

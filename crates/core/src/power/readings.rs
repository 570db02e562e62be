//! Schedules readings, and derives the power state from them. Source: specification §3.1.

use std::time::Duration;

use super::bmc::{CallCost, FaultClass, PowerCommand, PowerReading};
use super::context::PowerContext;
use super::host::{HostStatus, PowerState};
use super::node_liveness::NodeLiveness;
use super::snapshot::LevelReading;

/// How often a level is read while a change is expected.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReadPace {
    /// After a hard power-off: BMCs take 0.1 s to some seconds. Source: `facts/bmc.md` §1.
    Fast { since: Duration },
    /// After a power-on or a soft power-off: an operating system takes seconds.
    Steady,
    /// No change is expected soon.
    Slow,
}

/// A BMC that refuses the password is not read more often: some BMCs lock the account.
const LOCKOUT_READ_INTERVAL: Duration = Duration::from_secs(30);
/// How long after a hard power-off the level is read at the fast pace.
const FAST_READ_PERIOD: Duration = Duration::from_secs(10);

impl ReadPace {
    fn read_interval(self, ctx: &PowerContext<'_>, level: usize) -> Duration {
        let second = Duration::from_secs(1);
        match self {
            ReadPace::Fast { since } => {
                let age = ctx.now.mono.saturating_sub(since);
                match ctx.call_cost(level) {
                    CallCost::Request if age < FAST_READ_PERIOD => Duration::from_millis(200),
                    CallCost::Request | CallCost::Process if age < ctx.config.settle => second,
                    CallCost::Request | CallCost::Process => second * 5,
                }
            }
            ReadPace::Steady => second,
            ReadPace::Slow => second * 5,
        }
    }
}

/// When to read the level next: first to get a reading requested at `since` or later, then at the
/// given pace.
pub(super) fn next_read_at(
    ctx: &PowerContext<'_>,
    level: usize,
    since: Duration,
    pace: ReadPace,
) -> Duration {
    let Some(read) = ctx.newest_reading_since(level, since) else {
        let locked = ctx.newest_reading(level).filter(|read| is_locked_out(read));
        return locked.map_or(since, |read| {
            (read.answered + LOCKOUT_READ_INTERVAL).max(since)
        });
    };
    let every = match &read.result {
        Err(_) if is_locked_out(read) => LOCKOUT_READ_INTERVAL,
        Err(_) => pace.read_interval(ctx, level).max(Duration::from_secs(1)),
        Ok(_) => pace.read_interval(ctx, level),
    };
    read.answered.saturating_add(every)
}

fn is_locked_out(read: &LevelReading) -> bool {
    let fault = read.result.as_ref().err();
    fault.is_some_and(|fault| fault.class == FaultClass::WrongCredentials)
}

/// When to read a level again that said off, for a second reading a confirm interval later.
pub(super) fn second_reading_at(ctx: &PowerContext<'_>, level: usize) -> Duration {
    let settled = ctx.settled_at();
    let first = ctx.newest_reading_since(level, settled);
    first.map_or(settled, |read| {
        read.answered.saturating_add(ctx.config.confirm)
    })
}

/// When the next poll is due. Two polls in a row end within two poll intervals, so that a host that
/// is off stays "off" in between, also with a slow BMC. Jitter spreads hosts that started together.
pub(super) fn next_poll_at(ctx: &PowerContext<'_>, level: usize) -> Duration {
    let Some(read) = ctx.newest_reading(level) else {
        return Duration::ZERO;
    };
    let every = ctx.config.poll.mul_f64(0.8 + 0.15 * ctx.jitter);
    let spared = ctx.config.poll.saturating_sub(ctx.config.call / 2);
    let every = every.min(spared.max(ctx.config.poll / 2));
    let soon = ctx.config.poll.min(Duration::from_secs(10));
    match &read.result {
        // Reported as unknown at once, and read again before the next poll: often one answer was
        // lost.
        Err(_) if !is_locked_out(read) && !has_failed_before(ctx, read) => read.answered + soon,
        Err(_) => read.answered.saturating_add(every),
        Ok(_) => {
            let least = read.answered.saturating_add(ctx.config.confirm);
            read.asked.saturating_add(every).max(least)
        }
    }
}

fn has_failed_before(ctx: &PowerContext<'_>, read: &LevelReading) -> bool {
    let readings = ctx.seen.memory.readings.iter();
    let mut older = readings.filter(|other| other.level == read.level).skip(1);
    older.next().is_some_and(|older| older.result.is_err())
}

/// Records the readings in the status. `poweredOn` becomes false only after two readings of off.
pub(super) fn record_readings(ctx: &PowerContext<'_>, status: &mut HostStatus) {
    let level = ctx.level_in_use();
    status.powered_on = match ctx.newest_reading(level) {
        // A new leader reads at once; only an "off" must not stay on another process' word.
        None if status.powered_on != Some(false) => status.powered_on,
        None => Some(true),
        Some(_) => Some(is_powered_on(ctx, status)),
    };
    status.power.state = power_state(ctx, status);
    if let Some(read) = ctx.newest_reading(level) {
        let at = ctx.wall_time_of(read.answered);
        status.power.observed_at = Some(status.power.observed_at.map_or(at, |old| old.max(at)));
    }
}

/// False only while the two newest readings say off, a confirm interval apart and at most two polls
/// old, with no power-on and no command of unknown end under way, and no Node that contradicts.
pub(super) fn is_powered_on(ctx: &PowerContext<'_>, status: &HostStatus) -> bool {
    let is_turning_on = status
        .power
        .command
        .as_ref()
        .is_some_and(|command| command.command == PowerCommand::On);
    let is_doubtful = !ctx.seen.same_system.is_empty() || ctx.is_other_machine();
    is_turning_on
        || is_doubtful
        || ctx.current_off_readings(ctx.level_in_use()).is_none()
        || may_node_live(ctx)
}

/// A Node of the host lives; or Dogwatch did not switch the host off, and that is not known yet.
fn may_node_live(ctx: &PowerContext<'_>) -> bool {
    match ctx.node_liveness() {
        NodeLiveness::Lives(_) => true,
        NodeLiveness::NotKnown { .. } => ctx.answered_power_off().is_none(),
        NodeLiveness::NoNode | NodeLiveness::Silent => false,
    }
}

fn power_state(ctx: &PowerContext<'_>, status: &HostStatus) -> Option<PowerState> {
    let Some(read) = ctx.newest_reading(ctx.level_in_use()) else {
        return match status.power.state {
            Some(PowerState::Off) => Some(PowerState::Unknown),
            standing => standing,
        };
    };
    if !ctx.is_reading_fresh(read) {
        return Some(PowerState::Unknown);
    }
    let power = &status.power;
    let turning = power.command.as_ref().map(|command| command.command);
    let turning_off =
        turning.is_some_and(PowerCommand::is_power_off) && power.off_confirmed_at.is_none();
    Some(match &read.result {
        Ok(PowerReading::On) if turning_off => PowerState::PoweringOff,
        Ok(PowerReading::On) => PowerState::On,
        Ok(PowerReading::PoweringOn) => PowerState::PoweringOn,
        Ok(PowerReading::PoweringOff) => PowerState::PoweringOff,
        Ok(PowerReading::Off) if turning == Some(PowerCommand::On) => PowerState::PoweringOn,
        Ok(PowerReading::Off) if !is_powered_on(ctx, status) => PowerState::Off,
        Ok(PowerReading::Off) if turning_off => PowerState::PoweringOff,
        Err(_) | Ok(PowerReading::Off) => PowerState::Unknown,
    })
}

/// When the reported power state becomes too old to be reported.
pub(super) fn stale_at(ctx: &PowerContext<'_>) -> Option<Duration> {
    let level = ctx.level_in_use();
    let oldest = match ctx.current_off_readings(level) {
        Some((first, _)) => first,
        None => ctx.newest_reading(level)?,
    };
    let at = oldest.answered + ctx.config.max_reading_age() + Duration::from_millis(1);
    (at > ctx.now.mono).then_some(at)
}

//! Whether a host is powered on now, as far as Dogwatch knows. Source: specification §4.1.

use std::time::Duration;

use super::bmc::PowerReading;
use super::bmc_crosscheck::BmcCrosscheck;
use super::config::PowerConfig;
use super::context::PowerContext;
use super::refusal::{self, PowerReporting};
use super::snapshot::PowerSnapshot;
use crate::Now;

/// The power state that the remediation's truth table uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CurrentPower {
    On,
    /// The two newest readings say off, for every device of the level.
    Off,
    /// Never read, too old, an error, or a state between on and off.
    Unknown,
}

/// Whether the host is powered on, by readings of the level in use that are at most two polls old,
/// and for off a confirm interval apart. This is less than a proof: nothing is released on it.
pub fn current_power(seen: &PowerSnapshot, config: &PowerConfig, now: Now) -> CurrentPower {
    let ctx = PowerContext::new(seen, config, "", 0.0, now);
    if !seen.same_system.is_empty() || ctx.is_other_machine() {
        return CurrentPower::Unknown;
    }
    let knows =
        refusal::find_refusal(&ctx).map_or(PowerReporting::Power, |refusal| refusal.reporting);
    match knows {
        PowerReporting::Power => power_by_readings(&ctx, ctx.level_in_use()),
        PowerReporting::Metal3Managed => power_by_readings(&ctx, 0),
        PowerReporting::Nothing | PowerReporting::Unknown => CurrentPower::Unknown,
    }
}

/// When the first of the unbroken readings of off of the level in use was requested, by this
/// process' monotonic clock. `None`: the last reading did not say off.
pub fn off_since(seen: &PowerSnapshot, config: &PowerConfig, now: Now) -> Option<Duration> {
    let ctx = PowerContext::new(seen, config, "", 0.0, now);
    seen.memory.off_since.get(ctx.level_in_use()).copied()
}

/// Whether the level in use answered its last reading, at most two polls ago.
pub fn is_bmc_answering(seen: &PowerSnapshot, config: &PowerConfig, now: Now) -> bool {
    let ctx = PowerContext::new(seen, config, "", 0.0, now);
    let newest = ctx
        .newest_reading(ctx.level_in_use())
        .filter(|read| ctx.is_reading_fresh(read));
    newest.is_some_and(|read| read.result.is_ok())
}

fn power_by_readings(ctx: &PowerContext<'_>, level: usize) -> CurrentPower {
    let newest = ctx
        .newest_reading(level)
        .filter(|read| ctx.is_reading_fresh(read));
    let Some(newest) = newest else {
        return CurrentPower::Unknown;
    };
    match &newest.result {
        Ok(PowerReading::On) => CurrentPower::On,
        Ok(PowerReading::Off) => {
            let twice = ctx.two_off_readings(level, Duration::ZERO, ctx.config.confirm);
            let is_off = twice.is_some_and(|(first, _)| ctx.is_reading_fresh(first))
                && ctx.crosscheck_level(level) == BmcCrosscheck::Agrees
                && ctx.living_node().is_none();
            if is_off {
                CurrentPower::Off
            } else {
                CurrentPower::Unknown
            }
        }
        Ok(PowerReading::PoweringOn | PowerReading::PoweringOff) | Err(_) => CurrentPower::Unknown,
    }
}

//! Whether a host is powered on, as far as we know now. Source: specification §4.1.

use std::time::Duration;

use super::bmc::Reading;
use super::config::Config;
use super::context::Context;
use super::gate::{self, Knows};
use super::seen::Seen;
use super::witness::Witness;
use crate::Now;

/// What the truth table of remediation asks of a host's power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PowerNow {
    /// Our newest reading says on.
    On,
    /// Our two newest readings say off, of every device of the level.
    Off,
    /// Never read, too old, an error, or between the two: neither.
    Unknown,
}

/// Whether the host is powered on, by readings of the level in use that are not older than two polls, a
/// confirm interval apart for off. Less than a proof: nothing is released on it.
pub fn now(seen: &Seen, config: &Config, now: Now) -> PowerNow {
    let ctx = Context::new(seen, config, "", 0.0, now);
    if !seen.same_system.is_empty() {
        return PowerNow::Unknown;
    }
    let knows = gate::refusal(&ctx).map_or(Knows::Power, |refusal| refusal.knows);
    match knows {
        Knows::Power => read(&ctx, ctx.level()),
        Knows::Theirs => read(&ctx, 0),
        Knows::Nothing | Knows::Unknown => PowerNow::Unknown,
    }
}

/// When the first of the newest unbroken readings of off of the level in use was asked, by this process'
/// monotonic clock; `None`: it was not off when it was last read.
pub fn off_since(seen: &Seen, config: &Config, now: Now) -> Option<Duration> {
    let ctx = Context::new(seen, config, "", 0.0, now);
    seen.memory.off_since.get(ctx.level()).copied()
}

/// Whether the level in use answered when it was last read, not longer than two polls ago.
pub fn answers(seen: &Seen, config: &Config, now: Now) -> bool {
    let ctx = Context::new(seen, config, "", 0.0, now);
    let newest = ctx.newest(ctx.level()).filter(|read| ctx.is_fresh(read));
    newest.is_some_and(|read| read.said.is_ok())
}

fn read(ctx: &Context<'_>, level: usize) -> PowerNow {
    let newest = ctx.newest(level).filter(|read| ctx.is_fresh(read));
    let Some(newest) = newest else {
        return PowerNow::Unknown;
    };
    match &newest.said {
        Ok(Reading::On) => PowerNow::On,
        Ok(Reading::Off) => {
            let twice = ctx.off_twice(level, Duration::ZERO, ctx.config.confirm);
            let is_off = twice.is_some_and(|(first, _)| ctx.is_fresh(first))
                && ctx.witness(level) == Witness::Agrees
                && ctx.living_node().is_none();
            if is_off {
                PowerNow::Off
            } else {
                PowerNow::Unknown
            }
        }
        Ok(Reading::PoweringOn | Reading::PoweringOff) | Err(_) => PowerNow::Unknown,
    }
}

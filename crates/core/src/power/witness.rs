//! What the BMC says of an off that another level brought about. A PDU proves that an outlet is off, not
//! whose it is: a BMC that says "on" after it names the wrong outlet.

use std::time::Duration;

use super::context::Context;
use super::readings::next_poll;
use super::step::Step;

/// A BMC may live on for a moment without power; what it says then means nothing. Power supplies hold up for
/// some 20 ms at full load, and longer with little.
pub(super) const HOLD_UP: Duration = Duration::from_secs(1);

/// The BMC's word on the level's off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Witness {
    /// It is the level, or it does not say anything else; without power it says nothing.
    Agrees,
    /// It was not asked yet since the level was off, or too long ago.
    NotAsked,
    /// It says that the machine runs.
    Contradicts,
}

impl Context<'_> {
    pub(super) fn witness(&self, level: usize) -> Witness {
        if level == 0 {
            return Witness::Agrees;
        }
        let since = self.witness_since(level);
        let asked = since.and_then(|since| self.newest_since(0, since));
        if self.is_contradicted(level) {
            Witness::Contradicts
        } else if asked.is_some_and(|read| self.is_fresh(read)) {
            Witness::Agrees
        } else {
            Witness::NotAsked
        }
    }

    /// Whether it said not longer than two polls ago, while the level was off, that the machine runs. An answer
    /// of either that fails now and then hides nothing.
    fn is_contradicted(&self, level: usize) -> bool {
        let asked = self.seen.memory.contradicted.get(level);
        asked.is_some_and(|asked| self.is_recent(*asked))
    }

    /// From when on the BMC's word on the level's off counts.
    fn witness_since(&self, level: usize) -> Option<Duration> {
        let since = self.seen.memory.off_since.get(level)?;
        Some(since.saturating_add(HOLD_UP))
    }
}

/// Asks the BMC, beside a level that is off, and again while it contradicts.
pub(super) fn ask(ctx: &Context<'_>, step: &mut Step, level: usize) {
    let Some(since) = ctx.witness_since(level).filter(|_| level > 0) else {
        return;
    };
    let due = match (ctx.witness(level), ctx.newest_since(0, since)) {
        (Witness::Contradicts, Some(read)) => read.answered.saturating_add(ctx.config.confirm),
        (Witness::Agrees, Some(_)) => next_poll(ctx, 0),
        (Witness::NotAsked, _) | (_, None) => since,
    };
    step.read(ctx, 0, due, "whether the BMC agrees that it is off");
}

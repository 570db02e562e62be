//! What the BMC says of an off that another level brought about. A PDU proves that an outlet is off, not
//! whose it is: a BMC that says "on" after it names the wrong outlet.

use super::context::Context;
use super::readings::next_poll;
use super::step::Step;

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
        let since = self.seen.memory.off_since.get(&level);
        let said = since.and_then(|since| self.newest_since(0, *since));
        match said.filter(|read| self.is_fresh(read)) {
            None => Witness::NotAsked,
            Some(read) if read.shows_life() => Witness::Contradicts,
            Some(_) => Witness::Agrees,
        }
    }
}

/// Asks the BMC, beside a level that is off, and again while it contradicts.
pub(super) fn ask(ctx: &Context<'_>, step: &mut Step, level: usize) {
    let Some(since) = ctx.seen.memory.off_since.get(&level).filter(|_| level > 0) else {
        return;
    };
    let due = match (ctx.witness(level), ctx.newest_since(0, *since)) {
        (Witness::Contradicts, Some(read)) => read.answered.saturating_add(ctx.config.confirm),
        (Witness::Agrees, Some(_)) => next_poll(ctx, 0),
        (Witness::NotAsked, _) | (_, None) => ctx.now.mono,
    };
    step.read(ctx, 0, due, "whether the BMC agrees that it is off");
}

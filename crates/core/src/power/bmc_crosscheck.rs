//! Checks with the BMC after another level has cut the power. A PDU proves that an outlet is off,
//! not that it feeds this host: if the BMC still says "on", the outlet is the wrong one.

use std::time::Duration;

use super::context::PowerContext;
use super::readings::next_poll_at;
use super::step::PowerStep;

/// A BMC may run on for a moment without power; its answers in that time mean nothing. Power
/// supplies hold up for some 20 ms at full load, and longer at low load.
pub(super) const PSU_HOLD_UP: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BmcCrosscheck {
    /// The BMC is the level itself, or it does not contradict: a BMC without power gives no answer.
    Agrees,
    /// The BMC was not asked since the level went off, or too long ago.
    NotAsked,
    /// Nothing is known of the machine: the BMC's address or its Secret cannot be used, or another
    /// machine answers at its address.
    CannotBeAsked,
    /// The BMC says that the machine runs.
    Contradicts,
}

impl PowerContext<'_> {
    pub(super) fn crosscheck_level(&self, level: usize) -> BmcCrosscheck {
        if level == 0 {
            return BmcCrosscheck::Agrees;
        }
        let since = self.crosscheck_since(level);
        let asked = since.and_then(|since| self.newest_reading_since(0, since));
        if self.is_bmc_other_machine() {
            BmcCrosscheck::CannotBeAsked
        } else if self.is_level_contradicted(level) {
            BmcCrosscheck::Contradicts
        } else if asked.is_some_and(|read| self.is_reading_fresh(read)) {
            BmcCrosscheck::Agrees
        } else if self.is_bmc_unusable() {
            BmcCrosscheck::CannotBeAsked
        } else {
            BmcCrosscheck::NotAsked
        }
    }

    /// Whether the BMC said, while the level was off and at most two polls ago, that the machine
    /// runs. A later failed reading of the BMC or of the level does not undo that.
    fn is_level_contradicted(&self, level: usize) -> bool {
        let asked = self.seen.memory.contradicted.get(level);
        asked.is_some_and(|asked| self.is_recent(*asked))
    }

    /// The moment from which the BMC's answers about this off count.
    fn crosscheck_since(&self, level: usize) -> Option<Duration> {
        let since = self.seen.memory.off_since.get(level)?;
        Some(since.saturating_add(PSU_HOLD_UP))
    }
}

/// Reads the BMC while another level is off, and again while it contradicts.
pub(super) fn request_crosscheck(ctx: &PowerContext<'_>, step: &mut PowerStep, level: usize) {
    let Some(since) = ctx.crosscheck_since(level).filter(|_| level > 0) else {
        return;
    };
    let due = match (
        ctx.crosscheck_level(level),
        ctx.newest_reading_since(0, since),
    ) {
        (BmcCrosscheck::Contradicts, Some(read)) => {
            read.answered.saturating_add(ctx.config.confirm)
        }
        (BmcCrosscheck::CannotBeAsked, _) if ctx.is_bmc_unusable() => return,
        (BmcCrosscheck::Agrees, Some(_)) | (BmcCrosscheck::CannotBeAsked, _) => {
            next_poll_at(ctx, 0)
        }
        (BmcCrosscheck::NotAsked, _) | (_, None) => since,
    };
    step.read_level_at(ctx, 0, due, "whether the BMC also reports off");
}

//! Abstract time. A state keeps no time: everything in it happened at one moment. A decision is
//! made at that moment, a little later, or long after it. So every timer may have fired or not,
//! at each decision anew: more than any real clock can do, never less.

use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::lock::LockRecord;
use dogwatch_core::reboot::{NodePatch, RebootRecord, RecordChange};
use jiff::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Clock {
    /// No timer has fired.
    Same,
    /// The short timers have fired: pauses between bids, `settle`, the first retry.
    Soon,
    /// Every timer has fired.
    Late,
}

impl Clock {
    pub const ALL: [Clock; 3] = [Clock::Same, Clock::Soon, Clock::Late];

    pub fn decision_time(self) -> Now {
        let passed = match self {
            Clock::Same => Duration::ZERO,
            Clock::Soon => Duration::from_secs(90),
            Clock::Late => Duration::from_hours(60),
        };
        let start = state_time();
        Now {
            wall: start.wall + jiff::SignedDuration::try_from(passed).expect("60 hours fit"),
            mono: start.mono + passed,
        }
    }
}

/// The one moment of all that a state remembers.
pub fn state_time() -> Now {
    Now {
        wall: state_wall(),
        mono: Duration::from_hours(100),
    }
}

fn state_wall() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("a time of this century")
}

/// The first retry pause, which `Clock::Soon` outlasts.
const RETRY_PAUSE: Duration = Duration::from_mins(1);

/// Takes out what only people read, and moves every time to the state's moment.
pub fn forget_record_times(record: &mut RebootRecord) {
    record.message.clear();
    record.began.clear();
    (record.since, record.planned) = (state_wall(), state_wall());
    record.retry_after = record.retry_after.map(|_| state_wall() + RETRY_PAUSE);
    record.usable = record.usable.map(|_| state_wall());
    // How often a reboot was given up only makes the pauses longer.
    record.failures = record.failures.min(1);
}

pub fn forget_patch_times(patch: &mut NodePatch) {
    if let RecordChange::Set(record) = &mut patch.record {
        forget_record_times(record);
    }
    if let Some(last) = &mut patch.last {
        last.began.clear();
        (last.planned, last.finished) = (state_wall(), state_wall());
        last.rebooted = last.rebooted.map(|_| state_wall());
    }
}

pub fn forget_lock_times(record: &mut LockRecord) {
    record.since = state_wall();
}

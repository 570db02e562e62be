//! The settings of the power controller.

use std::time::Duration;

use crate::backoff::BackoffRange;

/// The flags of the power controller, and constants with their reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowerConfig {
    /// `--power-poll-interval`: how often an idle host is read.
    pub poll: Duration,
    /// `--power-check-interval`: how often power control is checked before it is needed.
    pub check: Duration,
    /// `--power-confirm-interval`: the minimum time between two readings that confirm off.
    pub confirm: Duration,
    /// `--power-settle`: how long a BMC may still run a command whose end is unknown.
    pub settle: Duration,
    /// `--soft-power-off-timeout`: how long an operating system may take to shut down.
    pub soft: Duration,
    /// `--bmc-timeout`: the deadline of one call.
    pub call: Duration,
}

impl Default for PowerConfig {
    fn default() -> Self {
        Self {
            poll: Duration::from_mins(1),
            check: Duration::from_mins(5),
            confirm: Duration::from_secs(5),
            settle: Duration::from_secs(30),
            soft: Duration::from_mins(3),
            call: Duration::from_secs(10),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "--power-poll-interval must be at least twice --power-confirm-interval: otherwise two polls \
     in a row are too close to each other to confirm that a host is off"
)]
pub struct PollsTooClose;

impl PowerConfig {
    /// Checks that with these flags every host can be proved off and come on again.
    ///
    /// # Errors
    /// Names the flags that contradict each other.
    pub fn check_intervals(&self) -> Result<(), PollsTooClose> {
        if self.poll < self.confirm.saturating_mul(2) {
            return Err(PollsTooClose);
        }
        Ok(())
    }

    /// How long to wait for the effect of an answered command before it counts as ineffective. A
    /// BMC may run it for `--power-settle`; a slow BMC needs time to finish a reading and to answer
    /// a new one.
    pub(super) fn command_effect_timeout(&self) -> Duration {
        let slow = self.call.saturating_mul(2) + Duration::from_secs(1);
        self.settle.max(slow)
    }

    /// The age up to which a reading counts as current: two polls. Where polls are closer together
    /// than that, the time in which a BMC that takes the full deadline per call answers two more
    /// readings, a confirm interval apart.
    pub(super) fn max_reading_age(&self) -> Duration {
        let twice = self.call.saturating_add(self.confirm).saturating_mul(2);
        let slow = twice.saturating_add(Duration::from_secs(1));
        self.poll.saturating_mul(2).max(slow)
    }

    /// A command is sent within this time after the API server has confirmed its record on the
    /// host; otherwise it is decided anew, on a fresh version of the host.
    pub const MAX_SEND_DELAY: Duration = Duration::from_secs(2);
    /// The waits before a command is repeated while a power-off is pending. Never hours. Source:
    /// specification §3.3.
    pub const COMMAND_BACKOFF: BackoffRange =
        BackoffRange::new(Duration::from_secs(1), Duration::from_mins(1));
    /// After this many commands without effect the next level is used.
    pub const TRIES_PER_LEVEL: u32 = 3;
}

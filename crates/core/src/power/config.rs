//! What the power controller was told by its flags.

use std::time::Duration;

/// The flags, and constants with their reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// `--power-poll-interval`: how often a host is read when nothing is under way.
    pub poll: Duration,
    /// `--power-check-interval`: how often power control is checked before it is needed.
    pub check: Duration,
    /// `--power-confirm-interval`: how far apart two readings of off must be.
    pub confirm: Duration,
    /// `--power-settle`: how long a BMC may still run a command whose end is unknown.
    pub settle: Duration,
    /// `--soft-power-off-timeout`: how long an operating system may take to shut down.
    pub soft: Duration,
    /// `--bmc-timeout`: how long one call may take.
    pub call: Duration,
}

impl Default for Config {
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

/// Flags that contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "--power-poll-interval must be at least twice --power-confirm-interval: two polls in a row would else be too close to each other to confirm that a host is off"
)]
pub struct PollsTooClose;

impl Config {
    /// Whether all hosts can be proved off with these flags, and come on again.
    ///
    /// # Errors
    /// Which flags contradict each other.
    pub fn check(&self) -> Result<(), PollsTooClose> {
        if self.poll < self.confirm.saturating_mul(2) {
            return Err(PollsTooClose);
        }
        Ok(())
    }

    /// How long an answered command is looked for before it counts as one that did not take: a BMC may run it for
    /// `--power-settle`, and a slow one is asked in the meantime, after a reading that was under way.
    pub(super) fn patience(&self) -> Duration {
        let slow = self.call.saturating_mul(2) + Duration::from_secs(1);
        self.settle.max(slow)
    }

    /// How long what was read counts as read now: two polls, or until a BMC that takes as long as a call may has
    /// answered twice more, a confirm interval apart, where the polls are closer to each other than that.
    pub(super) fn fresh_for(&self) -> Duration {
        let twice = self.call.saturating_add(self.confirm).saturating_mul(2);
        let slow = twice.saturating_add(Duration::from_secs(1));
        self.poll.saturating_mul(2).max(slow)
    }

    /// A command is sent within so long of the answer to the write of its intention; else it is
    /// decided anew, on a fresh version of the host.
    pub const SEND_WITHIN: Duration = Duration::from_secs(2);
    /// A command that is due again waits at most so long, while a power-off is pending. Never hours.
    /// Source: specification §3.3.
    pub const LONGEST_BACKOFF: Duration = Duration::from_mins(1);
    /// A level is left for the next one after so many commands came to nothing.
    pub const TRIES_PER_LEVEL: u32 = 3;
}

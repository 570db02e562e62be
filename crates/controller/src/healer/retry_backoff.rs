//! Back-off between attempts on one object after errors.

use std::time::Duration;

const SHORTEST_RETRY_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_RETRY_PAUSE: Duration = Duration::from_mins(5);

/// Each pause is twice as long as the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RetryBackoff {
    pause: Duration,
    until: Option<Duration>,
}

impl RetryBackoff {
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn record_failure(&mut self, now: Duration) {
        self.record_failure_within(SHORTEST_RETRY_PAUSE, LONGEST_RETRY_PAUSE, now);
    }

    /// Like [`Self::record_failure`], with other bounds.
    pub(crate) fn record_failure_within(
        &mut self,
        shortest: Duration,
        longest: Duration,
        now: Duration,
    ) {
        self.pause = (self.pause * 2).clamp(shortest, longest);
        self.until = Some(now + self.pause);
    }

    /// No attempt before this moment (monotonic).
    pub(crate) fn blocked_until(&self) -> Option<Duration> {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_makes_the_pauses_longer_up_to_five_minutes_and_success_ends_them() {
        let mut pace = RetryBackoff::default();
        let now = Duration::from_secs(100);
        let mut pauses = Vec::new();
        for _ in 0..11 {
            pace.record_failure(now);
            pauses.push(pace.blocked_until().unwrap().saturating_sub(now).as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        pace.reset();
        assert_eq!(pace.blocked_until(), None);
    }
}

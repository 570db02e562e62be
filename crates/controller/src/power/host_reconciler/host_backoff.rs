//! Back-off after failed writes and reads of one host.

use std::time::Duration;

const SHORTEST_RETRY_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_RETRY_PAUSE: Duration = Duration::from_mins(1);

/// Each pause is twice as long as the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HostBackoff {
    pause: Duration,
    until: Option<Duration>,
}

impl HostBackoff {
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// `jitter` in 0..1 spreads the retries of many hosts with the same error.
    pub(super) fn record_failure(&mut self, jitter: f64, now: Duration) {
        self.pause = (self.pause * 2).clamp(SHORTEST_RETRY_PAUSE, LONGEST_RETRY_PAUSE);
        let spread = self.pause.mul_f64(0.8 + 0.2 * jitter.clamp(0.0, 1.0));
        self.until = Some(now.saturating_add(spread));
    }

    /// When the next attempt is due. `None` after a success, or before any failure.
    pub(super) fn blocked_until(&self) -> Option<Duration> {
        self.until
    }

    pub(super) fn is_blocked(&self, now: Duration) -> bool {
        self.until.is_some_and(|until| until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_minute_and_success_ends_them() {
        let mut pace = HostBackoff::default();
        let now = Duration::from_secs(100);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            pace.record_failure(1.0, now);
            pauses.push(pace.blocked_until().unwrap().saturating_sub(now).as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert!(pace.is_blocked(now) && !pace.is_blocked(now + LONGEST_RETRY_PAUSE));
        pace.reset();
        assert_eq!(pace.blocked_until(), None);
    }
}

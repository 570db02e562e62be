//! Pauses between attempts that fail: each is twice as long as the one before.

use std::time::Duration;

/// The bounds of the pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackoffRange {
    pub shortest: Duration,
    pub longest: Duration,
}

impl BackoffRange {
    pub const fn new(shortest: Duration, longest: Duration) -> Self {
        Self { shortest, longest }
    }

    /// The pause after a failure, if there were `earlier` failures in a row before it.
    pub fn pause_after(self, earlier: u32) -> Duration {
        let doubled = self.shortest.saturating_mul(2_u32.saturating_pow(earlier));
        doubled.min(self.longest)
    }
}

/// The back-off of one subject: how long it paused last, and until when it pauses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetryBackoff {
    pause: Duration,
    until: Option<Duration>,
}

impl RetryBackoff {
    /// After a success.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// The next pause, for a caller that sleeps. Failures of one subject may have different ranges.
    pub fn next_pause(&mut self, range: BackoffRange) -> Duration {
        let doubled = self.pause.saturating_mul(2);
        self.pause = doubled.clamp(range.shortest, range.longest);
        self.pause
    }

    pub fn record_failure(&mut self, range: BackoffRange, now: Duration) {
        let pause = self.next_pause(range);
        self.until = Some(now.saturating_add(pause));
    }

    /// Like [`Self::record_failure`]; `jitter` in 0..1 spreads the retries of many subjects with
    /// the same error.
    pub fn record_failure_with_jitter(&mut self, range: BackoffRange, jitter: f64, now: Duration) {
        let pause = spread_pause(self.next_pause(range), jitter);
        self.until = Some(now.saturating_add(pause));
    }

    /// Whether the last attempt failed.
    pub fn has_failed(&self) -> bool {
        !self.pause.is_zero()
    }

    /// No attempt before this moment (monotonic). `None`: an attempt may be made now.
    pub fn blocked_until(&self, now: Duration) -> Option<Duration> {
        self.until.filter(|until| *until > now)
    }
}

/// 80 to 100 % of `pause`; `jitter` is in 0..1.
pub fn spread_pause(pause: Duration, jitter: f64) -> Duration {
    pause.mul_f64(0.8 + 0.2 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: BackoffRange = BackoffRange::new(Duration::from_secs(1), Duration::from_mins(5));
    const NOW: Duration = Duration::from_secs(100);

    #[test]
    fn failures_make_the_pauses_longer_up_to_the_longest_and_success_ends_them() {
        let mut backoff = RetryBackoff::default();
        let mut pauses = Vec::new();
        for _ in 0..11 {
            backoff.record_failure(RANGE, NOW);
            pauses.push(
                backoff
                    .blocked_until(NOW)
                    .unwrap()
                    .saturating_sub(NOW)
                    .as_secs(),
            );
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert!(backoff.has_failed());
        assert_eq!(backoff.blocked_until(NOW + RANGE.longest), None);
        backoff.reset();
        assert_eq!(backoff.blocked_until(NOW), None);
        assert!(!backoff.has_failed());
    }

    #[test]
    fn the_pause_after_a_number_of_failures_is_the_pause_that_they_lead_to() {
        let mut backoff = RetryBackoff::default();
        for earlier in 0..12 {
            assert_eq!(backoff.next_pause(RANGE), RANGE.pause_after(earlier));
        }
        assert_eq!(RANGE.pause_after(u32::MAX), RANGE.longest);
    }

    #[test]
    fn another_range_bounds_the_next_pause() {
        let mut backoff = RetryBackoff::default();
        let short = BackoffRange::new(Duration::from_millis(20), Duration::from_secs(2));
        assert_eq!(backoff.next_pause(short), Duration::from_millis(20));
        assert_eq!(backoff.next_pause(RANGE), RANGE.shortest);
        assert_eq!(backoff.next_pause(short), Duration::from_secs(2));
    }

    #[test]
    fn jitter_takes_away_a_fifth_at_most() {
        for (jitter, seconds) in [(0.0, 8.0), (0.5, 9.0), (1.0, 10.0), (7.0, 10.0)] {
            let pause = spread_pause(Duration::from_secs(10), jitter);
            assert!((pause.as_secs_f64() - seconds).abs() < 1e-6, "{jitter}");
        }
        let mut backoff = RetryBackoff::default();
        backoff.record_failure_with_jitter(RANGE, 0.0, NOW);
        let expected = NOW + Duration::from_millis(800);
        assert_eq!(backoff.blocked_until(NOW), Some(expected));
    }
}

//! How soon something is tried again that did not work.

use std::time::Duration;

const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(1);

/// Pauses, each twice as long as the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pace {
    pause: Duration,
    until: Option<Duration>,
}

impl Pace {
    /// It worked.
    pub(super) fn well(&mut self) {
        *self = Self::default();
    }

    /// It did not. `jitter` in 0..1 spreads many hosts with one trouble.
    pub(super) fn trouble(&mut self, jitter: f64, now: Duration) {
        self.pause = (self.pause * 2).clamp(SHORTEST, LONGEST);
        let spread = self.pause.mul_f64(0.8 + 0.2 * jitter.clamp(0.0, 1.0));
        self.until = Some(now.saturating_add(spread));
    }

    /// When it may be tried again; `None`: it may now, as far as it was ever in trouble.
    pub(super) fn until(&self) -> Option<Duration> {
        self.until
    }

    /// Whether it has to wait.
    pub(super) fn waits(&self, now: Duration) -> bool {
        self.until.is_some_and(|until| until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_minute_and_success_ends_them() {
        let mut pace = Pace::default();
        let now = Duration::from_secs(100);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            pace.trouble(1.0, now);
            pauses.push(pace.until().unwrap().saturating_sub(now).as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert!(pace.waits(now) && !pace.waits(now + LONGEST));
        pace.well();
        assert_eq!(pace.until(), None);
    }
}

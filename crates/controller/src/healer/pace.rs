//! How soon an object is tried again that there was trouble with.

use std::time::Duration;

const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(5);

/// One object's pauses: each twice as long as the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    pause: Duration,
    until: Option<Duration>,
}

impl Pace {
    /// It worked.
    pub(crate) fn well(&mut self) {
        *self = Self::default();
    }

    /// It did not.
    pub(crate) fn trouble(&mut self, now: Duration) {
        self.again(SHORTEST, LONGEST, now);
    }

    /// The same, with pauses between these.
    pub(crate) fn again(&mut self, shortest: Duration, longest: Duration, now: Duration) {
        self.pause = (self.pause * 2).clamp(shortest, longest);
        self.until = Some(now + self.pause);
    }

    /// Not to be tried before.
    pub(crate) fn until(&self) -> Option<Duration> {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_makes_the_pauses_longer_up_to_five_minutes_and_success_ends_them() {
        let mut pace = Pace::default();
        let now = Duration::from_secs(100);
        let mut pauses = Vec::new();
        for _ in 0..11 {
            pace.trouble(now);
            pauses.push(pace.until().unwrap().saturating_sub(now).as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        pace.well();
        assert_eq!(pace.until(), None);
    }
}

//! The history of a value: a coordinator may act on a view that is a moment old.

use jiff::{SignedDuration, Timestamp};

/// Every value, with the time at which it was set.
#[derive(Debug)]
pub(super) struct ValueHistory<T>(Vec<(Timestamp, T)>);

impl<T> ValueHistory<T> {
    pub(super) fn starting_with(value: T) -> Self {
        Self(vec![(Timestamp::MIN, value)])
    }

    pub(super) fn record_value(&mut self, at: Timestamp, value: T) {
        self.0.push((at, value));
    }

    pub(super) fn newest_value(&self) -> &T {
        let (_, value) = self.0.last().expect("it began with a value");
        value
    }

    /// Returns every value that was valid at some moment of the last `slack` before `at`, both ends
    /// included, the newest first.
    pub(super) fn values_within(
        &self,
        at: Timestamp,
        slack: SignedDuration,
    ) -> impl Iterator<Item = &T> {
        let from = at.saturating_sub(slack).unwrap_or(Timestamp::MIN);
        let mut after: Option<Timestamp> = None;
        let stood = self.0.iter().rev().filter(move |(came, _)| {
            let ended_before = after.is_some_and(|after| after < from);
            after = Some(*came);
            *came <= at && !ended_before
        });
        stood.map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn what_was_replaced_within_the_slack_stood_too() {
        let mut past = ValueHistory::starting_with("a");
        past.record_value(at(10), "b");
        past.record_value(at(20), "c");
        let stood = |second, slack| -> Vec<&str> {
            past.values_within(at(second), SignedDuration::from_secs(slack))
                .copied()
                .collect()
        };
        assert_eq!(stood(5, 0), ["a"]);
        assert_eq!(stood(20, 0), ["c", "b"]);
        assert_eq!(stood(21, 0), ["c"]);
        assert_eq!(stood(25, 5), ["c", "b"]);
        assert_eq!(stood(25, 20), ["c", "b", "a"]);
        assert_eq!(*past.newest_value(), "c");
    }
}

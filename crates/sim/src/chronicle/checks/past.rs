//! What stood when: a coordinator may act on what it saw a moment ago.

use jiff::{SignedDuration, Timestamp};

/// Every value that stood, with the moment it came.
#[derive(Debug)]
pub(super) struct Past<T>(Vec<(Timestamp, T)>);

impl<T> Past<T> {
    pub(super) fn of(value: T) -> Self {
        Self(vec![(Timestamp::MIN, value)])
    }

    pub(super) fn now_is(&mut self, at: Timestamp, value: T) {
        self.0.push((at, value));
    }

    pub(super) fn newest(&self) -> &T {
        let (_, value) = self.0.last().expect("it began with a value");
        value
    }

    /// Every value that stood at some moment of the last `slack` before `at`, both ends included,
    /// the newest first.
    pub(super) fn stood(&self, at: Timestamp, slack: SignedDuration) -> impl Iterator<Item = &T> {
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
        let mut past = Past::of("a");
        past.now_is(at(10), "b");
        past.now_is(at(20), "c");
        let stood = |second, slack| -> Vec<&str> {
            past.stood(at(second), SignedDuration::from_secs(slack))
                .copied()
                .collect()
        };
        assert_eq!(stood(5, 0), ["a"]);
        assert_eq!(stood(20, 0), ["c", "b"]);
        assert_eq!(stood(21, 0), ["c"]);
        assert_eq!(stood(25, 5), ["c", "b"]);
        assert_eq!(stood(25, 20), ["c", "b", "a"]);
        assert_eq!(*past.newest(), "c");
    }
}

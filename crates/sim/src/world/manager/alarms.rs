//! When to look at what again, each thing once, at its earliest moment.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

/// The moments.
#[derive(Debug)]
pub struct Alarms<K> {
    by_key: BTreeMap<K, Instant>,
    by_time: BTreeSet<(Instant, K)>,
}

impl<K> Default for Alarms<K> {
    fn default() -> Self {
        Self {
            by_key: BTreeMap::new(),
            by_time: BTreeSet::new(),
        }
    }
}

impl<K: Ord + Clone> Alarms<K> {
    /// Looks at `key` at this moment, unless it is to be looked at before.
    pub fn set(&mut self, key: K, at: Instant) {
        if let Some(known) = self.by_key.get(&key) {
            if *known <= at {
                return;
            }
            self.by_time.remove(&(*known, key.clone()));
        }
        self.by_key.insert(key.clone(), at);
        self.by_time.insert((at, key));
    }

    /// Takes out what is due.
    pub fn due(&mut self, now: Instant) -> Vec<K> {
        let mut due = Vec::new();
        while self.next().is_some_and(|at| at <= now) {
            let Some((_, key)) = self.by_time.pop_first() else {
                break;
            };
            self.by_key.remove(&key);
            due.push(key);
        }
        due
    }

    /// The earliest moment.
    pub fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_key_rings_once_and_at_its_earliest_moment() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let mut alarms = Alarms::default();
        alarms.set("a", at(5));
        alarms.set("a", at(3));
        alarms.set("a", at(9));
        alarms.set("b", at(4));
        assert_eq!(alarms.next(), Some(at(3)));
        assert_eq!(alarms.due(at(4)), ["a", "b"]);
        assert_eq!(alarms.next(), None);
    }
}

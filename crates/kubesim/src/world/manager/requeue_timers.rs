//! Timers that requeue each key once, at its earliest time.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

#[derive(Debug)]
pub struct RequeueTimers<K> {
    by_key: BTreeMap<K, Instant>,
    by_time: BTreeSet<(Instant, K)>,
}

impl<K> Default for RequeueTimers<K> {
    fn default() -> Self {
        Self {
            by_key: BTreeMap::new(),
            by_time: BTreeSet::new(),
        }
    }
}

impl<K: Ord + Clone> RequeueTimers<K> {
    /// Requeues `key` at this time, unless it is due earlier.
    pub fn set_earliest(&mut self, key: K, at: Instant) {
        if let Some(known) = self.by_key.get(&key) {
            if *known <= at {
                return;
            }
            self.by_time.remove(&(*known, key.clone()));
        }
        self.by_key.insert(key.clone(), at);
        self.by_time.insert((at, key));
    }

    pub fn take_due(&mut self, now: Instant) -> Vec<K> {
        let mut due = Vec::new();
        while self.next_due().is_some_and(|at| at <= now) {
            let Some((_, key)) = self.by_time.pop_first() else {
                break;
            };
            self.by_key.remove(&key);
            due.push(key);
        }
        due
    }

    pub fn next_due(&self) -> Option<Instant> {
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
        let mut alarms = RequeueTimers::default();
        alarms.set_earliest("a", at(5));
        alarms.set_earliest("a", at(3));
        alarms.set_earliest("a", at(9));
        alarms.set_earliest("b", at(4));
        assert_eq!(alarms.next_due(), Some(at(3)));
        assert_eq!(alarms.take_due(at(4)), ["a", "b"]);
        assert_eq!(alarms.next_due(), None);
    }
}

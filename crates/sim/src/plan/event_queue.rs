//! A queue of future events by time; events at the same time keep their order of insertion.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Future events. The order is deterministic: no two entries compare equal.
#[derive(Debug)]
pub(super) struct EventQueue<T> {
    heap: BinaryHeap<Reverse<(Duration, u64)>>,
    events: std::collections::BTreeMap<u64, T>,
    next: u64,
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            events: std::collections::BTreeMap::new(),
            next: 0,
        }
    }
}

impl<T> EventQueue<T> {
    pub(super) fn schedule_event(&mut self, at: Duration, event: T) {
        self.heap.push(Reverse((at, self.next)));
        self.events.insert(self.next, event);
        self.next += 1;
    }

    pub(super) fn pop_event(&mut self) -> Option<(Duration, T)> {
        let Reverse((at, serial)) = self.heap.pop()?;
        let event = self
            .events
            .remove(&serial)
            .expect("every entry of the heap has its event");
        Some((at, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_equals_keep_their_order() {
        let mut queue = EventQueue::default();
        let at = Duration::from_secs;
        queue.schedule_event(at(2), "c");
        queue.schedule_event(at(1), "a");
        queue.schedule_event(at(1), "b");
        let order: Vec<&str> = std::iter::from_fn(|| queue.pop_event())
            .map(|(_, event)| event)
            .collect();
        assert_eq!(order, ["a", "b", "c"]);
    }
}

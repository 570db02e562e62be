//! What happens when: a heap of moments, equal ones in the order they were put in.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Future events. Everything is deterministic: no two entries compare equal.
#[derive(Debug)]
pub(super) struct Queue<T> {
    heap: BinaryHeap<Reverse<(Duration, u64)>>,
    events: std::collections::BTreeMap<u64, T>,
    next: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            events: std::collections::BTreeMap::new(),
            next: 0,
        }
    }
}

impl<T> Queue<T> {
    pub(super) fn put(&mut self, at: Duration, event: T) {
        self.heap.push(Reverse((at, self.next)));
        self.events.insert(self.next, event);
        self.next += 1;
    }

    pub(super) fn take(&mut self) -> Option<(Duration, T)> {
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
        let mut queue = Queue::default();
        let at = Duration::from_secs;
        queue.put(at(2), "c");
        queue.put(at(1), "a");
        queue.put(at(1), "b");
        let order: Vec<&str> = std::iter::from_fn(|| queue.take())
            .map(|(_, event)| event)
            .collect();
        assert_eq!(order, ["a", "b", "c"]);
    }
}

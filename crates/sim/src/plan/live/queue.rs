//! The nodes and hosts that wait for a group's lock.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_core::lock::{LockWaiter, compare_waiters};
use jiff::Timestamp;

/// One that waits.
#[derive(Debug, Clone)]
pub(super) struct LiveWaiter {
    /// Its index among the group's nodes; `None`: a host at a lock API.
    pub(super) node: Option<usize>,
    pub(super) waiter: LockWaiter,
    /// Not before: a pause after a failure, or the policy's `minInterval`.
    pub(super) ready_at: Option<Timestamp>,
    /// A hold is not asked about the shape of a rollout, and never ends.
    pub(super) is_hold: bool,
}

/// Waiters in the order of the queue.
#[derive(Debug, Default)]
pub(super) struct LiveQueue {
    waiting: BTreeMap<(usize, usize), LiveWaiter>,
    /// How often somebody has queued again.
    requeued: usize,
}

/// The place of a waiter.
pub(super) type LiveQueuePlace = (usize, usize);

impl LiveQueue {
    pub(super) fn of_waiters(waiters: &[LiveWaiter]) -> Self {
        let mut waiters = waiters.to_vec();
        waiters.sort_by(|a, b| compare_waiters(&a.waiter, &b.waiter));
        let numbered = waiters.into_iter().enumerate();
        Self {
            waiting: numbered.map(|(place, it)| ((0, place), it)).collect(),
            requeued: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// In order: those of `zone` first, if the group goes by zones.
    pub(super) fn in_order(
        &self,
        zone: Option<&str>,
    ) -> impl Iterator<Item = (LiveQueuePlace, &LiveWaiter)> {
        let all = || self.waiting.iter().map(|(place, it)| (*place, it));
        let is_near = move |it: &LiveWaiter| zone.is_some() && it.waiter.zone.as_deref() == zone;
        // Without zones, nobody is near: the whole queue need not be looked through for that.
        let near = zone.map(|_| all().filter(move |(_, it)| is_near(it)));
        near.into_iter()
            .flatten()
            .chain(all().filter(move |(_, it)| !is_near(it)))
    }

    pub(super) fn remove_waiter(&mut self, place: LiveQueuePlace) -> Option<LiveWaiter> {
        self.waiting.remove(&place)
    }

    /// Queues at the end, as somebody does whose attempt was undone.
    pub(super) fn queue_again(&mut self, waiter: LiveWaiter) {
        self.requeued += 1;
        self.waiting.insert((1, self.requeued), waiter);
    }

    /// The first time after `now` at which somebody is ready who is not.
    pub(super) fn next_ready(&self, now: Timestamp) -> Option<Timestamp> {
        let times = self.waiting.values().filter_map(|it| it.ready_at);
        times.filter(|at| *at > now).min()
    }
}

/// A duration up to `at`; zero if it has passed.
pub(super) fn duration_until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}

//! The queue of requests for one group's lock in this process, and the one watch of the group's
//! Leases.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use dogwatch_core::lock::{HolderId, MAX_NEXT_WAITERS, ObservedLease};
use dogwatch_core::name::GroupName;
use dogwatch_core::reboot::group_of_lease;
use dogwatch_k8s::Error;
use dogwatch_k8s::lock::{GroupSlots, LocalWaiter, LockClient};
use dogwatch_runtime::clock::ProcessClock;
use dogwatch_runtime::mutex::lock_ignoring_poison;
use futures::StreamExt as _;
use jiff::Timestamp;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use super::lock_state::{LockState, jitter_of};

/// How long a group's Leases are watched after the last request: the next request is often the
/// unlock, or the next host of a rollout.
const IDLE_WATCH_LIFETIME: Duration = Duration::from_mins(1);

pub(super) struct GroupQueue {
    pub(super) group: GroupName,
    waiters: Mutex<BTreeMap<QueueKey, QueuedWaiter>>,
    slots: Mutex<GroupSlots>,
    leases: watch::Sender<Option<Arc<Vec<ObservedLease>>>>,
    clock: ProcessClock,
    idle_since: Mutex<Duration>,
    watching: Mutex<Option<AbortHandle>>,
}

/// The request that has waited longest comes first; of equals, the one that arrived first.
type QueueKey = (Timestamp, u64);

struct QueuedWaiter {
    here: LocalWaiter,
    first: Arc<Notify>,
}

impl Drop for GroupQueue {
    fn drop(&mut self) {
        if let Some(watching) = lock_ignoring_poison(&self.watching).take() {
            watching.abort();
        }
    }
}

impl LockState {
    pub(super) fn queue_of_group(&self, group: &GroupName) -> Arc<GroupQueue> {
        let mut queues = lock_ignoring_poison(&self.queues);
        let queue = queues.entry(group.clone()).or_insert_with(|| {
            let queue = GroupQueue::new(group.clone(), self.setup.clock.clone());
            let task = watch_slots(
                Arc::downgrade(&queue),
                self.lock_client().clone(),
                self.setup.process.clone(),
            );
            *lock_ignoring_poison(&queue.watching) = Some(tokio::spawn(task).abort_handle());
            queue
        });
        *lock_ignoring_poison(&queue.idle_since) = self.now().mono;
        Arc::clone(queue)
    }

    /// Ends the watches of groups that had no request for [`IDLE_WATCH_LIFETIME`].
    pub(super) fn forget_idle_queues(&self) {
        let now = self.now().mono;
        lock_ignoring_poison(&self.queues).retain(|_, queue| {
            let idle =
                Arc::strong_count(queue) == 1 && lock_ignoring_poison(&queue.waiters).is_empty();
            !idle || now < *lock_ignoring_poison(&queue.idle_since) + IDLE_WATCH_LIFETIME
        });
    }
}

impl GroupQueue {
    fn new(group: GroupName, clock: ProcessClock) -> Arc<Self> {
        Arc::new(Self {
            slots: Mutex::new(GroupSlots::new(group.clone())),
            group,
            waiters: Mutex::default(),
            leases: watch::Sender::new(None),
            idle_since: Mutex::new(clock.now().mono),
            clock,
            watching: Mutex::default(),
        })
    }

    /// The group's slots, anew at each change; `None` until they were listed.
    pub(super) fn subscribe_leases(&self) -> watch::Receiver<Option<Arc<Vec<ObservedLease>>>> {
        self.leases.subscribe()
    }

    /// Applies Leases from a list or from an answer to a write. A host that has moved may hold one of
    /// another group: no watch of this queue would ever show that it is free.
    pub(super) fn record_leases(&self, leases: impl IntoIterator<Item = ObservedLease>) {
        let mut slots = lock_ignoring_poison(&self.slots);
        let now = self.clock.now();
        let is_ours =
            |lease: &ObservedLease| group_of_lease(&lease.name).as_ref() == Some(&self.group);
        for lease in leases.into_iter().filter(is_ours) {
            slots.observe_lease(lease, now);
        }
        self.publish_leases(&slots);
    }

    fn publish_leases(&self, slots: &GroupSlots) {
        let leases = slots.current_leases();
        self.leases.send_if_modified(|shown| {
            let changed = shown.as_deref() != leases.as_ref();
            if changed {
                *shown = leases.map(Arc::new);
            }
            changed
        });
    }

    pub(super) fn join_queue(
        self: &Arc<Self>,
        shared: &Arc<LockState>,
        number: u64,
        here: LocalWaiter,
    ) -> QueuePlace {
        let place = (here.since, number);
        let first = Arc::new(Notify::new());
        let waiter = QueuedWaiter {
            here,
            first: Arc::clone(&first),
        };
        lock_ignoring_poison(&self.waiters).insert(place, waiter);
        shared.waiters_changed.notify_one();
        QueuePlace {
            queue: Arc::clone(self),
            shared: Arc::clone(shared),
            place,
            first,
        }
    }

    /// The waiters at the head of the queue.
    pub(super) fn longest_waiting(&self) -> Vec<LocalWaiter> {
        let waiters = lock_ignoring_poison(&self.waiters);
        waiters
            .values()
            .take(MAX_NEXT_WAITERS)
            .map(|waiter| waiter.here.clone())
            .collect()
    }

    pub(super) fn has_holder(&self, holder: &HolderId) -> bool {
        let waiters = lock_ignoring_poison(&self.waiters);
        waiters.values().any(|waiter| waiter.here.holder == *holder)
    }
}

/// A place in the queue. Dropping it gives it up.
pub(super) struct QueuePlace {
    pub(super) queue: Arc<GroupQueue>,
    shared: Arc<LockState>,
    place: QueueKey,
    first: Arc<Notify>,
}

impl QueuePlace {
    /// How many requests are before it.
    pub(super) fn count_before(&self) -> usize {
        lock_ignoring_poison(&self.queue.waiters)
            .range(..self.place)
            .count()
    }

    pub(super) fn is_first(&self) -> bool {
        lock_ignoring_poison(&self.queue.waiters).keys().next() == Some(&self.place)
    }

    /// Waits until no request is before it.
    pub(super) async fn wait_until_first(&self) {
        while !self.is_first() {
            self.first.notified().await;
        }
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let mut waiters = lock_ignoring_poison(&self.queue.waiters);
        waiters.remove(&self.place);
        if let Some(waiter) = waiters.values().next() {
            waiter.first.notify_one();
        }
        *lock_ignoring_poison(&self.queue.idle_since) = self.shared.now().mono;
        self.shared.waiters_changed.notify_one();
    }
}

/// Runs the one watch of a group, however many requests wait.
async fn watch_slots(queue: Weak<GroupQueue>, locks: LockClient, seed: String) {
    let Some(group) = queue.upgrade().map(|queue| queue.group.clone()) else {
        return;
    };
    let mut draws = 0_u64;
    let mut events = std::pin::pin!(locks.watch_slots(&group, move || {
        draws += 1;
        jitter_of(&format!("{seed}/{draws}"))
    }));
    while let Some(event) = events.next().await {
        let Some(queue) = queue.upgrade() else {
            return;
        };
        let mut slots = lock_ignoring_poison(&queue.slots);
        if let Some(error) = slots.observe_event(event, queue.clock.now()) {
            tracing::warn!(error = error.error_chain(), %group, "failed to watch the group's Leases; retrying");
        }
        queue.publish_leases(&slots);
    }
}

/// Creates the missing slots below `slots`, free. Returns whether any was missing.
pub(super) async fn create_missing_slots(
    queue: &GroupQueue,
    locks: &LockClient,
    slots: u32,
) -> Result<bool, Error> {
    let seen = queue.leases.borrow().clone().unwrap_or_default();
    if (0..slots).all(|slot| seen.iter().any(|lease| lease.slot == slot)) {
        return Ok(false);
    }
    locks.ensure_leases(&queue.group, slots, &seen).await?;
    queue.record_leases(locks.list_slots(&queue.group).await?);
    Ok(true)
}

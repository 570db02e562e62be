//! Who waits for one group's lock in this process, and the group's Leases as its one watch shows
//! them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use dogwatch_core::lock::{HINT_LENGTH, HolderId, LeaseSeen};
use dogwatch_core::name::GroupName;
use dogwatch_k8s::Error;
use dogwatch_k8s::lock::{LockClient, Slots, WaitingHere};
use dogwatch_process::clock::Clock;
use futures::StreamExt as _;
use jiff::Timestamp;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use super::shared::{Shared, guard, jitter};

/// How long a group's Leases are watched after the last request: the next one is often the unlock, or
/// the next host of a rollout.
const LINGER: Duration = Duration::from_mins(1);

pub(super) struct Queue {
    pub(super) group: GroupName,
    waiters: Mutex<BTreeMap<Place, Waiter>>,
    slots: Mutex<Slots>,
    leases: watch::Sender<Option<Arc<Vec<LeaseSeen>>>>,
    clock: Clock,
    idle_since: Mutex<Duration>,
    watching: Mutex<Option<AbortHandle>>,
}

/// Longest waiting first; of equals the request that came first.
type Place = (Timestamp, u64);

struct Waiter {
    here: WaitingHere,
    first: Arc<Notify>,
}

impl Drop for Queue {
    fn drop(&mut self) {
        if let Some(watching) = guard(&self.watching).take() {
            watching.abort();
        }
    }
}

impl Shared {
    /// The group's queue.
    pub(super) fn queue(&self, group: &GroupName) -> Arc<Queue> {
        let mut queues = guard(&self.queues);
        let queue = queues.entry(group.clone()).or_insert_with(|| {
            let queue = Queue::new(group.clone(), self.setup.clock.clone());
            let task = watch_slots(
                Arc::downgrade(&queue),
                self.locks().clone(),
                self.setup.process.clone(),
            );
            *guard(&queue.watching) = Some(tokio::spawn(task).abort_handle());
            queue
        });
        *guard(&queue.idle_since) = self.now().mono;
        Arc::clone(queue)
    }

    /// Ends the watches of groups that nobody asked for in a while.
    pub(super) fn forget_idle_queues(&self) {
        let now = self.now().mono;
        guard(&self.queues).retain(|_, queue| {
            let idle = Arc::strong_count(queue) == 1 && guard(&queue.waiters).is_empty();
            !idle || now < *guard(&queue.idle_since) + LINGER
        });
    }
}

impl Queue {
    fn new(group: GroupName, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            slots: Mutex::new(Slots::new(group.clone())),
            group,
            waiters: Mutex::default(),
            leases: watch::Sender::new(None),
            idle_since: Mutex::new(clock.now().mono),
            clock,
            watching: Mutex::default(),
        })
    }

    /// The group's slots, anew at each change; `None` until they were listed.
    pub(super) fn leases(&self) -> watch::Receiver<Option<Arc<Vec<LeaseSeen>>>> {
        self.leases.subscribe()
    }

    /// Takes in what a list or an answer showed.
    pub(super) fn saw(&self, leases: impl IntoIterator<Item = LeaseSeen>) {
        let mut slots = guard(&self.slots);
        let now = self.clock.now();
        for lease in leases {
            slots.saw(lease, now);
        }
        self.show(&slots);
    }

    fn show(&self, slots: &Slots) {
        let leases = slots.leases();
        self.leases.send_if_modified(|shown| {
            let changed = shown.as_deref() != leases.as_ref();
            if changed {
                *shown = leases.map(Arc::new);
            }
            changed
        });
    }

    /// Takes a place.
    pub(super) fn join(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        number: u64,
        here: WaitingHere,
    ) -> InQueue {
        let place = (here.since, number);
        let first = Arc::new(Notify::new());
        let waiter = Waiter {
            here,
            first: Arc::clone(&first),
        };
        guard(&self.waiters).insert(place, waiter);
        shared.waiters_changed.notify_one();
        InQueue {
            queue: Arc::clone(self),
            shared: Arc::clone(shared),
            place,
            first,
        }
    }

    /// The first few.
    pub(super) fn longest_waiting(&self) -> Vec<WaitingHere> {
        let waiters = guard(&self.waiters);
        waiters
            .values()
            .take(HINT_LENGTH)
            .map(|waiter| waiter.here.clone())
            .collect()
    }

    pub(super) fn has(&self, holder: &HolderId) -> bool {
        let waiters = guard(&self.waiters);
        waiters.values().any(|waiter| waiter.here.holder == *holder)
    }
}

/// A place in the queue; dropped, it is given up.
pub(super) struct InQueue {
    pub(super) queue: Arc<Queue>,
    shared: Arc<Shared>,
    place: Place,
    first: Arc<Notify>,
}

impl InQueue {
    /// How many are before it.
    pub(super) fn before(&self) -> usize {
        guard(&self.queue.waiters).range(..self.place).count()
    }

    pub(super) fn is_first(&self) -> bool {
        guard(&self.queue.waiters).keys().next() == Some(&self.place)
    }

    /// Waits until nobody is before it.
    pub(super) async fn first(&self) {
        while !self.is_first() {
            self.first.notified().await;
        }
    }
}

impl Drop for InQueue {
    fn drop(&mut self) {
        let mut waiters = guard(&self.queue.waiters);
        waiters.remove(&self.place);
        if let Some(waiter) = waiters.values().next() {
            waiter.first.notify_one();
        }
        *guard(&self.queue.idle_since) = self.shared.now().mono;
        self.shared.waiters_changed.notify_one();
    }
}

/// The one watch of a group, however many wait.
async fn watch_slots(queue: Weak<Queue>, locks: LockClient, seed: String) {
    let Some(group) = queue.upgrade().map(|queue| queue.group.clone()) else {
        return;
    };
    let mut draws = 0_u64;
    let mut events = std::pin::pin!(locks.watch(&group, move || {
        draws += 1;
        jitter(&format!("{seed}/{draws}"))
    }));
    while let Some(event) = events.next().await {
        let Some(queue) = queue.upgrade() else {
            return;
        };
        let mut slots = guard(&queue.slots);
        if let Some(error) = slots.observe(event, queue.clock.now()) {
            tracing::warn!(error = error.in_words(), %group, "cannot watch the group's Leases; trying again");
        }
        queue.show(&slots);
    }
}

/// Makes the slots below `slots` that are missing, free. Answers whether any was.
pub(super) async fn make_slots(
    queue: &Queue,
    locks: &LockClient,
    slots: u32,
) -> Result<bool, Error> {
    let seen = queue.leases.borrow().clone().unwrap_or_default();
    if (0..slots).all(|slot| seen.iter().any(|lease| lease.slot == slot)) {
        return Ok(false);
    }
    locks.ensure(&queue.group, slots, &seen).await?;
    queue.saw(locks.list(&queue.group).await?);
    Ok(true)
}

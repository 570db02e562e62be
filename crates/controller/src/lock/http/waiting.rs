//! A request for the lock while it waits: it has a place, its client may go away, and the process may end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dogwatch_core::fleetlock::FleetlockGroups;
use tokio::sync::{Semaphore, watch};

use super::answer::{Reply, Verdict};
use super::auth::Guard;
use super::config::Limits;
use super::connection::Link;
use super::record::Record;
use crate::lock::service::{Client, LockRequest, LockService};

/// Requests to unlock under way. They end by themselves; more wait, behind nobody who waits for the lock.
const UNLOCKS_AT_ONCE: usize = 256;

/// What the handlers of both protocols share.
pub(super) struct App {
    pub(super) guard: Guard,
    pub(super) limits: Arc<Limits>,
    pub(super) fleetlock_drain: bool,
    pub(super) fleetlock_groups: FleetlockGroups,
    service: Arc<dyn LockService>,
    places: Arc<Places>,
    unlocks: Arc<Semaphore>,
    ending: Ending,
}

impl App {
    pub(super) fn new(
        guard: Guard,
        limits: Arc<Limits>,
        fleetlock: (FleetlockGroups, bool),
        service: Arc<dyn LockService>,
        record: Arc<dyn Record>,
        ending: Ending,
    ) -> Self {
        let (fleetlock_groups, fleetlock_drain) = fleetlock;
        let places = Places {
            now: AtomicUsize::new(0),
            record,
        };
        Self {
            guard,
            limits,
            fleetlock_groups,
            fleetlock_drain,
            service,
            places: Arc::new(places),
            unlocks: Arc::new(Semaphore::new(UNLOCKS_AT_ONCE)),
            ending,
        }
    }

    /// Asks for the lock for as long as the client is there. Dropped, it drops the lock's own future.
    pub(super) async fn lock(
        &self,
        link: &Link,
        request: LockRequest,
        patience: Option<Duration>,
    ) -> Reply {
        if self.ending.is_begun() {
            return ends();
        }
        let most = match request.client {
            Client::Api { .. } => self.limits.waiters,
            Client::FleetLock { .. } => self.limits.fleetlock_waiters,
        };
        let Some(_place) = self.places.enter(most) else {
            return Reply::new(
                Verdict::TooMany,
                format!("{most} requests wait already; try again"),
            );
        };
        let client = request.client.to_string();
        let _busy = link.place.busy();
        let reply = tokio::select! {
            // An answer that nobody is there to read any more is none: the lock takes it back.
            biased;
            () = link.wire.gone() => Reply::new(Verdict::Gone, "the client went away, or said more than it may before its answer"),
            answer = self.service.lock(request) => answer.into(),
            () = self.ending.last_call(self.limits.last_call) => ends(),
            () = at_most(patience) => Reply::new(
                Verdict::Busy,
                "others hold the lock; this request has waited for as long as its client may",
            ),
        };
        tracing::info!(client, peer = %link.peer, answer = reply.verdict.word(), "a request for the lock came to its end");
        reply
    }

    /// Gives the lock up, to the end, also when the client does not wait for it.
    pub(super) async fn unlock(&self, link: &Link, client: Client) -> Reply {
        let _busy = link.place.busy();
        let turn = Arc::clone(&self.unlocks).acquire_owned().await;
        let service = Arc::clone(&self.service);
        let peer = link.peer;
        let work = tokio::spawn(async move {
            let _turn = turn;
            let name = client.to_string();
            let reply = Reply::from(service.unlock(client).await);
            tracing::info!(client = name, %peer, answer = reply.verdict.word(), "a request to unlock came to its end");
            reply
        });
        work.await.unwrap_or_else(|_| ends())
    }
}

fn ends() -> Reply {
    Reply::new(
        Verdict::Unavailable,
        "this replica ends: you do not hold the lock by this request; ask again, another replica answers",
    )
}

async fn at_most(patience: Option<Duration>) {
    match patience {
        Some(patience) => tokio::time::sleep(patience).await,
        None => std::future::pending().await,
    }
}

/// How many wait.
struct Places {
    now: AtomicUsize,
    record: Arc<dyn Record>,
}

struct Place(Arc<Places>);

impl Places {
    fn enter(self: &Arc<Self>, most: usize) -> Option<Place> {
        let more = |now| (now < most).then_some(now + 1);
        let before = self
            .now
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        self.record.waiting(before.ok()? + 1);
        Some(Place(Arc::clone(self)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let before = self.0.now.fetch_sub(1, Ordering::Relaxed);
        self.0.record.waiting(before - 1);
    }
}

/// Whether the process was told to end.
#[derive(Clone)]
pub(super) struct Ending(watch::Receiver<bool>);

impl Ending {
    pub(super) fn channel() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    fn is_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Ready once it was told. A sender that is gone ends nothing: the server that had it is gone too.
    pub(super) async fn begun(&self) {
        if self.0.clone().wait_for(|begun| *begun).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    async fn last_call(&self, grace: Duration) {
        self.begun().await;
        tokio::time::sleep(grace).await;
    }
}

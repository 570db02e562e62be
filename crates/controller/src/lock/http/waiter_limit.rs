//! Limits and runs requests for the lock: each has a slot, its client may disconnect, and the
//! process may end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dogwatch_core::fleetlock::FleetlockGroups;
use tokio::sync::{Semaphore, watch};

use super::auth::LockAccessGuard;
use super::config::LockApiLimits;
use super::connection::ConnectionContext;
use super::reply::{LockReply, RequestOutcome};
use super::request_metrics::RequestMetrics;
use crate::lock::service::{LockRequest, LockRequester, LockService};

/// Unlock requests under way. They end by themselves; others wait, but never behind a request for
/// the lock.
const MAX_CONCURRENT_UNLOCKS: usize = 256;

pub(super) struct LockApiState {
    pub(super) guard: LockAccessGuard,
    pub(super) limits: Arc<LockApiLimits>,
    pub(super) fleetlock_drain: bool,
    pub(super) fleetlock_groups: FleetlockGroups,
    service: Arc<dyn LockService>,
    places: Arc<WaiterLimit>,
    unlocks: Arc<Semaphore>,
    ending: Shutdown,
}

impl LockApiState {
    pub(super) fn new(
        guard: LockAccessGuard,
        limits: Arc<LockApiLimits>,
        fleetlock: (FleetlockGroups, bool),
        service: Arc<dyn LockService>,
        record: Arc<dyn RequestMetrics>,
        ending: Shutdown,
    ) -> Self {
        let (fleetlock_groups, fleetlock_drain) = fleetlock;
        let places = WaiterLimit {
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
            unlocks: Arc::new(Semaphore::new(MAX_CONCURRENT_UNLOCKS)),
            ending,
        }
    }

    /// Asks for the lock for as long as the client is connected. Dropping this drops the lock's own
    /// future.
    pub(super) async fn perform_lock(
        &self,
        link: &ConnectionContext,
        request: LockRequest,
        patience: Option<Duration>,
    ) -> LockReply {
        if self.ending.is_stopping() {
            return stopping_reply();
        }
        let most = match request.client {
            LockRequester::Api { .. } => self.limits.waiters,
            LockRequester::FleetLock { .. } => self.limits.fleetlock_waiters,
        };
        let Some(_place) = self.places.acquire_slot(most) else {
            return LockReply::new(
                RequestOutcome::TooMany,
                format!("{most} requests already wait; try again"),
            );
        };
        let client = request.client.to_string();
        let _busy = link.place.mark_busy();
        let reply = tokio::select! {
            // A grant that no client is there to read does not count: the lock takes it back.
            biased;
            () = link.wire.wait_for_disconnect() => LockReply::new(RequestOutcome::Gone, "the client has disconnected, or has sent more data before its answer"),
            answer = self.service.lock_host(request) => answer.into(),
            () = self.ending.wait_for_grace_end(self.limits.shutdown_grace) => stopping_reply(),
            () = wait_at_most(patience) => LockReply::new(
                RequestOutcome::Busy,
                "other holders have the lock, and this request has reached its time limit; try again",
            ),
        };
        tracing::info!(client, peer = %link.peer, answer = reply.verdict.outcome_label(), "a lock request has ended");
        reply
    }

    /// Releases the lock completely, also when the client disconnects.
    pub(super) async fn perform_unlock(
        &self,
        link: &ConnectionContext,
        client: LockRequester,
    ) -> LockReply {
        let _busy = link.place.mark_busy();
        let turn = Arc::clone(&self.unlocks).acquire_owned().await;
        let service = Arc::clone(&self.service);
        let peer = link.peer;
        let work = tokio::spawn(async move {
            let _turn = turn;
            let name = client.to_string();
            let reply = LockReply::from(service.unlock_host(client).await);
            tracing::info!(client = name, %peer, answer = reply.verdict.outcome_label(), "an unlock request has ended");
            reply
        });
        work.await.unwrap_or_else(|_| stopping_reply())
    }
}

fn stopping_reply() -> LockReply {
    LockReply::new(
        RequestOutcome::Unavailable,
        "this replica is stopping, and this request did not get the lock; try again, another replica answers",
    )
}

async fn wait_at_most(patience: Option<Duration>) {
    match patience {
        Some(patience) => tokio::time::sleep(patience).await,
        None => std::future::pending().await,
    }
}

struct WaiterLimit {
    now: AtomicUsize,
    record: Arc<dyn RequestMetrics>,
}

struct WaiterSlot(Arc<WaiterLimit>);

impl WaiterLimit {
    fn acquire_slot(self: &Arc<Self>, most: usize) -> Option<WaiterSlot> {
        let more = |now| (now < most).then_some(now + 1);
        let before = self
            .now
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        self.record.set_waiting_count(before.ok()? + 1);
        Some(WaiterSlot(Arc::clone(self)))
    }
}

impl Drop for WaiterSlot {
    fn drop(&mut self) {
        let before = self.0.now.fetch_sub(1, Ordering::Relaxed);
        self.0.record.set_waiting_count(before - 1);
    }
}

#[derive(Clone)]
pub(super) struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    pub(super) fn channel() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    fn is_stopping(&self) -> bool {
        *self.0.borrow()
    }

    /// Ready once the shutdown began. A dropped sender is no shutdown: the server that owned it is
    /// gone too.
    pub(super) async fn wait_for_shutdown(&self) {
        if self.0.clone().wait_for(|begun| *begun).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    async fn wait_for_grace_end(&self, grace: Duration) {
        self.wait_for_shutdown().await;
        tokio::time::sleep(grace).await;
    }
}

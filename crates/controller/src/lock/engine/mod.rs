//! The lock behind the lock API and FleetLock.
//!
//! **For:** [`LockService`]. A request waits in its group's queue; the first one bids, counts, cordons
//! and drains as a coordinator would, by the same rules of `dogwatch_core::lock`.
//! **May touch:** the slots' Leases and this replica's own; the Node of a host that is one, its pods
//! through the drain; it reads policies, Nodes and VolumeAttachments.
//! **Promises:** any replica serves any request; whatever dies, a lock is given to nobody who was not
//! counted, and what a client was told to hold is freed by nobody but that client, a person, or
//! proof. What a request left behind is cleaned up until that is certain; what a process left behind
//! names it (`api/PROCESS/N`, annotation `dogwatch.dev/api-lock`), and its Lease
//! `api.dogwatch.dev-PROCESS` shows whether it lives.
//!
//! Source: specification §2.2, §2.3 and §2.7; `docs/design` says why it is safe.

mod bid;
mod drain;
mod hold;
mod leave;
mod presence;
mod queue;
mod request;
mod shared;
mod target;
mod trace;
mod unlock;

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::fleetlock::FleetlockGroups;
pub use dogwatch_core::lock::api_lock::SOON;
use dogwatch_core::reboot::Config;
use dogwatch_k8s::Client as KubeClient;
use dogwatch_process::clock::Clock;
pub use dogwatch_prometheus::{CannotAsk, Gatekeeper};
use futures::future::BoxFuture;

use super::service::{Client, LockAnswer, LockRequest, LockService, UnlockAnswer};
use shared::Shared;

/// The most requests that wait here at a time. Source: specification §2.7.
pub const MOST_WAITERS: usize = 2000;

/// What the engine is made from.
pub struct Setup {
    /// The API server.
    pub client: KubeClient,
    /// Where the Leases are.
    pub namespace: String,
    /// This process: letters, digits and dashes, at most 40; no other process ever had it.
    pub process: String,
    /// The time.
    pub clock: Clock,
    /// What the flags say; a policy goes before them.
    pub flags: Config,
    /// Whose lock FleetLock's clients may ask for.
    pub fleetlock_groups: FleetlockGroups,
    /// Whether a FleetLock client that is a Node is cordoned and drained.
    pub fleetlock_drain: bool,
    /// Asks the gates of a policy that are no pods.
    pub gatekeeper: Arc<dyn Gatekeeper>,
}

/// The lock. Clones are the same.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

impl Engine {
    /// Starts it, in tasks of its own on the current runtime. They end when the last clone and the
    /// last request are gone.
    pub fn start(setup: Setup) -> Self {
        let shared = Shared::new(setup);
        presence::spawn(&shared);
        target::watch_policies(&shared);
        Self { shared }
    }

    /// Ends it: who waits is told so at once, what was won and not answered is given back, within
    /// this time; what is left then is the healer's, for this replica's Lease goes. Answers whether
    /// nothing was left.
    pub async fn shutdown(&self, within: Duration) -> bool {
        self.shared.stop.send_replace(true);
        let clean = tokio::time::timeout(within, self.shared.idle())
            .await
            .is_ok();
        let _writer = self.shared.presence_writer.lock().await;
        if let Err(error) = self.shared.presence.end().await {
            tracing::warn!(
                error = error.in_words(),
                "cannot take the lock API's own Lease away"
            );
        }
        clean
    }

    /// How many requests wait for a lock here, that is: were not answered.
    pub fn waiting(&self) -> usize {
        self.shared.waiting()
    }
}

impl LockService for Engine {
    fn lock(&self, request: LockRequest) -> BoxFuture<'static, LockAnswer> {
        Box::pin(request::serve(Arc::clone(&self.shared), request))
    }

    fn unlock(&self, client: Client) -> BoxFuture<'static, UnlockAnswer> {
        Box::pin(unlock::serve(Arc::clone(&self.shared), client))
    }
}

//! The lock behind the lock API and FleetLock.
//!
//! **For:** [`LockService`]. A request waits in its group's queue; the first one bids, counts,
//! cordons and drains as a coordinator would, by the same rules of `dogwatch_core::lock`.
//! **May touch:** the slots' Leases and this replica's own Lease; the Node of a host that is a
//! Node, and its pods through the drain. It reads policies, Nodes and VolumeAttachments.
//! **Promises:** any replica serves any request. Whatever dies, no holder gets the lock without a
//! count of the group, and a lock that a client was told it holds is freed only by that client, by
//! a person, or on proof. What a request leaves behind is removed, however long that takes. What a
//! process leaves behind names the process (`api/PROCESS/N`, annotation `dogwatch.dev/api-lock`),
//! and its Lease `api.dogwatch.dev-PROCESS` shows whether the process lives.
//!
//! Source: specification §2.2, §2.3 and §2.7; `docs/design` says why it is safe.

mod bid;
mod cleanup_guard;
mod drain;
mod hold;
mod leave;
mod leave_pauses;
mod lock_state;
mod presence;
mod queue;
mod request;
mod shared_policies;
mod target;
mod unlock;

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::fleetlock::FleetlockGroups;
pub use dogwatch_core::lock::api_lock::MAX_POLICY_WAIT;
use dogwatch_core::reboot::RebootConfig;
use dogwatch_k8s::Client as KubeClient;
pub use dogwatch_prometheus::{GateChecker, NoGateChecker};
use dogwatch_runtime::clock::ProcessClock;
use futures::future::BoxFuture;

use super::service::{LockAnswer, LockRequest, LockRequester, LockService, UnlockAnswer};
use lock_state::LockState;

/// The largest number of requests that may wait in this process. Source: specification §2.7.
pub const MAX_WAITING_REQUESTS: usize = 2000;

pub struct LockEngineSetup {
    pub client: KubeClient,
    /// The namespace of the Leases.
    pub namespace: String,
    /// This process' name: letters, digits and dashes, at most 40; no other process ever had it.
    pub process: String,
    pub clock: ProcessClock,
    /// What the flags say. A policy overrides them.
    pub flags: RebootConfig,
    /// The groups whose lock FleetLock's clients may ask for.
    pub fleetlock_groups: FleetlockGroups,
    /// Whether a FleetLock client that is a Node is cordoned and drained.
    pub fleetlock_drain: bool,
    /// Asks the Prometheus gates of a policy.
    pub gate_checker: Arc<dyn GateChecker>,
}

#[derive(Clone)]
pub struct LockEngine {
    shared: Arc<LockState>,
}

impl LockEngine {
    /// Starts the engine in its own tasks on the current runtime. They end when the last clone and
    /// the last request are gone.
    pub fn start(setup: LockEngineSetup) -> Self {
        let shared = LockState::new(setup);
        presence::spawn_presence_loop(&shared);
        target::spawn_policy_watch(&shared);
        Self { shared }
    }

    /// Shuts the engine down: waiting requests are answered at once, and locks without an answer
    /// are released, within this time. The healer finishes what is left then, because this
    /// replica's Lease is deleted. Returns whether nothing was left.
    pub async fn shutdown(&self, within: Duration) -> bool {
        self.shared.stop.send_replace(true);
        let clean = tokio::time::timeout(within, self.shared.wait_until_idle())
            .await
            .is_ok();
        let _writer = self.shared.presence_writer.lock().await;
        if let Err(error) = self.shared.presence.delete_presence().await {
            tracing::warn!(
                error = error.error_chain(),
                "failed to delete the lock API's own Lease"
            );
        }
        clean
    }

    /// The number of requests here that were not answered yet.
    pub fn count_waiting(&self) -> usize {
        self.shared.count_waiting()
    }
}

impl LockService for LockEngine {
    fn lock_host(&self, request: LockRequest) -> BoxFuture<'static, LockAnswer> {
        Box::pin(request::serve_lock(Arc::clone(&self.shared), request))
    }

    fn unlock_host(&self, client: LockRequester) -> BoxFuture<'static, UnlockAnswer> {
        Box::pin(unlock::serve_unlock(Arc::clone(&self.shared), client))
    }
}

//! Removes what a request may have left on the cluster, however the request ends.

use std::sync::Arc;

use dogwatch_core::lock::api_lock::CordonInFlight;
use dogwatch_core::lock::{HolderId, LockRecord, ObservedLease};
use dogwatch_core::name::RunId;

use super::leave;
use super::lock_state::LockState;
use super::target::LockHost;
use crate::lock::service::LockRequester;

/// Cleans up in the background if it is dropped before the answer was handed over. It does not stop
/// until nothing is left for certain.
pub(super) struct CleanupGuard {
    pub(super) shared: Arc<LockState>,
    pub(super) number: u64,
    pub(super) leftovers: LockLeftovers,
}

#[derive(Debug, Clone)]
pub(super) struct LockLeftovers {
    pub(super) host: LockHost,
    pub(super) holder: HolderId,
    pub(super) run: RunId,
    /// The request's id was sent to a Lease.
    pub(super) touched: bool,
    /// A bid that was not answered (yet).
    pub(super) bid: Option<Box<(ObservedLease, LockRecord)>>,
    /// A cordon that was not answered (yet).
    pub(super) suspect: CordonInFlight,
}

impl CleanupGuard {
    pub(super) fn new(shared: &Arc<LockState>, client: LockRequester) -> Self {
        let (number, run) = shared.begin_request();
        Self {
            shared: Arc::clone(shared),
            number,
            leftovers: LockLeftovers {
                holder: super::target::holder_of_client(&client),
                host: shared.host_of_client(client),
                run,
                touched: false,
                bid: None,
                suspect: CordonInFlight::No,
            },
        }
    }

    /// Nothing is left, or the lock stays held: the answer is on its way to the client.
    pub(super) fn mark_settled(&mut self) {
        self.leftovers.touched = false;
        self.leftovers.bid = None;
        self.leftovers.suspect = CordonInFlight::No;
    }
}

impl Drop for CleanupGuard {
    fn drop(&mut self) {
        let (shared, number, left) = (
            Arc::clone(&self.shared),
            self.number,
            self.leftovers.clone(),
        );
        if !left.touched {
            return shared.end_request(number);
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            // The process ends: the healer finds the id.
            return;
        };
        runtime.spawn(async move {
            tracing::info!(holder = %left.holder, run = %left.run, "the client has disconnected; its request leaves the queue");
            leave::remove_leftovers(&shared, left, leave::LockLeaveReason::Done).await;
            shared.end_request(number);
        });
    }
}

//! What one request may have left on the cluster, and that it goes, whatever becomes of the request.

use std::sync::Arc;

use dogwatch_core::lock::api_lock::Suspect;
use dogwatch_core::lock::{HolderId, LeaseSeen, LockRecord};
use dogwatch_core::name::RunId;

use super::leave;
use super::shared::Shared;
use super::target::Host;
use crate::lock::service::Client;

/// Dropped before its answer was handed over, it cleans up in the background until that is certain.
pub(super) struct Trace {
    pub(super) shared: Arc<Shared>,
    pub(super) number: u64,
    pub(super) left: Left,
}

/// What may be there.
#[derive(Debug, Clone)]
pub(super) struct Left {
    pub(super) host: Host,
    pub(super) holder: HolderId,
    pub(super) run: RunId,
    /// Something may be: its id was sent to a Lease.
    pub(super) touched: bool,
    /// A bid whose answer did not come (yet).
    pub(super) bid: Option<Box<(LeaseSeen, LockRecord)>>,
    /// A cordon whose answer did not come (yet).
    pub(super) suspect: Suspect,
}

impl Trace {
    pub(super) fn new(shared: &Arc<Shared>, client: Client) -> Self {
        let (number, run) = shared.begin();
        Self {
            shared: Arc::clone(shared),
            number,
            left: Left {
                holder: super::target::holder(&client),
                host: shared.host(client),
                run,
                touched: false,
                bid: None,
                suspect: Suspect::No,
            },
        }
    }

    /// Nothing is left, or what is stays: the answer is on its way to the client.
    pub(super) fn settled(&mut self) {
        self.left.touched = false;
        self.left.bid = None;
        self.left.suspect = Suspect::No;
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let (shared, number, left) = (Arc::clone(&self.shared), self.number, self.left.clone());
        if !left.touched {
            return shared.end(number);
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            // The process ends: the healer finds the id.
            return;
        };
        runtime.spawn(async move {
            tracing::info!(holder = %left.holder, run = %left.run, "the client went away; giving its place up");
            leave::give_up(&shared, left, leave::Why::Done).await;
            shared.end(number);
        });
    }
}

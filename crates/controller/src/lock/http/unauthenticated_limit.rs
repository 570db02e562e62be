//! Limits how many requests of unauthenticated callers are read at once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dogwatch_runtime::mutex::lock_ignoring_poison;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(super) struct UnauthenticatedLimit(Arc<Semaphore>);

impl UnauthenticatedLimit {
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most)))
    }

    /// `None` if no permit becomes free within this time.
    pub(super) async fn acquire_permit(&self, within: Duration) -> Option<OwnedSemaphorePermit> {
        let turn = Arc::clone(&self.0).acquire_owned();
        tokio::time::timeout(within, turn).await.ok()?.ok()
    }
}

/// The permit of one connection. Clones share it.
#[derive(Clone, Default)]
pub(super) struct UnauthenticatedPermit(Arc<Mutex<Option<OwnedSemaphorePermit>>>);

impl UnauthenticatedPermit {
    pub(super) fn hold_permit(&self, turn: OwnedSemaphorePermit) {
        *lock_ignoring_poison(&self.0) = Some(turn);
    }

    /// Whether the caller is still unauthenticated.
    pub(super) fn is_held(&self) -> bool {
        let turn = lock_ignoring_poison(&self.0);
        turn.is_some()
    }

    /// The caller is authenticated, or has gone.
    pub(super) fn release_permit(&self) {
        *lock_ignoring_poison(&self.0) = None;
    }
}

//! Callers who are not known yet: only so many of their requests are read at once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The turns of one listener.
pub(super) struct Strangers(Arc<Semaphore>);

impl Strangers {
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most)))
    }

    /// The next turn, unless it takes too long.
    pub(super) async fn turn(&self, within: Duration) -> Option<OwnedSemaphorePermit> {
        let turn = Arc::clone(&self.0).acquire_owned();
        tokio::time::timeout(within, turn).await.ok()?.ok()
    }
}

/// The turn of one connection; clones are the same.
#[derive(Clone, Default)]
pub(super) struct Unknown(Arc<Mutex<Option<OwnedSemaphorePermit>>>);

impl Unknown {
    pub(super) fn hold(&self, turn: OwnedSemaphorePermit) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(turn);
    }

    /// Whether it is not known yet who asks.
    pub(super) fn is_held(&self) -> bool {
        let turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turn.is_some()
    }

    /// It is known who asks, or there is nobody left to be known.
    pub(super) fn give_up(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

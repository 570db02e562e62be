//! A task that stops when its owner lets go of it.

use std::future::Future;

/// A running part of the world. Dropping it stops it at its next await, mid-request if need be: as
/// a crash would.
#[derive(Debug)]
#[must_use = "dropping an actor stops it"]
pub struct Actor(tokio::task::JoinHandle<()>);

impl Actor {
    /// Starts it on the current runtime.
    pub fn spawn(run: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(run))
    }

    /// Whether it still runs.
    pub fn is_running(&self) -> bool {
        !self.0.is_finished()
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.0.abort();
    }
}

//! A task that stops when its owner drops it.

use std::future::Future;

/// A running actor of the simulated world. Dropping it stops it at its next await, mid-request if
/// need be, like a crash.
#[derive(Debug)]
#[must_use = "dropping an actor stops it"]
pub struct ActorTask(tokio::task::JoinHandle<()>);

impl ActorTask {
    /// Spawns it on the current runtime.
    pub fn spawn(run: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(run))
    }

    pub fn is_running(&self) -> bool {
        !self.0.is_finished()
    }
}

impl Drop for ActorTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

//! What every component of the controller is given.

use dogwatch_core::reboot::Config;
use dogwatch_k8s::Client;
use dogwatch_process::clock::Clock;
use tokio::sync::watch;

use crate::board::Board;
use crate::cluster::Cluster;
use crate::leader::Leadership;
use crate::metrics::Metrics;

/// What every component is given. Clones are the same.
#[derive(Clone)]
pub struct Context {
    /// The API server.
    pub client: Client,
    /// Dogwatch's namespace.
    pub namespace: String,
    /// The process' one clock.
    pub clock: Clock,
    /// What the flags say; a policy goes before them.
    pub flags: Config,
    /// This process: random, no other process ever had it. Part of run ids and holder identities.
    pub process: String,
    /// Whether this process leads now. A component that acts for the whole cluster asks before
    /// each write.
    pub leadership: Leadership,
    /// The cluster as the process' one set of watches shows it.
    pub cluster: Cluster,
    /// What `/metrics` shows.
    pub metrics: Metrics,
    /// What `/healthz` and `/readyz` say.
    pub board: Board,
    /// When to end.
    pub stop: Stop,
}

impl Context {
    /// Does this work whenever this process leads, until it is told to stop.
    pub(crate) async fn while_leading<W>(&self, mut work: impl FnMut() -> W)
    where
        W: Future<Output = ()>,
    {
        let work = |_| work();
        self.leadership.while_leading(&self.stop, work).await;
    }
}

/// Told once, when the process is to end: components then finish what they are at, within
/// [`crate::run::FINISH_WITHIN`].
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

/// Who says so.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

impl Stop {
    /// A signal that was not given yet.
    pub fn new() -> (Stopper, Stop) {
        let (sender, receiver) = watch::channel(false);
        (Stopper(sender), Stop(receiver))
    }

    /// Whether it was given.
    pub fn is_told(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is given. A stopper that is gone has given it.
    pub async fn told(&self) {
        let mut told = self.0.clone();
        // Only fails when the stopper is gone.
        let _ = told.wait_for(|told| *told).await;
    }
}

impl Stopper {
    /// Gives it.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

//! The shared context that the controller gives to every component.

use std::time::Duration;

use dogwatch_core::backoff::BackoffRange;
use dogwatch_core::reboot::RebootConfig;
use dogwatch_k8s::Client;
use dogwatch_process::clock::ProcessClock;
use tokio::sync::watch;

use crate::cluster_views::ClusterViewReceiver;
use crate::health_registry::HealthRegistry;
use crate::leader::LeadershipHandle;
use crate::metrics::MetricsRegistry;

/// Pauses of one object, or of one whole loop, after errors.
pub(crate) const RETRY_PAUSES: BackoffRange =
    BackoffRange::new(Duration::from_secs(1), Duration::from_mins(5));

#[derive(Clone)]
pub struct ControllerContext {
    pub client: Client,
    pub namespace: String,
    pub clock: ProcessClock,
    /// What the flags say. A policy overrides them.
    pub flags: RebootConfig,
    /// Random; no other process ever had it. Part of run ids and holder identities.
    pub process: String,
    /// Whether this process leads now. A component that acts for the whole cluster checks it before
    /// each write.
    pub leadership: LeadershipHandle,
    pub cluster: ClusterViewReceiver,
    pub metrics: MetricsRegistry,
    /// What `/healthz` and `/readyz` report.
    pub health: HealthRegistry,
    pub stop: StopSignal,
}

impl ControllerContext {
    /// Runs `work` whenever this process leads, until the process stops.
    pub(crate) async fn run_while_leading<W>(&self, mut work: impl FnMut() -> W)
    where
        W: Future<Output = ()>,
    {
        let work = |_| work();
        self.leadership.run_while_leading(&self.stop, work).await;
    }
}

/// Fires once, when the process stops: components then finish what they have begun, within
/// [`crate::run::FINISH_TIMEOUT`].
#[derive(Debug, Clone)]
pub struct StopSignal(watch::Receiver<bool>);

#[derive(Debug)]
pub struct StopTrigger(watch::Sender<bool>);

impl StopSignal {
    pub fn new() -> (StopTrigger, StopSignal) {
        let (sender, receiver) = watch::channel(false);
        (StopTrigger(sender), StopSignal(receiver))
    }

    pub fn is_stopping(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the signal. A dropped [`StopTrigger`] counts as a signal.
    pub async fn wait_for_stop(&self) {
        let mut told = self.0.clone();
        // Only fails when the trigger is dropped.
        let _ = told.wait_for(|told| *told).await;
    }
}

impl StopTrigger {
    pub fn signal_stop(&self) {
        self.0.send_replace(true);
    }
}

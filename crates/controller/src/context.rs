//! The shared context that the controller gives to every component.

use std::time::Duration;

use dogwatch_core::backoff::BackoffRange;
use dogwatch_core::reboot::RebootConfig;
use dogwatch_k8s::Client;
use dogwatch_runtime::clock::ProcessClock;
use dogwatch_runtime::reconcile::{ReconcileDomain, ReconcileLoop};
use dogwatch_runtime::stop::StopSignal;

use crate::cluster_views::ClusterViewReceiver;
use crate::decision_log::ControllerDecisionLog;
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
    pub decision_log: ControllerDecisionLog,
    /// What `/healthz` and `/readyz` report.
    pub health: HealthRegistry,
    pub stop: StopSignal,
}

impl ControllerContext {
    /// Runs the loop of a domain whenever this process leads, until the process stops. Each term
    /// begins with a new domain, which remembers nothing.
    pub(crate) async fn run_domain_while_leading<D: ReconcileDomain>(
        &self,
        mut domain: impl FnMut() -> D,
    ) {
        let run = || {
            let heart = self.health.heartbeat_of(D::LIMITS.name);
            let (clock, leadership) = (self.clock.clone(), self.leadership.clone());
            ReconcileLoop::new(domain(), clock, leadership, heart).run_as_leader()
        };
        self.run_while_leading(run).await;
    }

    /// Runs `work` whenever this process leads, until the process stops.
    pub(crate) async fn run_while_leading<W>(&self, mut work: impl FnMut() -> W)
    where
        W: Future<Output = ()>,
    {
        let work = |_| work();
        self.leadership.run_while_leading(&self.stop, work).await;
    }
}

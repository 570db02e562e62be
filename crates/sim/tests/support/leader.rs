//! A process of the controller that leads.

use std::time::Duration;

use dogwatch_controller::cluster_views::{ClusterViewPublisher, ClusterViewReceiver};
use dogwatch_controller::decision_log::ControllerDecisionLog;
use dogwatch_controller::health_registry::HealthRegistry;
use dogwatch_controller::leader::LeadershipHandle;
use dogwatch_controller::metrics::MetricsRegistry;
use dogwatch_controller::{ControllerContext, StopSignal, StopTrigger};
use dogwatch_core::Now;
use dogwatch_core::leader::LeaderTerm;
use dogwatch_core::reboot::RebootConfig;
use dogwatch_runtime::clock::ProcessClock;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A leading process; dropping it kills it.
pub struct Leader {
    pub terms: watch::Sender<Option<LeaderTerm>>,
    pub metrics: MetricsRegistry,
    /// Dropping it would tell the process to stop.
    _stopper: StopTrigger,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Leader {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Leader {
    /// A new leader without tasks, the context of its components, and the feed that shows them the
    /// cluster.
    pub fn new(
        client: &Client,
        namespace: &str,
        clock: &ProcessClock,
        flags: &RebootConfig,
    ) -> (Self, ControllerContext, ClusterViewPublisher) {
        let (terms, leadership) = LeadershipHandle::new(clock.clone());
        terms.send_replace(Some(term(1)));
        let (showing, cluster) = ClusterViewReceiver::new();
        let (stopper, stop) = StopSignal::new();
        let metrics = MetricsRegistry::default();
        let context = ControllerContext {
            client: client.clone(),
            namespace: namespace.to_owned(),
            clock: clock.clone(),
            flags: flags.clone(),
            process: "test".into(),
            leadership,
            cluster,
            metrics: metrics.clone(),
            health: HealthRegistry::new(metrics.clone()),
            decision_log: ControllerDecisionLog::default(),
            stop,
        };
        let leader = Self {
            terms,
            metrics,
            _stopper: stopper,
            tasks: Vec::new(),
        };
        (leader, context, showing)
    }

    /// Runs another task in the process.
    pub fn run(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.push(tokio::spawn(task));
    }

    /// The process loses the election.
    pub fn loses_the_lead(&self) {
        self.terms.send_replace(None);
    }

    /// The process wins the election, for this term.
    pub fn leads(&self, number: u64) {
        self.terms.send_replace(Some(term(number)));
    }
}

/// A term that outlasts every test.
fn term(number: u64) -> LeaderTerm {
    LeaderTerm {
        number,
        until: Now {
            wall: Timestamp::MAX,
            mono: Duration::from_hours(100_000),
        },
    }
}

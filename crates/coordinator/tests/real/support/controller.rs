//! A controller beside the coordinators: the component `healer`, which also writes how far rollouts
//! are. It runs in the test's process, with the shipped account and with its election; the tests of
//! `dogwatch controller` as a process are in `crates/cli/tests/controller`.

use std::sync::atomic::{AtomicU32, Ordering};

use dogwatch_controller::cluster_views::ClusterViewReceiver;
use dogwatch_controller::decision_log::ControllerDecisionLog;
use dogwatch_controller::health_registry::HealthRegistry;
use dogwatch_controller::leader::{LeaderElection, LeadershipHandle};
use dogwatch_controller::metrics::MetricsRegistry;
use dogwatch_controller::{ControllerContext, StopSignal, StopTrigger, healer, policy_status};
use dogwatch_core::healer::HealerConfig;
use dogwatch_core::reboot::RebootConfig;
use dogwatch_k8s::Client;
use dogwatch_k8s::cluster::ClusterWatch;
use dogwatch_runtime::clock::ProcessClock;
use dogwatch_runtime::jitter::JitterSource;
use tokio::task::JoinSet;

use super::Cluster;

const NAMESPACE: &str = "dogwatch";

/// A running controller. Dropping it kills it.
pub struct Controller {
    _tasks: JoinSet<()>,
    /// Dropping it would tell the components to stop.
    _stopper: StopTrigger,
}

impl Controller {
    pub async fn start(cluster: &Cluster) -> Self {
        let account = cluster
            .plane
            .service_account_token(NAMESPACE, "dogwatch-controller", None);
        let token = account.await.expect("an account");
        let kubeconfig = cluster.plane.kubeconfig_for(&token);
        let kubeconfig = kubeconfig.expect("a folder to write to");
        let client = cluster.api_of(&kubeconfig).await.0;

        let clock = ProcessClock::system_clock();
        let (terms, leadership) = LeadershipHandle::new(clock.clone());
        let (views, shown) = ClusterViewReceiver::new();
        let (stopper, stop) = StopSignal::new();
        let context = build_context(client, clock, leadership, shown, stop);
        let watches = ClusterWatch::new(context.client.clone(), NAMESPACE, || 0.5);
        let mut tasks = JoinSet::new();
        let jitter = JitterSource::of_process(&context.process);
        let election = LeaderElection::new(&context, terms, jitter);
        tasks.spawn(election.run(context.stop.clone()));
        tasks.spawn(views.publish_watched_views(watches));
        tasks.spawn(policy_status::run_policy_status(context.clone()));
        tasks.spawn(healer::run_healer(context, HealerConfig::default()));
        Self {
            _tasks: tasks,
            _stopper: stopper,
        }
    }
}

fn build_context(
    client: Client,
    clock: ProcessClock,
    leadership: LeadershipHandle,
    cluster: ClusterViewReceiver,
    stop: StopSignal,
) -> ControllerContext {
    static PROCESSES: AtomicU32 = AtomicU32::new(0);
    let metrics = MetricsRegistry::default();
    ControllerContext {
        client,
        namespace: NAMESPACE.to_owned(),
        clock,
        flags: RebootConfig::default(),
        process: format!("test-{}", PROCESSES.fetch_add(1, Ordering::Relaxed)),
        leadership,
        cluster,
        health: HealthRegistry::new(metrics.clone()),
        metrics,
        decision_log: ControllerDecisionLog::default(),
        stop,
    }
}

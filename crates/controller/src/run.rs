//! Runs the controller's process: starts its components, and stops them in order.
//!
//! When the process is stopped, the components finish first, while the lead is still held. Then the
//! Lease is released, so that another replica takes over at once, but never while this one still
//! acts.

mod component;
mod lock_thread;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::{CONTROLLER, LOCK_API_ACCOUNT};
use dogwatch_core::admission::{describe_unknown_account, list_unenforced_policies};

use dogwatch_core::reboot::RebootConfig;
use dogwatch_core::report::EstimateRollout;
use dogwatch_k8s::cluster::ClusterWatch;
use dogwatch_k8s::workload_cluster::KubeconfigSecret;
use dogwatch_k8s::{ApiErrorKind, Client, admission};
use dogwatch_runtime::clock::ProcessClock;
use dogwatch_runtime::http::{HealthServer, HttpError};
use dogwatch_runtime::jitter::JitterSource;
use dogwatch_runtime::listen::ListenAddress;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::task::JoinSet;
use tracing::{info, warn};

pub use component::ControllerComponent;

use crate::cluster_views::{ClusterViewPublisher, ClusterViewReceiver};
use crate::decision_log::ControllerDecisionLog;
use crate::health_registry::HealthRegistry;
use crate::leader::{LeaderElection, LeadershipHandle};
use crate::lock::engine::GateChecker;
use crate::lock::http;
use crate::metrics::MetricsRegistry;
use crate::power;
use crate::rollout_estimate::{EstimateReceiver, run_rollout_estimates};
use crate::{
    ControllerContext, StopSignal, StopTrigger, healer, maintenance_markers, node_reboot,
    policy_status, remediation, schedule,
};

/// How long components may take to finish once the process stops. The Deployment's
/// `terminationGracePeriodSeconds` is longer. Source: specification §2.7.
pub const FINISH_TIMEOUT: Duration = Duration::from_secs(20);

/// The retry interval while the API server does not answer.
const API_RETRY_INTERVAL: Duration = Duration::from_secs(30);

pub struct ControllerSetup {
    pub client: Client,
    /// The same API server with connections of its own, for the lock's thread.
    pub lock_client: Client,
    pub namespace: String,
    pub clock: ProcessClock,
    /// What the flags say about nodes. A policy overrides them.
    pub flags: RebootConfig,
    /// Random: letters, digits and dashes, at most 40. No other process ever had it.
    pub process: String,
    pub components: BTreeSet<ControllerComponent>,
    /// The address for metrics and probes.
    pub listen: ListenAddress,
    /// The address for the kubelet's probes, and nothing else.
    pub probe_listen: ListenAddress,
    pub lock: http::LockApiConfig,
    pub power: power::PowerSettings,
    pub remediation: dogwatch_core::remediation::RemediationConfig,
    /// Which Secrets have the kubeconfigs of workload clusters; `None`: all Nodes are in this
    /// cluster.
    pub workload: Option<KubeconfigSecret>,
    /// Asks the Prometheus gates of policies that apply to hosts of the lock API.
    pub gate_checker: Arc<dyn GateChecker>,
    /// Makes the estimates of NodeReboots and of the metrics.
    pub planner: Arc<dyn EstimateRollout>,
    /// Where decisions about hosts and remediations are logged.
    pub decision_log: ControllerDecisionLog,
    /// Component `web`, which has its socket; it ends when the signal that it is given fires.
    pub web: Option<WebTask>,
}

/// Serves the dashboard until the signal fires.
pub type WebTask = Box<dyn FnOnce(StopSignal) -> BoxFuture<'static, ()> + Send>;

/// Why the process failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Metrics(#[from] HttpError),
    /// The lock's sockets and certificates.
    #[error(transparent)]
    Lock(#[from] http::LockApiStartError),
    #[error("failed to start a thread for the lock API")]
    Thread(#[source] std::io::Error),
    /// A component ended by itself: a defect, which a retry would not cure.
    #[error("{0} ended unexpectedly")]
    Ended(&'static str),
}

/// Runs until `stop` is ready and everything is finished.
///
/// # Errors
/// At the start: sockets, certificates or the lock's thread. Later: only a defect.
pub async fn run_controller(
    setup: ControllerSetup,
    stop: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let (stopper, stopped) = StopSignal::new();
    let (terms, leadership) = LeadershipHandle::new(setup.clock.clone());
    let (showing, cluster) = ClusterViewReceiver::new();
    let metrics = MetricsRegistry::default();
    let context = ControllerContext {
        client: setup.client,
        namespace: setup.namespace,
        clock: setup.clock,
        flags: setup.flags,
        process: setup.process,
        leadership,
        cluster,
        health: HealthRegistry::new(metrics.clone()),
        metrics,
        decision_log: setup.decision_log,
        stop: stopped,
    };
    if let Some(server) = HealthServer::bind(&setup.listen).await? {
        info!(address = %server.address(), "serves /metrics, /healthz and /readyz");
        tokio::spawn(server.serve_forever(context.health.clone()));
    }
    if let Some(server) = HealthServer::bind_probes(&setup.probe_listen).await? {
        info!(address = %server.address(), "serves the kubelet's probes");
        tokio::spawn(server.serve_forever(context.health.clone()));
    }
    let parts = setup.components.clone();
    tokio::spawn(warn_weak_admission(context.clone(), parts));
    let jitter = JitterSource::of_process(&context.process);
    let mut components = JoinSet::new();
    if setup.components.contains(&ControllerComponent::Lock) {
        let context = ControllerContext {
            client: setup.lock_client,
            ..context.clone()
        };
        let lock = lock_thread::start_lock_thread(context, setup.lock, setup.gate_checker).await?;
        components.spawn(run_named("the lock", lock));
    }
    if let Some(web) = setup.web {
        components.spawn(run_named("the dashboard", web(context.stop.clone())));
    }
    let (last_stopper, last_stop) = StopSignal::new();
    let mut election = JoinSet::new();
    let parts = &setup.components;
    if parts.iter().any(|part| part.needs_cluster_watch()) {
        watch_cluster(&context, showing, jitter.clone());
    }
    let leading = leading_components(
        &context,
        parts,
        setup.power,
        (setup.remediation, setup.workload),
        Some(setup.planner),
    );
    for (name, part) in leading {
        components.spawn(run_named(name, part));
    }
    if parts.iter().any(|part| part.needs_leader()) {
        election.spawn(LeaderElection::new(&context, terms, jitter).run(last_stop));
    }
    let ended = tokio::select! {
        biased;
        () = stop => Ok(()),
        Some(part) = components.join_next() => Err(unexpected_end(part)),
        Some(_) = election.join_next() => Err(RunError::Ended("the election")),
    };
    stop_components(stopper, components, last_stopper, election).await;
    ended
}

/// Warns of admission policies that restrict nobody, because nothing else reports them.
async fn warn_weak_admission(context: ControllerContext, parts: BTreeSet<ControllerComponent>) {
    let gaps = loop {
        match admission_gaps(&context, &parts).await {
            Ok(gaps) => break gaps,
            Err(error) if error.kind() == ApiErrorKind::Transient => {
                tokio::time::sleep(API_RETRY_INTERVAL).await;
            }
            Err(error) => {
                let error = error.error_chain();
                info!(
                    error,
                    "failed to check whether the admission policies are installed"
                );
                return;
            }
        }
    };
    for gap in gaps {
        warn!("{gap}; see docs/security.md");
    }
}

async fn admission_gaps(
    context: &ControllerContext,
    parts: &BTreeSet<ControllerComponent>,
) -> Result<Vec<String>, dogwatch_k8s::Error> {
    if parts.iter().all(|part| *part == ControllerComponent::Web) {
        // It writes nothing, so that no policy is about it.
        return Ok(Vec::new());
    }
    let user = admission::read_own_user(&context.client)
        .await?
        .unwrap_or_default();
    if parts.iter().all(|part| *part == ControllerComponent::Lock) {
        // The lock API's account may not read admission policies; the controller reports what is
        // wrong with them.
        let unknown = describe_unknown_account(&user, LOCK_API_ACCOUNT, &context.namespace);
        return Ok(unknown.into_iter().collect());
    }
    let unknown = describe_unknown_account(&user, CONTROLLER, &context.namespace);
    let mut policies = admission::list_admission_policies(&context.client).await?;
    if let Some(policies) = &mut policies {
        let (client, namespace) = (&context.client, &context.namespace);
        policies.namespace = admission::read_lock_namespace(client, namespace).await?;
    }
    let weak = policies.iter().flat_map(list_unenforced_policies);
    Ok(unknown.into_iter().chain(weak).collect())
}

type NamedComponent = (&'static str, BoxFuture<'static, ()>);

/// The components that act only while this process leads, each with its name. They end when the
/// context's `stop` fires. Without a planner, there are no estimates.
pub fn leading_components(
    context: &ControllerContext,
    parts: &BTreeSet<ControllerComponent>,
    power: power::PowerSettings,
    (remediation, workload): (
        dogwatch_core::remediation::RemediationConfig,
        Option<KubeconfigSecret>,
    ),
    planner: Option<Arc<dyn EstimateRollout>>,
) -> Vec<NamedComponent> {
    let mut leading: Vec<NamedComponent> = Vec::new();
    if parts.contains(&ControllerComponent::Healer) {
        let policies = policy_status::run_policy_status(context.clone());
        leading.push(("the status of policies", policies.boxed()));
        let healing = dogwatch_core::healer::HealerConfig {
            flags: context.flags.clone(),
            ..dogwatch_core::healer::HealerConfig::default()
        };
        leading.push((
            "the healer",
            healer::run_healer(context.clone(), healing).boxed(),
        ));
    }
    if parts.iter().any(|part| part.needs_cluster_watch()) {
        let telling = maintenance_markers::run_maintenance_markers(context.clone());
        leading.push(("the handshake with other health checks", telling.boxed()));
        let switching = parts.contains(&ControllerComponent::Power);
        let switching = switching.then(|| node_reboot::PowerCycleAccess {
            board: power.board.clone(),
            config: power.config,
            is_identity_required: remediation.require_identity,
        });
        leading.extend(node_reboot_components(context, switching, planner));
    }
    if parts.contains(&ControllerComponent::Remediation) {
        let settings = remediation::RemediationSettings {
            config: remediation,
            power: power.board.clone(),
            power_config: power.config,
            board: remediation::RemediationRegistry::default(),
            workload,
        };
        let remediation = remediation::run_remediation(context.clone(), settings);
        leading.push(("remediation", remediation.boxed()));
    }
    if parts.contains(&ControllerComponent::Power) {
        leading.push((
            "power control",
            power::run_power_controller(context.clone(), power).boxed(),
        ));
    }
    if parts.iter().any(|part| part.needs_leader()) {
        let schedules = schedule::run_schedules(context.clone(), node_reboot_carrier(parts));
        leading.push(("the schedules", schedules.boxed()));
    }
    leading
}

/// Whether this process carries NodeReboots to their Nodes.
fn node_reboot_carrier(parts: &BTreeSet<ControllerComponent>) -> schedule::NodeRebootCarrier {
    if parts.iter().any(|part| part.needs_cluster_watch()) {
        schedule::NodeRebootCarrier::ThisProcess
    } else {
        schedule::NodeRebootCarrier::Nobody
    }
}

/// The estimates, and the NodeReboots that show them.
fn node_reboot_components(
    context: &ControllerContext,
    switching: Option<node_reboot::PowerCycleAccess>,
    planner: Option<Arc<dyn EstimateRollout>>,
) -> Vec<NamedComponent> {
    let mut components: Vec<NamedComponent> = Vec::new();
    let mut estimates = EstimateReceiver::without_planner();
    if let Some(planner) = planner {
        let (publisher, receiver) = EstimateReceiver::new();
        let estimating = run_rollout_estimates(context.clone(), planner, publisher);
        components.push(("the estimates", estimating.boxed()));
        estimates = receiver;
    }
    let node_reboots = node_reboot::run_node_reboots(context.clone(), switching, estimates);
    components.push(("the NodeReboots", node_reboots.boxed()));
    components
}

/// The watches end with the runtime: a stop need not wait for them.
fn watch_cluster(context: &ControllerContext, showing: ClusterViewPublisher, jitter: JitterSource) {
    let watches = ClusterWatch::new(context.client.clone(), &context.namespace, move || {
        jitter.next_fraction()
    });
    tokio::spawn(showing.publish_watched_views(watches));
    tokio::spawn(report_when_synced(context.clone()));
}

/// Stops the components first, then the election that gives them the right to act.
async fn stop_components(
    components_stop: StopTrigger,
    mut components: JoinSet<&'static str>,
    election_stop: StopTrigger,
    mut election: JoinSet<()>,
) {
    info!("stopping after a signal");
    components_stop.signal_stop();
    let all = async { while components.join_next().await.is_some() {} };
    if tokio::time::timeout(FINISH_TIMEOUT, all).await.is_err() {
        warn!("some parts did not finish in time; the next leader completes their work");
        components.shutdown().await;
    }
    election_stop.signal_stop();
    while election.join_next().await.is_some() {}
}

async fn run_named(name: &'static str, part: impl Future<Output = ()>) -> &'static str {
    part.await;
    name
}

fn unexpected_end(part: Result<&'static str, tokio::task::JoinError>) -> RunError {
    RunError::Ended(part.unwrap_or("a part of the controller"))
}

/// Sets readiness once the watches are in sync, on the leader and on the others: a new leader must
/// not begin to watch only when it takes over.
async fn report_when_synced(context: ControllerContext) {
    const READINESS_PART: &str = "watches";
    let mut cluster = context.cluster.clone();
    let mut view = cluster.current_view();
    while !view.synced {
        let trouble: Vec<String> = view
            .errors
            .iter()
            .map(|(what, why)| format!("{what}: {why}"))
            .collect();
        let why = match trouble.as_slice() {
            [] => "not in sync yet".to_owned(),
            some => format!("not in sync yet ({})", some.join("; ")),
        };
        context.health.set_readiness(READINESS_PART, Err(why));
        view = cluster.next_view().await;
    }
    context.health.set_readiness(READINESS_PART, Ok(()));
    info!(
        nodes = view.nodes.len(),
        policies = view.policy_objects.len(),
        "in sync"
    );
}

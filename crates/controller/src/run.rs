//! The process: its parts wired together, from the start to the last release.
//!
//! Told to stop, the components finish first, while the lead is still held; then the Lease is given
//! back, so that another replica takes over at once and never beside us.

mod lock_thread;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::{CONTROLLER, LOCK_API};
use dogwatch_core::admission::{not_in_force, unknown_account};
use dogwatch_core::heal;
use dogwatch_core::leader::Elector;
use dogwatch_core::reboot::Config;
use dogwatch_k8s::cluster::ClusterWatch;
use dogwatch_k8s::leader::LeaderClient;
use dogwatch_k8s::{Client, Kind, admission};
use dogwatch_process::clock::Clock;
use dogwatch_process::http::{HttpError, Server};
use dogwatch_process::jitter::Jitter;
use dogwatch_process::listen::Listen;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::board::Board;
use crate::cluster::{Cluster, Showing};
use crate::leader::{Election, Leadership};
use crate::lock::engine::Gatekeeper;
use crate::lock::http;
use crate::metrics::Metrics;
use crate::power;
use crate::{Context, Stop, Stopper, handshake, healer, policy_status, remedy, schedule};

/// How long components may take to finish once they are told to stop. The Deployment's
/// `terminationGracePeriodSeconds` is longer. Source: specification §2.7.
pub const FINISH_WITHIN: Duration = Duration::from_secs(20);

/// How long after an API server that was away is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(30);

/// What one replica may be made of. Source: specification §7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// What leads: the healer, and the status of policies.
    Healer,
    /// The lock over HTTP, on every replica. Strangers reach it: it runs best as a program of its own.
    Lock,
    /// The power of BareMetalHosts, by the one that leads.
    Power,
    /// Failed machines are proved off and come back, by the one that leads; needs [`Component::Power`].
    Remediation,
}

impl Component {
    /// Whether it acts for the whole cluster, so that only one replica may.
    fn needs_a_leader(self) -> bool {
        match self {
            Component::Healer | Component::Power | Component::Remediation => true,
            Component::Lock => false,
        }
    }

    /// Whether it looks at Nodes and Leases.
    fn needs_the_cluster(self) -> bool {
        match self {
            Component::Healer | Component::Remediation => true,
            Component::Lock | Component::Power => false,
        }
    }
}

/// What a process is started with.
pub struct Setup {
    /// The API server.
    pub client: Client,
    /// The same, with connections of its own, for the lock's thread.
    pub lock_client: Client,
    /// Dogwatch's namespace.
    pub namespace: String,
    /// The process' one clock.
    pub clock: Clock,
    /// What the flags say of nodes; a policy goes before them.
    pub flags: Config,
    /// Random: letters, digits and dashes, at most 40. No other process ever had it.
    pub process: String,
    /// What runs.
    pub components: BTreeSet<Component>,
    /// Where metrics and probes are served.
    pub listen: Listen,
    /// Where the kubelet's probes are served, and nothing else.
    pub probe_listen: Listen,
    /// Where the lock is served, and to whom.
    pub lock: http::Config,
    /// How the power of hosts is kept.
    pub power: power::Settings,
    /// How failed machines are remediated.
    pub remediation: dogwatch_core::remedy::Config,
    /// Asks the Prometheus gates of policies that rule hosts of the lock API.
    pub gatekeeper: Arc<dyn Gatekeeper>,
}

/// Why it does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The metrics' socket.
    #[error(transparent)]
    Metrics(#[from] HttpError),
    /// The lock's sockets and certificates.
    #[error(transparent)]
    Lock(#[from] http::StartError),
    /// The lock's thread.
    #[error("cannot start a thread for the lock")]
    Thread(#[source] std::io::Error),
    /// A component ended by itself: a defect, and nothing that another try here would mend.
    #[error("{0} ended unexpectedly")]
    Ended(&'static str),
}

/// Runs until `stop` is ready and everything is finished.
///
/// # Errors
/// What is wrong at the start; later, only a defect.
pub async fn run(setup: Setup, stop: impl Future<Output = ()>) -> Result<(), RunError> {
    let (stopper, stopped) = Stop::new();
    let (terms, leadership) = Leadership::new(setup.clock.clone());
    let (showing, cluster) = Cluster::new();
    let metrics = Metrics::default();
    let context = Context {
        client: setup.client,
        namespace: setup.namespace,
        clock: setup.clock,
        flags: setup.flags,
        process: setup.process,
        leadership,
        cluster,
        board: Board::new(metrics.clone()),
        metrics,
        stop: stopped,
    };
    if let Some(server) = Server::bind(&setup.listen).await? {
        info!(address = %server.address(), "serves /metrics, /healthz and /readyz");
        tokio::spawn(server.serve(context.board.clone()));
    }
    if let Some(server) = Server::bind_probes(&setup.probe_listen).await? {
        info!(address = %server.address(), "serves the kubelet's probes");
        tokio::spawn(server.serve(context.board.clone()));
    }
    tokio::spawn(say_weak_admission(
        context.clone(),
        setup.components.clone(),
    ));
    let jitter = Jitter::of(&context.process);
    let mut components = JoinSet::new();
    if setup.components.contains(&Component::Lock) {
        let context = Context {
            client: setup.lock_client,
            ..context.clone()
        };
        let lock = lock_thread::start(context, setup.lock, setup.gatekeeper).await?;
        components.spawn(named("the lock", lock));
    }
    let (last_stopper, last_stop) = Stop::new();
    let mut election = JoinSet::new();
    let parts = &setup.components;
    if parts.iter().any(|part| part.needs_the_cluster()) {
        watch_cluster(&context, showing, jitter.clone());
    }
    let leading = leading(&context, parts, setup.power, setup.remediation);
    for (name, part) in leading {
        components.spawn(named(name, part));
    }
    if parts.iter().any(|part| part.needs_a_leader()) {
        election.spawn(lead(&context, terms, jitter).run(last_stop));
    }
    let ended = tokio::select! {
        () = stop => Ok(()),
        Some(part) = components.join_next() => Err(ended(part)),
        Some(_) = election.join_next() => Err(RunError::Ended("the election")),
    };
    finish(stopper, components, last_stopper, election).await;
    ended
}

/// A policy that limits nobody says nothing itself.
async fn say_weak_admission(context: Context, parts: BTreeSet<Component>) {
    let gaps = loop {
        match admission_gaps(&context, &parts).await {
            Ok(gaps) => break gaps,
            Err(error) if error.kind() == Kind::Transient => tokio::time::sleep(ASK_AGAIN).await,
            Err(error) => {
                let error = error.in_words();
                info!(
                    error,
                    "cannot look whether the admission policies are in force"
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
    context: &Context,
    parts: &BTreeSet<Component>,
) -> Result<Vec<String>, dogwatch_k8s::Error> {
    let user = admission::user(&context.client).await?.unwrap_or_default();
    if parts.iter().all(|part| *part == Component::Lock) {
        // It has no right to look at policies, and the controller says what is wrong with them.
        let unknown = unknown_account(&user, LOCK_API, &context.namespace);
        return Ok(unknown.into_iter().collect());
    }
    let unknown = unknown_account(&user, CONTROLLER, &context.namespace);
    let policies = admission::policies(&context.client).await?;
    let weak = policies.iter().flat_map(not_in_force);
    Ok(unknown.into_iter().chain(weak).collect())
}

type Part = (&'static str, BoxFuture<'static, ()>);

/// What acts only while this process leads, each with its name. It ends when the context's stop is told.
pub fn leading(
    context: &Context,
    parts: &BTreeSet<Component>,
    power: power::Settings,
    remediation: dogwatch_core::remedy::Config,
) -> Vec<Part> {
    let mut leading: Vec<Part> = Vec::new();
    if parts.contains(&Component::Healer) {
        let policies = policy_status::run(context.clone());
        leading.push(("the status of policies", policies.boxed()));
        let healing = heal::Config {
            flags: context.flags.clone(),
            ..heal::Config::default()
        };
        leading.push(("the healer", healer::run(context.clone(), healing).boxed()));
    }
    if parts.iter().any(|part| part.needs_the_cluster()) {
        let telling = handshake::run(context.clone());
        leading.push(("the handshake with other health checks", telling.boxed()));
    }
    if parts.contains(&Component::Remediation) {
        let settings = remedy::Settings {
            config: remediation,
            power: power.board.clone(),
            power_config: power.config,
            board: remedy::RemediationBoard::default(),
        };
        let remediation = remedy::run(context.clone(), settings);
        leading.push(("remediation", remediation.boxed()));
    }
    if parts.contains(&Component::Power) {
        leading.push(("power control", power::run(context.clone(), power).boxed()));
    }
    if parts.iter().any(|part| part.needs_a_leader()) {
        leading.push(("the schedules", schedule::run(context.clone()).boxed()));
    }
    leading
}

/// Watches end with the runtime: nothing of theirs is worth waiting for.
fn watch_cluster(context: &Context, showing: Showing, jitter: Jitter) {
    let watches = ClusterWatch::new(context.client.clone(), &context.namespace, move || {
        jitter.draw()
    });
    tokio::spawn(showing.run(watches));
    tokio::spawn(say_when_synced(context.clone()));
}

/// First what acts, then what gives it the right to.
async fn finish(
    components_stop: Stopper,
    mut components: JoinSet<&'static str>,
    election_stop: Stopper,
    mut election: JoinSet<()>,
) {
    info!("told to stop");
    components_stop.stop();
    let all = async { while components.join_next().await.is_some() {} };
    if tokio::time::timeout(FINISH_WITHIN, all).await.is_err() {
        warn!("some parts did not finish in time; what they left is healed by whoever leads next");
        components.shutdown().await;
    }
    election_stop.stop();
    while election.join_next().await.is_some() {}
}

async fn named(name: &'static str, part: impl Future<Output = ()>) -> &'static str {
    part.await;
    name
}

fn ended(part: Result<&'static str, tokio::task::JoinError>) -> RunError {
    RunError::Ended(part.unwrap_or("a part of it"))
}

fn lead(
    context: &Context,
    terms: tokio::sync::watch::Sender<Option<dogwatch_core::leader::Term>>,
    jitter: Jitter,
) -> Election {
    let elector = Elector::new(context.process.clone(), jitter.draw());
    let lease = LeaderClient::new(
        context.client.clone(),
        &context.namespace,
        context.process.clone(),
    );
    Election::new(
        elector,
        lease,
        context.clock.clone(),
        terms,
        context.metrics.clone(),
        context.board.heart("election"),
        move || jitter.draw(),
    )
}

/// Ready once the watches are in sync, leading or not: the one that takes over must not begin to
/// look only then.
async fn say_when_synced(context: Context) {
    const PART: &str = "watches";
    let mut cluster = context.cluster.clone();
    let mut view = cluster.view();
    while !view.synced {
        let trouble: Vec<String> = view
            .trouble
            .iter()
            .map(|(what, why)| format!("{what}: {why}"))
            .collect();
        let why = match trouble.as_slice() {
            [] => "not in sync yet".to_owned(),
            some => format!("not in sync yet ({})", some.join("; ")),
        };
        context.board.ready(PART, Err(why));
        view = cluster.next().await;
    }
    context.board.ready(PART, Ok(()));
    info!(
        nodes = view.nodes.len(),
        policies = view.policy_objects.len(),
        "in sync"
    );
}

//! Starts `dogwatch-coordinator`: builds its parts and reports start errors.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Parser as _;
use dogwatch_api::COORDINATOR;
use dogwatch_coordinator::agent::{
    CoordinatorAgent, CoordinatorExit, CoordinatorSetup, DecisionSink, HostOps as _,
};
use dogwatch_coordinator::args::{Args, WriterIdentity};
use dogwatch_coordinator::clock::ProcessClock;
use dogwatch_coordinator::decision_log::LoggedDecisions;
use dogwatch_coordinator::http::{CoordinatorHttpState, HealthServer};
use dogwatch_coordinator::linux_host_ops::LinuxHostOps;
use dogwatch_coordinator::log;
use dogwatch_core::admission::describe_unknown_account;
use dogwatch_core::decision::{DecisionEvent, EventSeverity};
use dogwatch_core::name::RunId;
use dogwatch_core::reboot::{RebootConfig, RebootReason};
use dogwatch_k8s::node::EventWriter;
use dogwatch_k8s::{ApiErrorKind, Client, admission, node};
use dogwatch_prometheus::PrometheusClient;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

/// The kernel returns a random UUID at each read of this file.
const RANDOM_UUID: &str = "/proc/sys/kernel/random/uuid";

/// Reporter of the Event about an unknown account: the admission policies let only known accounts
/// report as the coordinator.
const UNKNOWN_ACCOUNT_REPORTER: &str = "dogwatch";

/// Pause before an unreachable API server is asked again for our user name.
const ACCOUNT_CHECK_INTERVAL: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let args = Args::parse();
    if let Err(error) = log::init_log(args.log_format) {
        eprintln!("dogwatch-coordinator: {error}");
        return ExitCode::from(2);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("dogwatch-coordinator: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let ended = runtime.block_on(run(args));
    // Only watches still run; nothing in them is worth waiting for.
    runtime.shutdown_background();
    match ended {
        Ok(CoordinatorExit::Stopped) => ExitCode::SUCCESS,
        Ok(CoordinatorExit::Superseded { by }) => {
            eprintln!(
                "dogwatch-coordinator: another coordinator of this node (run {by}) has taken over: run only one coordinator per node"
            );
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("dogwatch-coordinator: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> anyhow::Result<CoordinatorExit> {
    let mut terminated = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupted = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let stop = async move {
        tokio::select! {
            biased;
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
        info!("stopping after a signal");
    };
    let mut stop = std::pin::pin!(stop);
    let agent = tokio::select! {
        biased;
        () = &mut stop => return Ok(CoordinatorExit::Stopped),
        agent = prepare_agent(&args) => agent?,
    };
    Ok(agent.run(stop).await)
}

async fn prepare_agent(args: &Args) -> anyhow::Result<CoordinatorAgent> {
    let mut hands = LinuxHostOps::new(args)?;
    if let Err(why) = hands.read_boot_id() {
        bail!(why);
    }
    let client = dogwatch_k8s::connect().await?;
    let node_client = connect_node_client(&client, args).await?;
    let board = CoordinatorHttpState::new();
    if let Some(server) = HealthServer::bind(&args.listen).await? {
        info!(address = %server.address(), "serves /metrics, /healthz and /readyz");
        tokio::spawn(server.serve_forever(board.clone()));
    }
    if let Some(server) = HealthServer::bind_probes(&args.probe_listen).await? {
        info!(address = %server.address(), "serves the kubelet's probes");
        tokio::spawn(server.serve_forever(board.clone()));
    }
    check_node_exists(&client, args).await?;
    tokio::spawn(report_unknown_account(client.clone(), args.clone()));
    let run = std::fs::read_to_string(RANDOM_UUID)
        .with_context(|| format!("cannot read {RANDOM_UUID}"))?;
    let run = RunId::new(format!("coordinator/{}", run.trim()))?;
    info!(node = %args.node_name, %run, "started");
    let clock = ProcessClock::system_clock();
    let heart = board.heart.clone();
    let decision_sink = open_decision_sink(board, args, &clock, &run)?;
    Ok(CoordinatorAgent::new(CoordinatorSetup {
        client,
        node_client,
        node: args.node_name.clone(),
        namespace: args.namespace.clone(),
        config: build_config(args),
        run,
        clock,
        host_ops: Box::new(hands),
        gatekeeper: Arc::new(PrometheusClient::new(args.prometheus.prometheus_settings())),
        heart,
        decision_sink,
    }))
}

/// Without `--decision-log` there is no file, no thread and no line.
fn open_decision_sink(
    board: CoordinatorHttpState,
    args: &Args,
    clock: &ProcessClock,
    run: &RunId,
) -> anyhow::Result<Arc<dyn DecisionSink>> {
    let Some(path) = &args.decision_log else {
        return Ok(Arc::new(board));
    };
    let run = run.to_string();
    let logged = LoggedDecisions::open(board, path, clock.clone(), run, &args.node_name);
    let logged = logged.with_context(|| {
        let path = path.display();
        format!(
            "cannot open {path} for --decision-log: check that its folder exists and may be written"
        )
    })?;
    Ok(Arc::new(logged))
}

/// The client with the identity that writes this Node and evicts its pods.
async fn connect_node_client(client: &Client, args: &Args) -> anyhow::Result<Client> {
    let files = match args.identity {
        WriterIdentity::ServiceAccount => return Ok(client.clone()),
        WriterIdentity::Kubelet => args.kubelet_files(),
    };
    if let Err(why) = files.read_pem() {
        bail!(why);
    }
    let kubelet = dogwatch_k8s::connect_by_certificate(move || files.read_pem()).await?;
    let expected = format!("system:node:{}", args.node_name);
    match admission::read_own_user(&kubelet).await {
        Ok(user) if user.as_ref().is_none_or(|user| *user == expected) => Ok(kubelet),
        Ok(user) => bail!(
            "the certificate at {} belongs to user {:?}, not to {expected:?}: set --kubelet-certificate to the certificate of this node's kubelet",
            args.kubelet_certificate.display(),
            user.unwrap_or_default(),
        ),
        Err(error) => {
            warn!(
                error = error.error_chain(),
                "cannot yet read which user the kubelet's certificate belongs to"
            );
            Ok(kubelet)
        }
    }
}

/// A definite error ends the process. An unreachable API server does not: the node may have booted
/// before it.
async fn check_node_exists(client: &Client, args: &Args) -> anyhow::Result<()> {
    let name = &args.node_name;
    match node::get_node(client, name.as_str()).await {
        Ok(Some(_)) => Ok(()),
        Ok(None) => bail!(
            "there is no Node {name}: set --node-name to a name that `kubectl get nodes` shows"
        ),
        Err(error) if error.kind() == ApiErrorKind::Forbidden => bail!(
            "not allowed to read Node {name}: bind the ClusterRole of deploy/base to this ServiceAccount ({})",
            error.error_chain()
        ),
        Err(error) => {
            warn!(
                error = error.error_chain(),
                "the API server does not answer; retrying"
            );
            Ok(())
        }
    }
}

/// Admission policies that do not know our account restrict nobody, and give no error themselves.
async fn report_unknown_account(client: Client, args: Args) {
    let user = loop {
        match admission::read_own_user(&client).await {
            Ok(user) => break user.unwrap_or_default(),
            Err(error) if error.kind() == ApiErrorKind::Transient => {
                tokio::time::sleep(ACCOUNT_CHECK_INTERVAL).await;
            }
            Err(error) => {
                warn!(
                    error = error.error_chain(),
                    "the API server does not report the coordinator's user name"
                );
                return;
            }
        }
    };
    let Some(why) = describe_unknown_account(&user, COORDINATOR, &args.namespace) else {
        return;
    };
    warn!(user, "{why}");
    let event = DecisionEvent {
        severity: EventSeverity::Warning,
        reason: RebootReason::AccountUnknown.as_str(),
        message: why,
    };
    if let Err(error) = write_node_event(&client, &args, &event).await {
        warn!(
            error = error.error_chain(),
            "failed to write an Event about it on the Node"
        );
    }
}

async fn write_node_event(
    client: &Client,
    args: &Args,
    event: &DecisionEvent,
) -> Result<(), dogwatch_k8s::Error> {
    let Some(node) = node::get_node(client, args.node_name.as_str()).await? else {
        return Ok(());
    };
    let uid = node.metadata.uid.unwrap_or_default();
    let writer = EventWriter::new(client.clone(), args.node_name.as_str());
    let mut writer = writer.with_component(UNKNOWN_ACCOUNT_REPORTER);
    writer
        .write_event(event, &uid, "", ProcessClock::system_clock().now())
        .await
}

fn build_config(args: &Args) -> RebootConfig {
    RebootConfig {
        max_unavailable: args.max_unavailable,
        drain_timeout: args.drain_timeout,
        on_drain_timeout: args.on_drain_timeout.into(),
        volume_detach_timeout: args.volume_detach_timeout,
        reboot_timeout: args.reboot_timeout,
        reboot_attempts: args.reboot_attempts,
        settle: args.settle,
        request_label: args.reboot_request_label.clone(),
        ..RebootConfig::default()
    }
}

//! `dogwatch-coordinator`: wiring, and what is wrong at the start.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Parser as _;
use dogwatch_api::COORDINATOR;
use dogwatch_coordinator::agent::{Agent, Exit, Hands as _, Setup};
use dogwatch_coordinator::args::{Args, Identity};
use dogwatch_coordinator::clock::Clock;
use dogwatch_coordinator::http::{Board, Server};
use dogwatch_coordinator::log;
use dogwatch_coordinator::node_hands::NodeHands;
use dogwatch_core::admission::unknown_account;
use dogwatch_core::decision::{Event, Severity};
use dogwatch_core::name::RunId;
use dogwatch_core::reboot::{Config, reason};
use dogwatch_k8s::node::EventWriter;
use dogwatch_k8s::{Client, Kind, admission, node};
use dogwatch_prometheus::Prometheus;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

/// Where the kernel gives away random UUIDs.
const RANDOM_UUID: &str = "/proc/sys/kernel/random/uuid";

/// Who speaks where the admission policies let nobody but a known account speak as the coordinator.
const UNKNOWN: &str = "dogwatch";

/// How long after an API server that was away is asked again who we are.
const ASK_AGAIN: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let args = Args::parse();
    if let Err(error) = log::begin(args.log_format) {
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
    // What still runs is watches; nothing of theirs is worth waiting for.
    runtime.shutdown_background();
    match ended {
        Ok(Exit::Stopped) => ExitCode::SUCCESS,
        Ok(Exit::Superseded { by }) => {
            eprintln!(
                "dogwatch-coordinator: run {by} of this node's coordinator has taken over: run only one per node"
            );
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("dogwatch-coordinator: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> anyhow::Result<Exit> {
    let mut terminated = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupted = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let stop = async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
        info!("told to stop");
    };
    let mut stop = std::pin::pin!(stop);
    let agent = tokio::select! {
        biased;
        () = &mut stop => return Ok(Exit::Stopped),
        agent = prepare(&args) => agent?,
    };
    Ok(agent.run(stop).await)
}

async fn prepare(args: &Args) -> anyhow::Result<Agent> {
    let mut hands = NodeHands::new(args)?;
    if let Err(why) = hands.boot_id() {
        bail!(why);
    }
    let client = dogwatch_k8s::connect().await?;
    let node_client = node_client(&client, args).await?;
    let board = Board::new();
    if let Some(server) = Server::bind(&args.listen).await? {
        info!(address = %server.address(), "serves /metrics, /healthz and /readyz");
        tokio::spawn(server.serve(board.clone()));
    }
    if let Some(server) = Server::bind_probes(&args.probe_listen).await? {
        info!(address = %server.address(), "serves the kubelet's probes");
        tokio::spawn(server.serve(board.clone()));
    }
    node_exists(&client, args).await?;
    tokio::spawn(say_unknown_account(client.clone(), args.clone()));
    let run = std::fs::read_to_string(RANDOM_UUID)
        .with_context(|| format!("cannot read {RANDOM_UUID}"))?;
    let run = RunId::new(format!("coordinator/{}", run.trim()))?;
    info!(node = %args.node_name, %run, "started");
    Ok(Agent::new(Setup {
        client,
        node_client,
        node: args.node_name.clone(),
        namespace: args.namespace.clone(),
        config: config(args),
        run,
        clock: Clock::system(),
        hands: Box::new(hands),
        gatekeeper: Arc::new(Prometheus::new(args.prometheus.settings())),
        heart: board.heart.clone(),
        watcher: Arc::new(board),
    }))
}

/// Who writes this Node and evicts its pods.
async fn node_client(client: &Client, args: &Args) -> anyhow::Result<Client> {
    let files = match args.identity {
        Identity::ServiceAccount => return Ok(client.clone()),
        Identity::Kubelet => args.kubelet_files(),
    };
    if let Err(why) = files.read() {
        bail!(why);
    }
    let kubelet = dogwatch_k8s::connect_by_certificate(move || files.read()).await?;
    let expected = format!("system:node:{}", args.node_name);
    match admission::user(&kubelet).await {
        Ok(user) if user.as_ref().is_none_or(|user| *user == expected) => Ok(kubelet),
        Ok(user) => bail!(
            "the certificate at {} is of user {:?}, not of {expected:?}: set --kubelet-certificate to this node's own",
            args.kubelet_certificate.display(),
            user.unwrap_or_default(),
        ),
        Err(error) => {
            warn!(
                error = error.in_words(),
                "cannot tell yet whose the kubelet's certificate is"
            );
            Ok(kubelet)
        }
    }
}

/// What is certainly wrong is an error now; a server that is away is not: the node may have booted
/// before it.
async fn node_exists(client: &Client, args: &Args) -> anyhow::Result<()> {
    let name = &args.node_name;
    match node::get_node(client, name.as_str()).await {
        Ok(Some(_)) => Ok(()),
        Ok(None) => bail!(
            "there is no Node {name}: set --node-name to a name that `kubectl get nodes` shows"
        ),
        Err(error) if error.kind() == Kind::Forbidden => bail!(
            "not allowed to read Node {name}: bind the ClusterRole of deploy/base to this ServiceAccount ({})",
            error.in_words()
        ),
        Err(error) => {
            warn!(
                error = error.in_words(),
                "the API server does not answer; trying for ever"
            );
            Ok(())
        }
    }
}

/// Policies that do not know our account limit nobody, and say nothing themselves.
async fn say_unknown_account(client: Client, args: Args) {
    let user = loop {
        match admission::user(&client).await {
            Ok(user) => break user.unwrap_or_default(),
            Err(error) if error.kind() == Kind::Transient => tokio::time::sleep(ASK_AGAIN).await,
            Err(error) => {
                warn!(
                    error = error.in_words(),
                    "the API server does not say who we are"
                );
                return;
            }
        }
    };
    let Some(why) = unknown_account(&user, COORDINATOR, &args.namespace) else {
        return;
    };
    warn!(user, "{why}");
    let event = Event {
        severity: Severity::Warning,
        reason: reason::ACCOUNT_UNKNOWN,
        message: why,
    };
    if let Err(error) = say(&client, &args, &event).await {
        warn!(error = error.in_words(), "could not say it on the Node");
    }
}

async fn say(client: &Client, args: &Args, event: &Event) -> Result<(), dogwatch_k8s::Error> {
    let Some(node) = node::get_node(client, args.node_name.as_str()).await? else {
        return Ok(());
    };
    let uid = node.metadata.uid.unwrap_or_default();
    let writer = EventWriter::new(client.clone(), args.node_name.as_str());
    let mut writer = writer.in_the_name_of(UNKNOWN);
    writer.say(event, &uid, "", Clock::system().now()).await
}

fn config(args: &Args) -> Config {
    Config {
        max_unavailable: args.max_unavailable,
        drain_timeout: args.drain_timeout,
        on_drain_timeout: args.on_drain_timeout.into(),
        volume_detach_timeout: args.volume_detach_timeout,
        reboot_timeout: args.reboot_timeout,
        reboot_attempts: args.reboot_attempts,
        settle: args.settle,
        ..Config::default()
    }
}

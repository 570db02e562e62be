//! Implements `dogwatch controller`, which runs beside the coordinators as a Deployment with two
//! replicas.

mod args;
mod power;
mod remediation;

use std::path::Path;
use std::sync::Arc;

use dogwatch_controller::decision_log::ControllerDecisionLog;
use dogwatch_controller::lock::http::{self, TlsFiles};
use dogwatch_controller::power::PowerSettings;
use dogwatch_controller::run::{ControllerComponent, ControllerSetup, RunError, WebTask};
use dogwatch_core::fleetlock::FleetlockGroups;
use dogwatch_core::name::GroupName;
use dogwatch_core::reboot::RebootConfig;
use dogwatch_prometheus::PrometheusClient;
use dogwatch_runtime::clock::ProcessClock;
use dogwatch_runtime::decision_log::DecisionLogWriter;
use dogwatch_runtime::log;
use dogwatch_runtime::stop::StopSignal;
use futures::FutureExt as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::info;

pub use self::args::ControllerArgs;
use super::dashboard::web_component::WebComponent;
use crate::args::ClusterArgs;
use crate::exit::{CliExitCode, CommandFailure};
use crate::fleet_feed::rollout_estimator;

/// The kernel's source of random UUIDs.
const RANDOM_UUID_PATH: &str = "/proc/sys/kernel/random/uuid";

/// Runs until SIGTERM or SIGINT.
pub async fn run(cluster: &ClusterArgs, args: ControllerArgs) -> Result<(), CommandFailure> {
    log::init_log(args.log_format)
        .map_err(|error| CommandFailure::new(CliExitCode::Usage, error.to_string()))?;
    let stop = stop_signal()?;
    let setup = build_setup(cluster, args).await?;
    info!(process = setup.process, "started");
    dogwatch_controller::run::run_controller(setup, stop)
        .await
        .map_err(|error| run_failure(&error))
}

/// Resolves on SIGTERM or SIGINT.
fn stop_signal() -> Result<impl Future<Output = ()>, CommandFailure> {
    let mut terminated = listen_for_signal(SignalKind::terminate())?;
    let mut interrupted = listen_for_signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    })
}

fn listen_for_signal(kind: SignalKind) -> Result<Signal, CommandFailure> {
    let failed = |error| {
        CommandFailure::new(
            CliExitCode::Failed,
            format!("cannot listen for signals: {error}"),
        )
    };
    signal(kind).map_err(failed)
}

async fn build_setup(
    cluster: &ClusterArgs,
    args: ControllerArgs,
) -> Result<ControllerSetup, CommandFailure> {
    // A namespace is a DNS label, as a group's name is.
    GroupName::new(cluster.namespace.as_str()).map_err(|error| {
        let text = format!("namespace {:?}: {}", cluster.namespace, error.why);
        CommandFailure::new(CliExitCode::Usage, text)
    })?;
    let lock = lock_config(&args)?;
    require_power_component(&args.components)?;
    let context = cluster.context.as_deref();
    let connected = || async {
        let connection = dogwatch_k8s::connect_to_context(context).await;
        connection.map_err(|error| CommandFailure::from_connect_error(&error))
    };
    let connection = connected().await?;
    let web = start_web(cluster, &args, &connection).await?;
    let workload = args.remediation.kubeconfig_secret();
    let power = PowerSettings {
        has_workload_clusters: workload.is_some(),
        ..args.power.power_settings()?
    };
    let lock_connection = connected().await?;
    let process = draw_process_name()?;
    let gatekeeper = Arc::new(PrometheusClient::new(args.prometheus.prometheus_settings()));
    let flags = RebootConfig {
        max_unavailable: args.max_unavailable,
        drain_timeout: args.drain_timeout,
        ..RebootConfig::default()
    };
    let clock = ProcessClock::system_clock();
    Ok(ControllerSetup {
        client: connection.client,
        lock_client: lock_connection.client,
        namespace: cluster.namespace.clone(),
        decision_log: open_decision_log(args.decision_log.as_deref(), &clock, &process)?,
        clock,
        workload,
        remediation: args.remediation.remediation_config(flags.clone()),
        flags,
        process,
        components: args
            .components
            .into_iter()
            .map(ControllerComponent::from)
            .collect(),
        listen: args.listen,
        probe_listen: args.probe_listen,
        lock,
        power,
        gate_checker: gatekeeper,
        planner: rollout_estimator(),
        web,
    })
}

/// A random name, which no other process ever had.
fn draw_process_name() -> Result<String, CommandFailure> {
    let text = std::fs::read_to_string(RANDOM_UUID_PATH).map_err(|error| {
        let what = format!("cannot read {RANDOM_UUID_PATH}: {error}");
        CommandFailure::new(CliExitCode::Failed, what)
    })?;
    Ok(text.trim().to_owned())
}

/// Without `--decision-log` there is no file, no thread and no line.
fn open_decision_log(
    path: Option<&Path>,
    clock: &ProcessClock,
    process: &str,
) -> Result<ControllerDecisionLog, CommandFailure> {
    let Some(path) = path else {
        return Ok(ControllerDecisionLog::default());
    };
    let file = DecisionLogWriter::open(path, clock.clone(), process.to_owned());
    let file = file.map_err(|error| {
        let path = path.display();
        let what = format!("cannot open {path} for --decision-log: {error}");
        CommandFailure::new(CliExitCode::Failed, what)
            .with_next_step("check that its folder exists and may be written")
    })?;
    Ok(ControllerDecisionLog::new(file))
}

/// Component `web`, if it is asked for.
async fn start_web(
    cluster: &ClusterArgs,
    args: &ControllerArgs,
    connection: &dogwatch_k8s::ClusterConnection,
) -> Result<Option<WebTask>, CommandFailure> {
    if !args.components.contains(&args::ComponentArg::Web) {
        if args.web_hosts.is_empty() {
            return Ok(None);
        }
        let text = "--web-hosts is for the dashboard, and --components does not name it: add web to --components";
        return Err(CommandFailure::new(CliExitCode::Usage, text));
    }
    let (listen, hosts) = (args.web_listen, &args.web_hosts);
    let web = WebComponent::bind(cluster, connection.clone(), listen, hosts).await?;
    Ok(Some(Box::new(move |stop: StopSignal| {
        async move { web.serve_until(stop.wait_for_stop()).await }.boxed()
    })))
}

/// Remediation needs component power, which makes the proof that a host is off.
fn require_power_component(parts: &[args::ComponentArg]) -> Result<(), CommandFailure> {
    let has = |part| parts.contains(&part);
    if has(args::ComponentArg::Remediation) && !has(args::ComponentArg::Power) {
        let text =
            "--components: remediation needs power, which proves that a host is off: add power";
        return Err(CommandFailure::new(CliExitCode::Usage, text));
    }
    Ok(())
}

/// Refuses unsafe settings before anything starts.
fn lock_config(args: &ControllerArgs) -> Result<http::LockApiConfig, CommandFailure> {
    let usage = |error: http::LockApiStartError| {
        CommandFailure::new(CliExitCode::Usage, error_chain_text(&error))
    };
    let tls = TlsFiles::from_flags(
        args.lock_tls_cert.clone(),
        args.lock_tls_key.clone(),
        args.lock_client_ca.clone(),
    );
    let config = http::LockApiConfig {
        tls: tls.map_err(usage)?,
        audiences: args.lock_audience.clone(),
        fleetlock: args.fleetlock_listen,
        fleetlock_groups: FleetlockGroups::new(args.fleetlock_groups.clone()),
        fleetlock_drain: args.fleetlock_drain,
        ..http::LockApiConfig::new(args.lock_listen, args.lock_auth.into())
    };
    if args.components.contains(&args::ComponentArg::Lock) {
        config.check_exposure().map_err(usage)?;
    } else if let Some(flag) = unserved_lock_flag(args) {
        let text = format!(
            "{flag} is for the lock API, and --components does not name it: add lock to --components, or run the lock API on its own (dogwatch manifests --with-lock)"
        );
        return Err(CommandFailure::new(CliExitCode::Usage, text));
    }
    Ok(config)
}

/// A flag of the lock API without component lock: hosts would wait for an answer in vain.
fn unserved_lock_flag(args: &ControllerArgs) -> Option<&'static str> {
    let tls = args.lock_tls_cert.is_some().then_some("--lock-tls-cert");
    let fleetlock = args.fleetlock_listen.is_some();
    tls.or(fleetlock.then_some("--fleetlock-listen"))
}

fn run_failure(error: &RunError) -> CommandFailure {
    CommandFailure::new(CliExitCode::Failed, error_chain_text(error))
}

fn error_chain_text(error: &dyn std::error::Error) -> String {
    dogwatch_k8s::error::error_chain(error)
}

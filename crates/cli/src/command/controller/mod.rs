//! `dogwatch controller`: what runs beside the coordinators, as a Deployment of two.

mod args;
mod power;
mod remediation;

use std::sync::Arc;

use dogwatch_controller::lock::http::{self, TlsFiles};
use dogwatch_controller::run::{Component, RunError, Setup};
use dogwatch_core::fleetlock::FleetlockGroups;
use dogwatch_core::name::GroupName;
use dogwatch_core::reboot::Config;
use dogwatch_process::clock::Clock;
use dogwatch_process::log;
use dogwatch_prometheus::Prometheus;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::info;

pub use self::args::ControllerArgs;
use crate::args::Cluster;
use crate::exit::{Exit, Failure};

/// Where the kernel gives away random UUIDs.
const RANDOM_UUID: &str = "/proc/sys/kernel/random/uuid";

/// Runs until it is told to stop.
pub async fn run(cluster: &Cluster, args: ControllerArgs) -> Result<(), Failure> {
    log::begin(args.log_format).map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    let stop = stop()?;
    let setup = prepare(cluster, args).await?;
    info!(process = setup.process, "started");
    dogwatch_controller::run::run(setup, stop)
        .await
        .map_err(|error| failure(&error))
}

/// Ready when SIGTERM or SIGINT has come.
fn stop() -> Result<impl Future<Output = ()>, Failure> {
    let mut terminated = listen(SignalKind::terminate())?;
    let mut interrupted = listen(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    })
}

fn listen(kind: SignalKind) -> Result<Signal, Failure> {
    let failed = |error| Failure::new(Exit::Failed, format!("cannot listen for signals: {error}"));
    signal(kind).map_err(failed)
}

async fn prepare(cluster: &Cluster, args: ControllerArgs) -> Result<Setup, Failure> {
    // A namespace is a DNS label, by the same rule as a group.
    GroupName::new(cluster.namespace.as_str()).map_err(|error| {
        let text = format!("namespace {:?}: {}", cluster.namespace, error.why);
        Failure::new(Exit::Usage, text)
    })?;
    let lock = lock(&args)?;
    needs_power(&args.components)?;
    let power = args.power.settings()?;
    let context = cluster.context.as_deref();
    let connected = || async {
        let connection = dogwatch_k8s::connect_to(context).await;
        connection.map_err(|error| Failure::connect(&error))
    };
    let connection = connected().await?;
    let lock_connection = connected().await?;
    let process = std::fs::read_to_string(RANDOM_UUID).map_err(|error| {
        Failure::new(Exit::Failed, format!("cannot read {RANDOM_UUID}: {error}"))
    })?;
    let gatekeeper = Arc::new(Prometheus::new(args.prometheus.settings()));
    let flags = Config {
        max_unavailable: args.max_unavailable,
        drain_timeout: args.drain_timeout,
        ..Config::default()
    };
    Ok(Setup {
        client: connection.client,
        lock_client: lock_connection.client,
        namespace: cluster.namespace.clone(),
        clock: Clock::system(),
        remediation: args.remediation.config(flags.clone()),
        flags,
        process: process.trim().to_owned(),
        components: args.components.into_iter().map(Component::from).collect(),
        listen: args.listen,
        probe_listen: args.probe_listen,
        lock,
        power,
        gatekeeper,
    })
}

/// The proof that a host is off is made by the part that keeps its power.
fn needs_power(parts: &[args::Part]) -> Result<(), Failure> {
    let has = |part| parts.contains(&part);
    if has(args::Part::Remediation) && !has(args::Part::Power) {
        let text = "--components: remediation needs power, which proves that a host is off";
        return Err(Failure::new(Exit::Usage, text));
    }
    Ok(())
}

/// What is unsafe is refused before anything is touched.
fn lock(args: &ControllerArgs) -> Result<http::Config, Failure> {
    let usage = |error: http::StartError| Failure::new(Exit::Usage, words(&error));
    let tls = TlsFiles::from_flags(
        args.lock_tls_cert.clone(),
        args.lock_tls_key.clone(),
        args.lock_client_ca.clone(),
    );
    let config = http::Config {
        tls: tls.map_err(usage)?,
        audiences: args.lock_audience.clone(),
        fleetlock: args.fleetlock_listen,
        fleetlock_groups: FleetlockGroups::new(args.fleetlock_groups.clone()),
        fleetlock_drain: args.fleetlock_drain,
        ..http::Config::new(args.lock_listen, args.lock_auth.into())
    };
    if args.components.contains(&args::Part::Lock) {
        config.check().map_err(usage)?;
    } else if let Some(flag) = unserved(args) {
        let text = format!(
            "{flag}: the lock is not served by these components; run it by itself (dogwatch manifests --with-lock), or name lock in --components"
        );
        return Err(Failure::new(Exit::Usage, text));
    }
    Ok(config)
}

/// A flag of the lock that was given where nobody serves it: hosts would wait for an answer in vain.
fn unserved(args: &ControllerArgs) -> Option<&'static str> {
    let tls = args.lock_tls_cert.is_some().then_some("--lock-tls-cert");
    let fleetlock = args.fleetlock_listen.is_some();
    tls.or(fleetlock.then_some("--fleetlock-listen"))
}

fn failure(error: &RunError) -> Failure {
    Failure::new(Exit::Failed, words(error))
}

fn words(error: &dyn std::error::Error) -> String {
    dogwatch_k8s::error::in_words(error)
}

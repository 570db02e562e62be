//! The test bed as a command: it prepares what tests need, and runs a control plane for a person.
//! `cargo xtask` calls it, so that xtask itself compiles in seconds.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use dogwatch_testbed::{
    ControlPlane, ControlPlaneBinaries, ControlPlaneProgram, KubernetesRelease, browser, helm,
    module_crds, prometheus, sushy, vm,
};
use tokio::signal::unix::{SignalKind, signal};

/// Prepare what tests need, or run a control plane
#[derive(Parser)]
#[command(name = "testbed")]
enum TestbedCommand {
    /// Find, download or build these parts
    Prepare { parts: Vec<TestbedPart> },
    /// Run a real control plane on loopback until ctrl-c
    ControlPlane {
        /// Only build the programs, and print where they are
        #[arg(long)]
        build_only: bool,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum TestbedPart {
    Browser,
    ControlPlane,
    Helm,
    ModuleCrds,
    Prometheus,
    RedfishEmulator,
    VirtualMachine,
}

fn main() -> ExitCode {
    let outcome = match TestbedCommand::parse() {
        TestbedCommand::Prepare { parts } => parts.into_iter().try_for_each(prepare_part),
        TestbedCommand::ControlPlane { build_only: true } => print_programs(),
        TestbedCommand::ControlPlane { build_only: false } => run_control_plane(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn prepare_part(part: TestbedPart) -> Result<()> {
    match part {
        TestbedPart::Browser => browser::find_or_install()
            .map(drop)
            .context("failed to get the browser's driver"),
        TestbedPart::ControlPlane => ControlPlaneBinaries::find_or_build()
            .map(drop)
            .context("failed to get the real control plane"),
        TestbedPart::Helm => helm::find_or_build()
            .map(drop)
            .context("failed to get the real helm"),
        TestbedPart::ModuleCrds => module_crds::find_or_download()
            .map(drop)
            .context("failed to get the CRDs of other projects"),
        TestbedPart::Prometheus => prometheus::find_or_build()
            .map(drop)
            .context("failed to get the real Prometheus"),
        TestbedPart::RedfishEmulator => sushy::find_or_install()
            .map(drop)
            .context("failed to get the Redfish emulator"),
        TestbedPart::VirtualMachine => vm::find_or_make_image()
            .map(drop)
            .context("failed to get the virtual machine"),
    }
}

fn print_programs() -> Result<()> {
    let binaries = ControlPlaneBinaries::find_or_build()
        .context("failed to get the control plane's programs")?;
    for program in ControlPlaneProgram::ALL {
        println!("{}", binaries.program_path(program).display());
    }
    Ok(())
}

fn run_control_plane() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("failed to start a runtime")?;
    runtime.block_on(serve_until_signal())
}

async fn serve_until_signal() -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for ctrl-c")?;
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let starting = ControlPlane::start();
    let control_plane = tokio::select! {
        started = starting => started.context("failed to start the control plane")?,
        _ = interrupt.recv() => return Ok(()),
        _ = terminate.recv() => return Ok(()),
    };
    println!(
        "Kubernetes {} at {}",
        KubernetesRelease::selected()?.version(),
        control_plane.api_url()
    );
    println!(
        "export KUBECONFIG={}",
        control_plane.admin_kubeconfig().display()
    );
    println!("kubectl: {}", control_plane.kubectl_path().display());
    println!("it has no kubelet and no scheduler; Ctrl-C stops it and removes all its files");
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

//! The test bed as a command: it prepares what tests need, and runs a control plane for a person.
//! `cargo xtask` calls it, so that xtask itself compiles in seconds.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
};

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use dogwatch_testbed::{
    ControlPlane, ControlPlaneBinaries, ControlPlaneProgram, KubernetesRelease, browser, helm,
    module_crds, prometheus,
    real_node::{self, RealNode, RealScheduler},
    sushy, vm,
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
    /// Run a real control plane and a real node, an emulated machine, until ctrl-c
    RealNode {
        /// A folder with archives of images (*.tar) that the node imports
        images: PathBuf,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum TestbedPart {
    Browser,
    ControlPlane,
    Helm,
    ModuleCrds,
    Prometheus,
    RealNode,
    RedfishEmulator,
    VirtualMachine,
}

impl TestbedPart {
    fn is_compiled_by_go(self) -> bool {
        match self {
            TestbedPart::ControlPlane
            | TestbedPart::Helm
            | TestbedPart::Prometheus
            | TestbedPart::RealNode => true,
            TestbedPart::Browser
            | TestbedPart::ModuleCrds
            | TestbedPart::RedfishEmulator
            | TestbedPart::VirtualMachine => false,
        }
    }
}

fn main() -> ExitCode {
    let outcome = match TestbedCommand::parse() {
        TestbedCommand::Prepare { parts } => prepare_parts(parts),
        TestbedCommand::ControlPlane { build_only: true } => print_programs(),
        TestbedCommand::ControlPlane { build_only: false } => run_until_signal(serve_control_plane),
        TestbedCommand::RealNode { images } => {
            run_until_signal(async || serve_real_node(&images).await)
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Those that Go compiles come one after the other, because they share its build cache. The others,
/// which mostly wait for the network or for one emulated processor, are prepared beside them.
fn prepare_parts(parts: Vec<TestbedPart>) -> Result<()> {
    let (compiled, others): (Vec<_>, Vec<_>) =
        parts.into_iter().partition(|part| part.is_compiled_by_go());
    let prepare_all = |parts: Vec<TestbedPart>| parts.into_iter().try_for_each(prepare_part);
    thread::scope(|scope| {
        let others = scope.spawn(|| prepare_all(others));
        let compiled = prepare_all(compiled);
        compiled.and(others.join().expect("no part panics"))
    })
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
        TestbedPart::RealNode => prepare_real_node().context("failed to get the real node"),
        TestbedPart::RedfishEmulator => sushy::find_or_install()
            .map(drop)
            .context("failed to get the Redfish emulator"),
        TestbedPart::VirtualMachine => vm::find_or_make_image()
            .map(drop)
            .context("failed to get the virtual machine"),
    }
}

fn prepare_real_node() -> Result<()> {
    real_node::find_or_build_programs()?;
    real_node::find_or_make_root_disk()?;
    Ok(())
}

fn print_programs() -> Result<()> {
    let binaries = ControlPlaneBinaries::find_or_build()
        .context("failed to get the control plane's programs")?;
    for program in ControlPlaneProgram::ALL {
        println!("{}", binaries.program_path(program).display());
    }
    Ok(())
}

/// Keeps what `start` returns until ctrl-c or SIGTERM; they also end the start.
fn run_until_signal<T>(start: impl AsyncFnOnce() -> Result<T>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("failed to start a runtime")?;
    runtime.block_on(async {
        let mut interrupt =
            signal(SignalKind::interrupt()).context("failed to listen for ctrl-c")?;
        let mut terminate =
            signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
        let _served = tokio::select! {
            started = start() => started?,
            _ = interrupt.recv() => return Ok(()),
            _ = terminate.recv() => return Ok(()),
        };
        println!("Ctrl-C stops it and removes all its files");
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        Ok(())
    })
}

async fn serve_control_plane() -> Result<ControlPlane> {
    let control_plane = ControlPlane::start().await;
    let control_plane = control_plane.context("failed to start the control plane")?;
    print_access(&control_plane)?;
    println!("it has no kubelet and no scheduler");
    Ok(control_plane)
}

/// They end in this order.
async fn serve_real_node(images: &Path) -> Result<(RealNode, RealScheduler, ControlPlane)> {
    let control_plane = ControlPlane::builder().with_real_kubelets().start().await;
    let control_plane = control_plane.context("failed to start the control plane")?;
    let scheduler = RealScheduler::start(&control_plane).await;
    let scheduler = scheduler.context("failed to start the scheduler")?;
    let node = RealNode::start(&control_plane, images).await;
    let node = node.context("failed to start the node")?;
    print_access(&control_plane)?;
    println!(
        "node {} boots, with its BMC at {}; its console and its monitor are in {}",
        real_node::NODE_NAME,
        node.machine().address(),
        node.machine().folder().display()
    );
    Ok((node, scheduler, control_plane))
}

fn print_access(control_plane: &ControlPlane) -> Result<()> {
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
    Ok(())
}

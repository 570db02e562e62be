//! `cargo xtask control-plane`: the tests' control plane, for a person.

use anyhow::{Context, Result};
use dogwatch_testbed::{Binaries, ControlPlane, Program, kubernetes_version};
use tokio::signal::unix::{SignalKind, signal};

#[derive(clap::Args)]
pub struct Arguments {
    /// Only sees to it that the programs are there
    #[arg(long)]
    build_only: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.build_only {
        return build();
    }
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("failed to start a runtime")?
        .block_on(serve())
}

fn build() -> Result<()> {
    let binaries =
        Binaries::find_or_build().context("failed to get the control plane's programs")?;
    for program in Program::ALL {
        println!("{}", binaries.path(program).display());
    }
    Ok(())
}

async fn serve() -> Result<()> {
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
        kubernetes_version(),
        control_plane.url()
    );
    println!("export KUBECONFIG={}", control_plane.kubeconfig().display());
    println!("kubectl: {}", control_plane.kubectl().display());
    println!("no kubelet, no scheduler; all of it goes with ctrl-c");
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

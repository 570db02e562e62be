//! The test bed's own program, which builds and runs what tests need. It is called, not linked: so xtask compiles in seconds.

use std::{os::unix::process::CommandExt, path::Path, process::Command};

use anyhow::{Context, Result};

use crate::source_tree;

#[derive(clap::Args)]
pub struct ControlPlaneArguments {
    /// Only build the programs, and print where they are
    #[arg(long)]
    build_only: bool,
}

/// Runs the control plane in place of this process, so that ctrl-c and SIGTERM reach it.
pub fn run_control_plane(arguments: &ControlPlaneArguments) -> Result<()> {
    let mut command = testbed_command(None);
    command.arg("control-plane");
    if arguments.build_only {
        command.arg("--build-only");
    }
    Err(command.exec()).context("failed to start the test bed")
}

/// Prepares these parts; `program` is the test bed's program where it was built already.
pub fn prepare_parts(parts: &[&str], program: Option<&Path>) -> Result<()> {
    if parts.is_empty() {
        return Ok(());
    }
    source_tree::run_command(testbed_command(program).arg("prepare").args(parts))
}

fn testbed_command(program: Option<&Path>) -> Command {
    if let Some(program) = program {
        return Command::new(program);
    }
    let mut command = source_tree::test_cargo_command();
    command.args(["run", "--quiet", "--package", "dogwatch-testbed", "--"]);
    command
}

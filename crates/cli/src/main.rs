//! `dogwatch`: the command line for people.
//!
//! **For:** showing what Dogwatch does on a cluster and why, requesting reboots and power
//! operations, and trying it all without a cluster.
//! **May touch:** the terminal; the API server through [`dogwatch_k8s`], as the kubeconfig's user;
//! BMCs through [`dogwatch_bmc`], to read them (`check hosts`).
//! **Promises:** output for programs (`-o json|yaml`, the exit code) is documented and changes only
//! with an entry in the changelog; an error says in one sentence what is wrong, and what to do
//! next.

mod args;
mod cluster;
mod command;
mod complete;
mod exit;
mod fleet_feed;
mod follow;
mod node_reboots;
mod output;
mod paint;
mod person;
mod resource;
mod table;

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(done) = complete::complete_as_plugin(&words) {
        return done;
    }
    match run(args::Args::parse_or_exit(&words)) {
        Ok(()) => exit::CliExitCode::Success.into(),
        Err(failure) => failure.print_and_exit_code(),
    }
}

fn run(args: args::Args) -> Result<(), exit::CommandFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| exit::CommandFailure::from_runtime_error(&error))?;
    let done = runtime.block_on(command::run(args));
    // A connection attempt under way must not delay the exit.
    runtime.shutdown_background();
    done
}

//! `dogwatch`: what a person types.
//!
//! **For:** to see what Dogwatch does on a cluster and why, to ask for reboots, and to try it all
//! without a cluster.
//! **May touch:** the terminal; the API server through [`dogwatch_k8s`], as the kubeconfig's user; BMCs
//! through [`dogwatch_bmc`], to read them (`check hosts`).
//! **Promises:** what is printed for programs (`-o json|yaml`, the exit code) is documented and
//! changes only with an entry in the changelog; an error says in one sentence what is wrong, and
//! what to do next.

mod args;
mod cluster;
mod command;
mod complete;
mod exit;
mod output;
mod paint;
mod person;
mod table;
mod wait;

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(done) = complete::as_plugin(&words) {
        return done;
    }
    match run(args::Args::of(&words)) {
        Ok(()) => exit::Exit::Success.into(),
        Err(failure) => failure.report(),
    }
}

fn run(args: args::Args) -> Result<(), exit::Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| exit::Failure::runtime(&error))?;
    let done = runtime.block_on(command::run(args));
    // A connection that is still being made must not hold the process.
    runtime.shutdown_background();
    done
}

//! The subcommands, one file each.

mod abort;
mod check;
mod completions;
mod confirm_off;
mod controller;
mod crds;
mod demo;
mod explain;
mod hosts;
mod manifests;
mod migrate;
mod nodes;
mod pause;
mod power;
mod reboot;
mod remediate;
mod remedies;
mod rollout_restart;
mod schedules;
mod simulate;
mod status;
mod unlock;

use clap::Subcommand;
pub use hosts::names as host_names;
pub use remedies::{Kind as RemedyKind, completions as remedy_names};

use crate::args::Args;
use crate::exit::Failure;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Shows every node, lock, host and remediation: who holds, who waits, and for what
    Status(status::StatusArgs),
    /// Explains why a node, host, machine, remediation or schedule is in its present state, and what you can do
    Explain(explain::ExplainArgs),
    /// Requests a reboot of nodes, each in its turn
    Reboot(reboot::RebootArgs),
    /// Restarts whatever controls pods, and waits until the new pods are ready
    RolloutRestart(rollout_restart::RolloutRestartArgs),
    /// Switches a host on or off, reboots it, or holds it off, through its BareMetalHost
    #[command(subcommand)]
    Power(power::Power),
    /// Has the host of a failed node powered off, its Node deleted, and it powered on again; asks first
    Remediate(remediate::RemediateArgs),
    /// Confirms by hand that a host is off when its BMC does not answer, so that its workloads can start elsewhere
    ConfirmOff(confirm_off::ConfirmOffArgs),
    /// Stops a reboot: undoes it, frees its lock, and waits until that is done
    Abort(abort::AbortArgs),
    /// Pauses policies: nothing begins, and a drain under way is undone
    Pause(pause::PauseArgs),
    /// Ends pauses
    Resume(pause::resume::ResumeArgs),
    /// Shows who holds a lock and whether that holder still exists; frees a lock whose holder does not
    Unlock(unlock::UnlockArgs),
    /// Shows what would block a reboot of a node now, before you request it
    Check(check::CheckArgs),
    /// Shows a cluster that reboots itself node by node, here and now, without a cluster
    Demo(demo::DemoArgs),
    /// Simulates a rollout of many nodes in seconds: how long it takes, who waits longest, what it costs
    Simulate(simulate::SimulateArgs),
    /// Prints Dogwatch's CustomResourceDefinitions
    Crds(crds::CrdsArgs),
    /// Runs the controller: healer, policy status, lock API, host power, remediation, schedules
    Controller(Box<controller::ControllerArgs>),
    /// Prints the manifests that install or update Dogwatch (CRDs, coordinator, controller, rights); keeps what
    /// is installed
    Manifests(manifests::ManifestsArgs),
    /// Translates another program's settings into a RebootPolicy
    #[command(subcommand)]
    Migrate(migrate::Migrate),
    /// Prints the completions of a shell
    Completions(completions::CompletionsArgs),
}

/// Does it.
pub async fn run(args: Args) -> Result<(), Failure> {
    let cluster = args.cluster;
    match args.command {
        Command::Status(args) => status::run(&cluster, &args).await,
        Command::Explain(args) => explain::run(&cluster, &args).await,
        Command::Reboot(args) => reboot::run(&cluster, &args).await,
        Command::RolloutRestart(args) => rollout_restart::run(&cluster, &args).await,
        Command::Migrate(args) => migrate::run(&cluster, &args).await,
        Command::Abort(args) => abort::run(&cluster, &args).await,
        Command::Pause(args) => pause::run(&cluster, &args).await,
        Command::Resume(args) => pause::resume::run(&cluster, &args).await,
        Command::Unlock(args) => unlock::run(&cluster, &args).await,
        Command::Check(args) => check::run(&cluster, &args).await,
        Command::Power(power) => power::run(&cluster, &power).await,
        Command::Remediate(args) => remediate::run(&cluster, &args).await,
        Command::ConfirmOff(args) => confirm_off::run(&cluster, &args).await,
        Command::Demo(args) => demo::run(&args).await,
        Command::Simulate(args) => simulate::run(&args),
        Command::Crds(args) => crds::run(&args),
        Command::Controller(args) => controller::run(&cluster, *args).await,
        Command::Manifests(args) => manifests::run(&cluster, &args).await,
        Command::Completions(args) => completions::run(&args),
    }
}

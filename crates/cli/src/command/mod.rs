//! The subcommands, one file each. Several of them share `hosts`, `nodes`, `recount` and
//! `remediations`.

mod abort;
mod audit;
mod check;
mod completions;
mod confirm_off;
mod controller;
mod crds;
mod dashboard;
mod demo;
mod explain;
mod hold;
mod hosts;
mod man;
mod manifests;
mod migrate;
mod nodes;
mod pause;
mod policy;
mod power;
mod reboot;
mod recount;
mod remediate;
mod remediations;
mod rollout_restart;
mod simulate;
pub mod status;
mod top;
mod unlock;
mod verify_trace;

use clap::Subcommand;

use crate::args::Args;
use crate::exit::CommandFailure;

#[derive(Debug, Subcommand)]
pub enum DogwatchCommand {
    /// Show every node, lock, host and remediation: who holds, who waits, and for what
    Status(status::StatusArgs),
    /// Show the fleet on this terminal as it changes: who is out, who waits, a timeline; keys explain,
    /// pause, abort and reboot
    Top(top::TopArgs),
    /// Explain why a node, host, machine, remediation or schedule is in its present state, and what
    /// you can do
    Explain(explain::ExplainArgs),
    /// Request a reboot of nodes, one after the other
    Reboot(reboot::RebootArgs),
    /// Hold a node for work by hand: drain it and keep it out of service until it is released
    Hold(hold::HoldArgs),
    /// Release a node that is held: bring it back into service
    Release(hold::release::ReleaseArgs),
    /// Restart the pods of a workload, and wait until the new pods are ready
    RolloutRestart(rollout_restart::RolloutRestartArgs),
    /// Switch a host on or off, reboot it, or hold it off, through its BareMetalHost
    #[command(subcommand)]
    Power(power::PowerSubcommand),
    /// Power off the host of a failed node, delete its Node, and power it on again; asks first
    Remediate(remediate::RemediateArgs),
    /// Confirm by hand that a host is off when its BMC does not answer, so that its workloads can
    /// start elsewhere
    ConfirmOff(confirm_off::ConfirmOffArgs),
    /// Abort a reboot: undo it, release its lock, and wait until that is done
    Abort(abort::AbortArgs),
    /// Pause policies: no reboot begins, and a drain under way is undone
    Pause(pause::PauseArgs),
    /// Resume paused policies
    Resume(pause::resume::ResumeArgs),
    /// Show who holds a lock and whether that holder still exists; free the lock if the holder does
    /// not
    Unlock(unlock::UnlockArgs),
    /// Check what would block a reboot of a node now, before you request it
    Check(check::CheckArgs),
    /// Show the fleet in a browser: who is out, who waits and why, when it will be finished; and act
    Dashboard(dashboard::DashboardArgs),
    /// Show a simulated cluster that reboots itself node by node; needs no cluster
    Demo(demo::DemoArgs),
    /// Simulate a rollout of many nodes in seconds: how long it takes, who waits longest, what it
    /// costs
    Simulate(simulate::SimulateArgs),
    /// Check RebootPolicies in files before they are applied
    #[command(subcommand)]
    Policy(policy::PolicySubcommand),
    /// Recount the promises S1, S3, S4 and S5 from an API server's audit log alone
    Audit(audit::AuditArgs),
    /// Recount the promises S1, S3, S4 and S5 from the decision logs of the coordinators
    VerifyTrace(verify_trace::VerifyTraceArgs),
    /// Print Dogwatch's CustomResourceDefinitions
    Crds(crds::CrdsArgs),
    /// Run the controller: healer, policy status, lock API, host power, remediation, schedules
    Controller(Box<controller::ControllerArgs>),
    /// Print the manifests that install or update Dogwatch (CRDs, coordinator, controller, rights);
    /// keeps the installed settings
    Manifests(manifests::ManifestsArgs),
    /// Translate another program's settings into a RebootPolicy
    #[command(subcommand)]
    Migrate(migrate::MigrateCommand),
    /// Print the completion script of a shell
    Completions(completions::CompletionsArgs),
    /// Write the man pages of both programs; for packages
    #[command(hide = true)]
    Man(man::ManArgs),
}

pub async fn run(args: Args) -> Result<(), CommandFailure> {
    let cluster = args.cluster;
    match args.command {
        DogwatchCommand::Status(args) => status::run(&cluster, &args).await,
        DogwatchCommand::Top(args) => top::run(&cluster, &args).await,
        DogwatchCommand::Explain(args) => explain::run(&cluster, &args).await,
        DogwatchCommand::Reboot(args) => reboot::run(&cluster, &args).await,
        DogwatchCommand::Hold(args) => hold::run(&cluster, &args).await,
        DogwatchCommand::Release(args) => hold::release::run(&cluster, &args).await,
        DogwatchCommand::RolloutRestart(args) => rollout_restart::run(&cluster, &args).await,
        DogwatchCommand::Migrate(args) => migrate::run(&cluster, &args).await,
        DogwatchCommand::Abort(args) => abort::run(&cluster, &args).await,
        DogwatchCommand::Pause(args) => pause::run(&cluster, &args).await,
        DogwatchCommand::Resume(args) => pause::resume::run(&cluster, &args).await,
        DogwatchCommand::Unlock(args) => unlock::run(&cluster, &args).await,
        DogwatchCommand::Check(args) => check::run(&cluster, &args).await,
        DogwatchCommand::Power(power) => power::run(&cluster, &power).await,
        DogwatchCommand::Remediate(args) => remediate::run(&cluster, &args).await,
        DogwatchCommand::ConfirmOff(args) => confirm_off::run(&cluster, &args).await,
        DogwatchCommand::Dashboard(args) => dashboard::run(&cluster, &args).await,
        DogwatchCommand::Demo(args) => demo::run(&args).await,
        DogwatchCommand::Simulate(args) => simulate::run(&args),
        DogwatchCommand::Policy(command) => policy::run(&cluster, &command).await,
        DogwatchCommand::Audit(args) => audit::run(&args),
        DogwatchCommand::VerifyTrace(args) => verify_trace::run(&args),
        DogwatchCommand::Crds(args) => crds::run(&args),
        DogwatchCommand::Controller(args) => controller::run(&cluster, *args).await,
        DogwatchCommand::Manifests(args) => manifests::run(&cluster, &args).await,
        DogwatchCommand::Completions(args) => completions::run(&args),
        DogwatchCommand::Man(args) => man::run(&args),
    }
}

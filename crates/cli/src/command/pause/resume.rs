//! Implements `dogwatch resume`.

use std::io::Write as _;

use dogwatch_k8s::fleet::PauseChange;

use super::{
    decide, effect, keep_first_failure, list_policy_objects, print_line, read_fleet,
    select_policies,
};
use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::{CliExitCode, CommandFailure};
use crate::output;
use crate::resource::parse_policy;

#[derive(Debug, clap::Args)]
pub struct ResumeArgs {
    /// Policies to resume
    #[arg(value_name = "POLICY", value_parser = parse_policy, required_unless_present = "all")]
    policies: Vec<String>,

    /// All policies that are paused or halted
    #[arg(long, conflicts_with = "policies")]
    all: bool,
}

/// The first failure gives the exit code.
pub async fn run(cluster: &ClusterArgs, args: &ResumeArgs) -> Result<(), CommandFailure> {
    let connected = ConnectedCluster::connect_to(cluster).await?;
    let objects = list_policy_objects(&connected).await?;
    let mut trouble = None;
    let mut ended = 0_usize;
    for name in select_policies(&objects, &args.policies)? {
        let done = resume_policy(&connected, &name, args.all).await;
        ended += usize::from(matches!(done, Ok(true)));
        keep_first_failure(&mut trouble, done.map(|_| ()));
    }
    if ended > 0 {
        let fleet = read_fleet(&connected).await?;
        let mut out = output::buffered_stdout();
        effect::write_resume_effect(&mut out, &fleet, current_time())?;
        out.flush()?;
    } else if args.all && trouble.is_none() {
        print_line("no RebootPolicy is paused or halted")?;
    }
    trouble.map_or(Ok(()), Err)
}

async fn resume_policy(
    connected: &ConnectedCluster,
    name: &str,
    quiet: bool,
) -> Result<bool, CommandFailure> {
    let changed = connected
        .fleet
        .change_pause(name, decide::decide_resume)
        .await
        .map_err(|error| connected.api_failure(&format!("resume RebootPolicy {name}"), &error))?;
    match changed {
        Some(PauseChange::Clear) => {
            print_line(&format!("rebootpolicy/{name} is resumed")).map(|()| true)
        }
        Some(PauseChange::EndHalt(since)) => print_line(&format!(
            "rebootpolicy/{name} is resumed; the controller ends the halt of {since}"
        ))
        .map(|()| true),
        Some(PauseChange::Delete) => print_line(&format!(
            "rebootpolicy/{name} existed only for the pause and was deleted"
        ))
        .map(|()| true),
        Some(PauseChange::Keep | PauseChange::Set(_)) if quiet => Ok(false),
        Some(PauseChange::Keep | PauseChange::Set(_)) => print_line(&format!(
            "rebootpolicy/{name} was neither paused nor halted"
        ))
        .map(|()| false),
        None => Err(CommandFailure::new(
            CliExitCode::NotFound,
            format!("RebootPolicy {name} has been deleted"),
        )),
    }
}

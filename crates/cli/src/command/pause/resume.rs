//! `dogwatch resume`.

use std::io::Write as _;

use dogwatch_k8s::fleet::PauseChange;

use super::{chosen, decide, effect, fleet, keep_first, objects, policy_name, say};
use crate::args::Cluster;
use crate::cluster::{Connected, now};
use crate::exit::{Exit, Failure};
use crate::output;

/// What to resume.
#[derive(Debug, clap::Args)]
pub struct ResumeArgs {
    /// The policies
    #[arg(value_name = "POLICY", value_parser = policy_name, required_unless_present = "all")]
    policies: Vec<String>,

    /// All policies that are paused
    #[arg(long, conflicts_with = "policies")]
    all: bool,
}

/// Ends pauses; the first trouble gives the exit code.
pub async fn run(cluster: &Cluster, args: &ResumeArgs) -> Result<(), Failure> {
    let connected = Connected::to(cluster).await?;
    let objects = objects(&connected).await?;
    let mut trouble = None;
    let mut ended = 0_usize;
    for name in chosen(&objects, &args.policies)? {
        let done = resume_one(&connected, &name, args.all).await;
        ended += usize::from(matches!(done, Ok(true)));
        keep_first(&mut trouble, done.map(|_| ()));
    }
    if ended > 0 {
        let fleet = fleet(&connected).await?;
        let mut out = output::stdout();
        effect::of_resume(&mut out, &fleet, now())?;
        out.flush()?;
    } else if args.all && trouble.is_none() {
        say("no RebootPolicy is paused")?;
    }
    trouble.map_or(Ok(()), Err)
}

async fn resume_one(connected: &Connected, name: &str, quiet: bool) -> Result<bool, Failure> {
    let changed = connected
        .fleet
        .change_pause(name, decide::resume)
        .await
        .map_err(|error| connected.failed(&format!("resume RebootPolicy {name}"), &error))?;
    match changed {
        Some(PauseChange::Clear) => say(&format!("rebootpolicy/{name} is resumed")).map(|()| true),
        Some(PauseChange::Delete) => say(&format!(
            "rebootpolicy/{name} was only there for the pause, and is gone"
        ))
        .map(|()| true),
        Some(PauseChange::Keep | PauseChange::Set(_)) if quiet => Ok(false),
        Some(PauseChange::Keep | PauseChange::Set(_)) => {
            say(&format!("rebootpolicy/{name} was not paused")).map(|()| false)
        }
        None => Err(Failure::new(
            Exit::NotFound,
            format!("RebootPolicy {name} was deleted meanwhile"),
        )),
    }
}

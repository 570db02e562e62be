//! `dogwatch remediate`: the mark that has a machine powered off, its Node deleted, and it powered on again.

mod follow;
mod plan;
mod target;

use std::time::Duration;

use dogwatch_core::explain::RemedyView;
use dogwatch_k8s::{Error, Kind};

use super::hosts::{self, say};
use super::remedies;
use crate::args::Cluster;
use crate::cluster::{Connected, now};
use crate::exit::{Exit, Failure};
use crate::person;
use crate::table::printable;
use plan::Plan;
use target::{Named, Target};

/// Which machine.
#[derive(Debug, clap::Args)]
pub struct RemediateArgs {
    /// The node (NAME or node/NAME), or its Machine: machine/NAMESPACE/NAME, or machine/NAME with -n NAMESPACE
    #[arg(value_name = "NODE|machine/NAMESPACE/NAME", value_parser = target::named)]
    named: Named,

    /// Does not ask, even if the node is healthy
    #[arg(long, short)]
    yes: bool,

    /// Waits until the node is Ready with a new boot, and tells each step
    #[arg(long)]
    wait: bool,

    /// Gives up waiting after this time; the remediation goes on
    #[arg(long, value_name = "DURATION", requires = "wait", value_parser = dogwatch_core::duration::parse)]
    timeout: Option<Duration>,
}

/// Says what will happen, asks, marks, and follows where that was asked for.
pub async fn run(cluster: &Cluster, args: &RemediateArgs) -> Result<(), Failure> {
    let connected = hosts::connect(cluster).await?;
    let view = remedies::look(&connected).await?;
    let target = args.named.find(cluster, &connected, &view)?;
    let plan = Plan::of(&view, &target, now())?;
    if plan.is_under_way {
        say(&format!("{target} is being remediated already"))?;
    } else {
        ask(&plan, args.yes)?;
        mark(&connected, &view, &target).await?;
        say(&format!(
            "{target} is marked: it is powered off, its Node is deleted, and it is powered on again"
        ))?;
    }
    if args.wait {
        return follow::to_the_end(&connected, &target, args.timeout).await;
    }
    Ok(())
}

fn ask(plan: &Plan, yes: bool) -> Result<(), Failure> {
    for line in &plan.lines {
        eprintln!("dogwatch: {}", printable(line));
    }
    person::confirm(&printable(&plan.question), yes)
}

async fn mark(connected: &Connected, view: &RemedyView, target: &Target) -> Result<(), Failure> {
    let fleet = &connected.fleet;
    let marked = match target {
        Target::Node(name) => {
            let node = view.world.nodes.get(name);
            let node = node.expect("it was found there");
            fleet.mark_node_for_remediation(node).await
        }
        Target::Machine(name) => {
            let machine = view.world.machines.get(name);
            let machine = machine.expect("it was found there");
            fleet.mark_machine_for_remediation(machine).await
        }
    };
    match marked {
        Ok(_) => Ok(()),
        Err(error) => Err(failed(connected, target, &error)),
    }
}

fn failed(connected: &Connected, target: &Target, error: &Error) -> Failure {
    match error.kind() {
        Kind::Conflict | Kind::NotFound => {
            let text =
                format!("{target} was deleted, or made anew, a moment ago: nothing was done");
            Failure::new(Exit::Failed, text).next(format!("dogwatch explain {target}"))
        }
        Kind::AlreadyExists
        | Kind::Gone
        | Kind::Forbidden
        | Kind::Throttled { .. }
        | Kind::Refused
        | Kind::Transient => connected.failed(&format!("mark {target}"), error),
    }
}

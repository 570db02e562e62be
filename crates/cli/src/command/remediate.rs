//! Implements `dogwatch remediate`: sets the mark that has a machine powered off, its Node deleted,
//! and the machine powered on again.

mod follow;
mod preview;
mod target;

use std::time::Duration;

use dogwatch_core::explain::RemediationReportInput;
use dogwatch_k8s::{ApiErrorKind, Error};

use super::remediations;
use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::{CliExitCode, CommandFailure};
use crate::output::print_line;
use crate::person;
use crate::resource::ResourceArg;
use dogwatch_core::printable::printable_text;
use preview::RemediatePreview;
use target::MarkTarget;

#[derive(Debug, clap::Args)]
pub struct RemediateArgs {
    /// Node (NAME or node/NAME), or its Machine: machine/NAMESPACE/NAME, or machine/NAME with -n
    /// NAMESPACE
    #[arg(value_name = "NODE|machine/NAMESPACE/NAME", value_parser = target::parse_target)]
    named: ResourceArg,

    /// Do not ask for confirmation, even if the node is healthy
    #[arg(long, short)]
    yes: bool,

    /// Wait until the node is Ready with a new boot, and print each step
    #[arg(long)]
    wait: bool,

    /// Stop waiting after this time; the remediation goes on
    #[arg(long, value_name = "DURATION", requires = "wait", value_parser = dogwatch_core::duration::parse_duration)]
    timeout: Option<Duration>,
}

/// Prints the preview, asks for confirmation, sets the mark, and follows with `--wait`.
pub async fn run(cluster: &ClusterArgs, args: &RemediateArgs) -> Result<(), CommandFailure> {
    let connected = ConnectedCluster::connect_for_objects(cluster).await?;
    let view = remediations::read_remediations(&connected).await?;
    let target = target::find_target(cluster, &connected, &args.named, &view).await?;
    let plan = RemediatePreview::of_target(&view, &target, current_time())?;
    if plan.is_under_way {
        print_line(&format!("{target} is being remediated already"))?;
    } else {
        confirm_remediation(&plan, args.yes)?;
        mark_target(&connected, &view, &target).await?;
        print_line(&format!(
            "{target} is marked: Dogwatch powers its host off, deletes its Node, and powers the host on again"
        ))?;
    }
    if args.wait {
        return follow::follow_until_ready(&connected, &target, args.timeout).await;
    }
    Ok(())
}

fn confirm_remediation(plan: &RemediatePreview, yes: bool) -> Result<(), CommandFailure> {
    for line in &plan.lines {
        eprintln!("dogwatch: {}", printable_text(line));
    }
    person::ask_confirmation(&printable_text(&plan.question), yes)
}

async fn mark_target(
    connected: &ConnectedCluster,
    view: &RemediationReportInput,
    target: &MarkTarget,
) -> Result<(), CommandFailure> {
    let fleet = &connected.fleet;
    let marked = match target {
        MarkTarget::Node(name) => {
            let node = view.snapshot.nodes.get(name);
            let node = node.expect("it was found there");
            fleet.mark_node_for_remediation(node).await
        }
        MarkTarget::Machine(name) => {
            let machine = view.snapshot.machines.get(name);
            let machine = machine.expect("it was found there");
            fleet.mark_machine_for_remediation(machine).await
        }
    };
    match marked {
        Ok(_) => Ok(()),
        Err(error) => Err(mark_failure(connected, target, &error)),
    }
}

fn mark_failure(
    connected: &ConnectedCluster,
    target: &MarkTarget,
    error: &Error,
) -> CommandFailure {
    match error.kind() {
        ApiErrorKind::Conflict | ApiErrorKind::NotFound => {
            let text = format!("{target} has just been deleted or created again: nothing was done");
            CommandFailure::new(CliExitCode::Failed, text)
                .with_next_step(format!("dogwatch explain {target}"))
        }
        ApiErrorKind::AlreadyExists
        | ApiErrorKind::Gone
        | ApiErrorKind::Forbidden
        | ApiErrorKind::Throttled { .. }
        | ApiErrorKind::Refused
        | ApiErrorKind::Transient => connected.api_failure(&format!("mark {target}"), error),
    }
}

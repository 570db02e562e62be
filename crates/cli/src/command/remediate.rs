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

/// A conflict at every try is not expected: a kubelet's status write may come in between once or
/// twice.
const MAX_TRIES: u32 = 5;

/// Prints the preview, asks for confirmation, sets the mark, and follows with `--wait`.
pub async fn run(cluster: &ClusterArgs, args: &RemediateArgs) -> Result<(), CommandFailure> {
    let connected = ConnectedCluster::connect_for_objects(cluster).await?;
    let read = || CheckedTarget::read_target(cluster, &connected, &args.named);
    let mut checked = read().await?;
    if !checked.preview.is_under_way {
        confirm_remediation(&checked.preview, args.yes)?;
        checked = mark_unchanged(&connected, checked.preview, args.yes, read).await?;
    }
    let (target, subject) = (&checked.target, &checked.preview.subject);
    let has_begun = checked.preview.is_under_way;
    print_line(&if has_begun {
        let by = if *subject == target.to_string() {
            String::new()
        } else {
            format!(", by {subject}")
        };
        format!("{target} is being remediated already{by}")
    } else {
        format!(
            "{target} is marked: Dogwatch powers its host off, deletes its Node, and powers the host on again"
        )
    })?;
    if args.wait {
        let subject = checked.preview.subject;
        return follow::follow_until_ready(&connected, subject, has_begun, args.timeout).await;
    }
    Ok(())
}

/// What a mark would do, and the objects that this was found from.
struct CheckedTarget {
    view: RemediationReportInput,
    target: MarkTarget,
    preview: RemediatePreview,
}

impl CheckedTarget {
    async fn read_target(
        cluster: &ClusterArgs,
        connected: &ConnectedCluster,
        named: &ResourceArg,
    ) -> Result<Self, CommandFailure> {
        let view = remediations::read_remediations(connected).await?;
        let target = target::find_target(cluster, connected, named, &view).await?;
        let preview = RemediatePreview::of_target(&view, &target, current_time())?;
        Ok(Self {
            view,
            target,
            preview,
        })
    }
}

fn confirm_remediation(plan: &RemediatePreview, yes: bool) -> Result<(), CommandFailure> {
    for line in &plan.lines {
        eprintln!("dogwatch: {}", printable_text(line));
    }
    person::ask_confirmation(&printable_text(&plan.question), yes)
}

/// Reads everything again, because the person may have thought for long, and sets the mark if it
/// does what was agreed to. Returns what was marked, or a remediation that has begun meanwhile.
async fn mark_unchanged<Reading>(
    connected: &ConnectedCluster,
    agreed: RemediatePreview,
    yes: bool,
    read: impl Fn() -> Reading,
) -> Result<CheckedTarget, CommandFailure>
where
    Reading: Future<Output = Result<CheckedTarget, CommandFailure>>,
{
    let mut tries = 0;
    loop {
        tries += 1;
        let checked = read().await?;
        if checked.preview.is_under_way {
            return Ok(checked);
        }
        agreed.refuse_change(&checked.preview, yes)?;
        match mark_target(connected, &checked).await {
            Ok(()) => return Ok(checked),
            Err(error) if error.kind() == ApiErrorKind::Conflict && tries < MAX_TRIES => {}
            Err(error) => return Err(mark_failure(connected, &checked.target, &error)),
        }
    }
}

async fn mark_target(connected: &ConnectedCluster, checked: &CheckedTarget) -> Result<(), Error> {
    let (fleet, objects) = (&connected.fleet, &checked.view.snapshot);
    match &checked.target {
        MarkTarget::Node(name) => fleet.mark_node_for_remediation(&objects.nodes[name]).await,
        MarkTarget::Machine(name) => {
            let machine = &objects.machines[name];
            fleet.mark_machine_for_remediation(machine).await
        }
    }
}

fn mark_failure(
    connected: &ConnectedCluster,
    target: &MarkTarget,
    error: &Error,
) -> CommandFailure {
    let text = match error.kind() {
        ApiErrorKind::NotFound => format!("{target} has just been deleted: nothing was done"),
        ApiErrorKind::Conflict => {
            format!("{target} was changed during each of {MAX_TRIES} tries: nothing was done")
        }
        ApiErrorKind::AlreadyExists
        | ApiErrorKind::Gone
        | ApiErrorKind::Forbidden
        | ApiErrorKind::Throttled { .. }
        | ApiErrorKind::Refused
        | ApiErrorKind::Transient => {
            return connected.api_failure(&format!("mark {target}"), error);
        }
    };
    CommandFailure::new(CliExitCode::Failed, text)
        .with_next_step(format!("dogwatch explain {target}"))
}

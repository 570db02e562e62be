//! Implements `dogwatch abort`.

use std::time::Duration;

use dogwatch_core::duration;
use dogwatch_core::explain;
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::{
    AbortRequest, ObservedNode, ParsedAnnotation, RebootOutcome, RebootPhase,
};
use dogwatch_k8s::fleet::AbortOutcome;
use tokio::time::Instant;

use crate::args::ClusterArgs;
use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};
use crate::output::print_raw_line;
use crate::person;
use crate::resource::parse_node;
use crate::table::to_printable;

#[derive(Debug, clap::Args)]
pub struct AbortArgs {
    /// Node to abort (NAME or node/NAME)
    #[arg(value_name = "NODE", value_parser = parse_node)]
    node: NodeName,

    /// Reason, shown wherever the reboot is shown
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,

    /// Name of the requester; defaults to the local user name
    #[arg(long, value_name = "NAME")]
    requester: Option<String>,

    /// Do not wait until the abort is done
    #[arg(long)]
    no_wait: bool,

    /// How long to wait until the abort is done
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration::parse_duration)]
    timeout: Duration,

    /// Do not ask for confirmation, even if the machine may already be going down
    #[arg(long, short)]
    yes: bool,
}

pub async fn run(cluster: &ClusterArgs, args: &AbortArgs) -> Result<(), CommandFailure> {
    let connected = ConnectedCluster::connect_to(cluster).await?;
    let node = &args.node;
    let mut asked = request_node_abort(&connected, args, args.yes).await?;
    if let AbortOutcome::Rebooting(_) = asked {
        person::ask_confirmation(
            &format!(
                "{node} is rebooting: the command may have been started, and a shutdown that was ordered still comes. \
                 Stop waiting for it, uncordon the node and free its lock?"
            ),
            args.yes,
        )?;
        asked = request_node_abort(&connected, args, true).await?;
    }
    let before = match asked {
        AbortOutcome::Written(before) => before,
        AbortOutcome::Already(before) => {
            print_raw_line(&format!("node/{node} is asked to stop already"))?;
            before
        }
        AbortOutcome::TakenBack(request) => {
            return print_raw_line(&format!(
                "node/{node}: the request by {} is taken back; nothing had begun",
                to_printable(&request.requester)
            ));
        }
        AbortOutcome::Rebooting(_) => {
            let text = format!("node {node} is not asked to stop");
            return Err(CommandFailure::new(CliExitCode::Failed, text).with_next_step("say --yes"));
        }
        AbortOutcome::Unreadable(why) => return Err(unreadable_record_failure(node, &why)),
        AbortOutcome::NothingUnderWay(seen) => return Err(nothing_to_abort_failure(&seen)),
        AbortOutcome::NoSuchNode => return Err(connected.no_such_node(node).await),
    };
    if args.no_wait {
        return print_raw_line(&format!("node/{node} is asked to stop its reboot"));
    }
    wait_for_abort(&connected, node, &before, args.timeout).await
}

async fn request_node_abort(
    connected: &ConnectedCluster,
    args: &AbortArgs,
    although_rebooting: bool,
) -> Result<AbortOutcome, CommandFailure> {
    let abort = AbortRequest {
        reason: args.reason.clone(),
        requester: args.requester.clone().unwrap_or_else(person::user_name),
    };
    connected
        .fleet
        .request_abort(&args.node, &abort, although_rebooting)
        .await
        .map_err(|error| {
            connected.api_failure(&format!("stop the reboot of node {}", args.node), &error)
        })
}

/// An abort must not undo work that an unreadable record describes.
fn unreadable_record_failure(node: &NodeName, why: &str) -> CommandFailure {
    let text = format!(
        "annotation dogwatch.dev/reboot on node {node} cannot be read, so nobody can undo it: {}",
        to_printable(why)
    );
    CommandFailure::new(CliExitCode::Failed, text).with_next_step(format!(
        "mend it; or remove it (kubectl annotate node {node} dogwatch.dev/reboot-), then look at the cordon and \
         at the lock: dogwatch unlock {node}"
    ))
}

fn nothing_to_abort_failure(seen: &ObservedNode) -> CommandFailure {
    let name = &seen.name;
    let failure = CommandFailure::new(
        CliExitCode::Failed,
        format!("no reboot of {name} is under way"),
    );
    if seen.api_lock {
        return failure.with_next_step(format!(
            "the lock API has taken it out of service: whoever locked it unlocks it, or dogwatch unlock {name}"
        ));
    }
    if matches!(seen.request, ParsedAnnotation::Bad { .. }) {
        return failure.with_next_step(format!(
            "its request cannot be read; remove it: kubectl annotate node {name} dogwatch.dev/reboot-requested-"
        ));
    }
    failure.with_next_step(format!("dogwatch explain {name}"))
}

/// Waits until the coordinator has aborted the reboot; if the coordinator is dead, the healer does
/// it.
async fn wait_for_abort(
    connected: &ConnectedCluster,
    node: &NodeName,
    before: &ObservedNode,
    timeout: Duration,
) -> Result<(), CommandFailure> {
    let mut watch = connected.fleet.watch_node(node);
    let deadline = Instant::now() + timeout;
    let mut told = String::new();
    loop {
        tokio::select! {
            next = watch.next_state() => match next {
                Ok(None) => {
                    let text = format!("Node {node} was deleted meanwhile");
                    return Err(CommandFailure::new(CliExitCode::NotFound, text));
                }
                Ok(Some(seen)) if is_abort_served(before, &seen) => return report_aborted(before, &seen),
                Ok(Some(seen)) => report_progress(&seen, &mut told)?,
                Err(error) if error.kind() == dogwatch_k8s::ApiErrorKind::Forbidden => {
                    return Err(connected.api_failure(&format!("watch node {node}"), &error));
                }
                Err(error) => eprintln!("dogwatch: {}; trying again", error.error_chain()),
            },
            () = tokio::time::sleep_until(deadline) => {
                let text = format!("node {node} was not freed within {}", duration::format_duration(timeout));
                return Err(CommandFailure::new(CliExitCode::Failed, text).with_next_step(format!(
                    "the wish to stop stays on the Node: its coordinator serves it at once, the healer of \
                     `dogwatch controller` after half a minute; is either running? dogwatch explain {node}"
                )));
            }
            _ = tokio::signal::ctrl_c() => {
                let text = format!("not waiting any more; the wish to stop stays on node {node}");
                return Err(CommandFailure::new(CliExitCode::Interrupted, text));
            }
        }
    }
}

/// Whether the reboot that was under way is gone. A list from before our write still shows it.
fn is_abort_served(before: &ObservedNode, seen: &ObservedNode) -> bool {
    let planned = |node: &ObservedNode| node.record.get().map(|record| record.planned);
    let gone = seen.record == ParsedAnnotation::Absent
        || (planned(before).is_some() && planned(seen) != planned(before));
    gone && seen.abort == ParsedAnnotation::Absent
}

fn report_progress(seen: &ObservedNode, told: &mut String) -> Result<(), CommandFailure> {
    let phase = seen.record.get().map_or("", |record| record.phase.as_str());
    let said = explain::leading_condition(seen).map(|condition| format!(": {}", condition.reason));
    let text = format!("node/{} {phase}{}", seen.name, said.unwrap_or_default());
    if *told != text {
        print_raw_line(&text)?;
        *told = text;
    }
    Ok(())
}

fn report_aborted(before: &ObservedNode, after: &ObservedNode) -> Result<(), CommandFailure> {
    let name = &after.name;
    let rebooted =
        after.last_reboot.get().map(|last| last.outcome) == Some(RebootOutcome::Rebooted);
    if rebooted && before.record.get().map(|record| record.phase) == Some(RebootPhase::Returning) {
        print_raw_line(&format!(
            "node/{name} had rebooted already; its return was cut short"
        ))?;
    } else {
        print_raw_line(&format!("node/{name} is stopped"))?;
    }
    for line in describe_undone_work(before, after) {
        print_raw_line(&format!("  {line}"))?;
    }
    Ok(())
}

fn describe_undone_work(before: &ObservedNode, after: &ObservedNode) -> Vec<String> {
    let Some(record) = before.record.get() else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    match (record.cordoned_by_us, after.unschedulable) {
        (true, false) => {
            lines.push("uncordoned; pods that were evicted stay where they went".into());
        }
        (true, true) => lines.push("still cordoned: somebody else wants it so".into()),
        (false, true) => lines.push("cordoned by somebody else, and left so".into()),
        (false, false) => {}
    }
    if let Some(lease) = &record.lease {
        lines.push(format!("Lease {lease} was given back"));
    }
    lines.push(match record.trigger.source.as_str() {
        "request" => format!(
            "the request was removed; to ask again: dogwatch reboot {}",
            after.name
        ),
        source => format!(
            "{} counts as served; touch it anew for another reboot",
            to_printable(source)
        ),
    });
    lines
}

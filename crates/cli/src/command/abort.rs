//! Implements `dogwatch abort`.

mod follow;

use std::time::Duration;

use dogwatch_core::duration;
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::{NodeRebootPlan, ObservedNodeReboot};
use dogwatch_core::reboot::{AbortRequest, NodeRebootRef, ObservedNode, ParsedAnnotation};
use dogwatch_k8s::fleet::AbortOutcome;

use super::reboot::end_with_failures;
use crate::args::ClusterArgs;
use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};
use crate::node_reboots;
use crate::output::{self, print_line};
use crate::person;
use crate::resource::parse_node;
use dogwatch_core::printable::printable_text;

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
                "{node} is rebooting. The reboot command may have started already, and an abort cannot stop it. Stop waiting for the reboot, uncordon the node and release its lock?"
            ),
            args.yes,
        )?;
        asked = request_node_abort(&connected, args, true).await?;
    }
    let before = match asked {
        AbortOutcome::Written(before) => before,
        AbortOutcome::Already(before) => {
            print_line(&format!("node/{node}: an abort was requested already"))?;
            before
        }
        AbortOutcome::TakenBack(request) => {
            print_line(&format!(
                "node/{node}: the request by {} was removed before the reboot began",
                printable_text(&request.requester)
            ))?;
            cancel_asking_reboots(&connected, node, &request.node_reboots).await?;
            warn_of_other_requests(&connected, node, &request.node_reboots).await;
            return Ok(());
        }
        AbortOutcome::Rebooting(_) => {
            let text = format!("the reboot of node {node} was not aborted");
            return Err(CommandFailure::new(CliExitCode::Failed, text)
                .with_next_step("to abort it without this question, add --yes"));
        }
        AbortOutcome::Unreadable(why) => return Err(unreadable_record_failure(node, &why)),
        AbortOutcome::NothingUnderWay(seen) => {
            let requested = list_requested_reboots(&connected, &seen).await;
            return Err(nothing_to_abort_failure(&seen, &requested));
        }
        AbortOutcome::NoSuchNode => return Err(connected.no_such_node(node).await),
    };
    warn_of_other_requests(&connected, node, &[]).await;
    if args.no_wait {
        return print_line(&format!("node/{node}: the abort was requested"));
    }
    follow::wait_for_abort(&connected, node, &before, args.timeout).await
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
            connected.api_failure(&format!("abort the reboot of node {}", args.node), &error)
        })
}

/// The controller may have died before it wrote that the Node is asked. Then the next leader would
/// take the request for one that was never written, and ask again.
async fn cancel_asking_reboots(
    connected: &ConnectedCluster,
    node: &NodeName,
    asked: &[NodeRebootRef],
) -> Result<(), CommandFailure> {
    if asked.is_empty() {
        return Ok(());
    }
    let mut open = node_reboots::list_open_reboots(connected, node)
        .await?
        .unwrap_or_default();
    open.retain(|reboot| asked.iter().any(|one| one.uid == reboot.uid));
    let mut failures = Vec::new();
    for reboot in &open {
        let name = &reboot.name;
        match connected.fleet.cancel_node_reboot(reboot).await {
            Ok(()) => print_line(&format!("node/{node}: nodereboot/{name} was cancelled"))?,
            Err(error) => {
                let what = format!("cancel NodeReboot {name}");
                failures.push(connected.api_failure(&what, &error));
            }
        }
    }
    end_with_failures(failures)
}

/// Other NodeReboots that ask for this node go on.
async fn warn_of_other_requests(
    connected: &ConnectedCluster,
    node: &NodeName,
    cancelled: &[NodeRebootRef],
) {
    let Ok(Some(seen)) = connected.fleet.read_node(node).await else {
        return;
    };
    let mut others = list_requested_reboots(connected, &seen).await;
    others.retain(|reboot| cancelled.iter().all(|one| one.uid != reboot.uid));
    if let Some((names, step)) = describe_requested_reboots(node, &others) {
        output::print_warning(&format!(
            "dogwatch: node {node} is still requested by {names}\n  → to withdraw that: {step}"
        ));
    }
}

/// The NodeReboots that ask for this node, and that nothing on the Node shows. An abort leaves them:
/// `reboot --cancel` and `release` end them. Those that cannot be read are left out with a warning.
async fn list_requested_reboots(
    connected: &ConnectedCluster,
    seen: &ObservedNode,
) -> Vec<ObservedNodeReboot> {
    let listed = connected.fleet.list_node_reboots().await;
    let open = listed.map(|found| found.open_of_node(&seen.name));
    let open = open.unwrap_or_else(|error| {
        let why = error.error_chain();
        output::print_warning(&format!(
            "dogwatch: whether a NodeReboot asks for node {} could not be read: {why}",
            seen.name
        ));
        None
    });
    let mut open = open.unwrap_or_default();
    open.retain(|reboot| {
        let is_cancelled = reboot.plan.as_ref().is_ok_and(|plan| plan.cancel);
        !is_cancelled && reboot.has_not_reached(seen)
    });
    open
}

/// An abort must not undo work that an unreadable record describes.
fn unreadable_record_failure(node: &NodeName, why: &str) -> CommandFailure {
    let text = format!(
        "the reboot of node {node} cannot be aborted, because its annotation dogwatch.dev/reboot is invalid: {}",
        printable_text(why)
    );
    CommandFailure::new(CliExitCode::Failed, text).with_next_step(format!(
        "correct the annotation; or remove it (kubectl annotate node {node} dogwatch.dev/reboot-), then check whether the node is cordoned and holds a lock: dogwatch unlock {node}"
    ))
}

fn nothing_to_abort_failure(
    seen: &ObservedNode,
    requested: &[ObservedNodeReboot],
) -> CommandFailure {
    let name = &seen.name;
    if let Some((names, step)) = describe_requested_reboots(name, requested) {
        let text = format!("no reboot of {name} is under way, but one is requested by {names}");
        return CommandFailure::new(CliExitCode::Failed, text)
            .with_next_step(format!("to withdraw the request: {step}"));
    }
    let failure = CommandFailure::new(
        CliExitCode::Failed,
        format!("no reboot of {name} is under way"),
    );
    if seen.api_lock {
        return failure.with_next_step(format!(
            "the lock API has taken the node out of service: its client has to unlock it, or run dogwatch unlock {name}"
        ));
    }
    if matches!(seen.request, ParsedAnnotation::Bad { .. }) {
        return failure.with_next_step(format!(
            "the node's reboot request is invalid; remove it: kubectl annotate node {name} dogwatch.dev/reboot-requested-"
        ));
    }
    failure.with_next_step(format!("dogwatch explain {name}"))
}

/// The names of the NodeReboots, and the commands that withdraw them. `None` if there are none.
fn describe_requested_reboots(
    node: &NodeName,
    requested: &[ObservedNodeReboot],
) -> Option<(String, String)> {
    if requested.is_empty() {
        return None;
    }
    let is_hold =
        |reboot: &ObservedNodeReboot| reboot.plan.as_ref().is_ok_and(NodeRebootPlan::is_hold);
    let names = requested
        .iter()
        .map(|reboot| format!("nodereboot/{}", reboot.name));
    let names: Vec<String> = names.collect();
    let mut steps = Vec::new();
    if !requested.iter().all(is_hold) {
        steps.push(format!("dogwatch reboot {node} --cancel"));
    }
    if requested.iter().any(is_hold) {
        steps.push(format!("dogwatch release {node}"));
    }
    Some((printable_text(&names.join(", ")), steps.join("; ")))
}

//! Implements `dogwatch hold`.

pub mod follow;
pub mod release;

use std::time::Duration;

use dogwatch_api::node_reboot::{NodeRebootPhase, NodeRebootSpec, RebootMethod};
use dogwatch_core::duration;
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::{NodeRebootPlan, ObservedNodeReboot};
use dogwatch_core::reboot::RebootRequest;
use dogwatch_k8s::fleet::RebootRequestOutcome;

use crate::args::ClusterArgs;
use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};
use crate::node_reboots;
use crate::output::print_line;
use crate::person;
use crate::resource::parse_node;
use dogwatch_core::printable::printable_text;
use follow::{FollowGoal, HoldFollower};

#[derive(Debug, clap::Args)]
pub struct HoldArgs {
    /// Node to hold (NAME or node/NAME)
    #[arg(value_name = "NODE", value_parser = parse_node)]
    node: NodeName,

    /// Reason, shown wherever the hold is shown
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,

    /// Name of the requester; defaults to the local user name
    #[arg(long, value_name = "NAME")]
    requester: Option<String>,

    /// Wait until the node is drained and held
    #[arg(long)]
    wait: bool,

    /// How long to wait; without a limit unless given
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_duration, requires = "wait")]
    timeout: Option<Duration>,
}

/// Asks by a NodeReboot, or by annotation where that kind is not installed.
pub async fn run(cluster: &ClusterArgs, args: &HoldArgs) -> Result<(), CommandFailure> {
    let connected = ConnectedCluster::connect_to(cluster).await?;
    let node = &args.node;
    let request = RebootRequest {
        reason: args.reason.clone(),
        requester: args.requester.clone().unwrap_or_else(person::user_name),
        method: RebootMethod::Hold,
        ..RebootRequest::default()
    };
    let mut follower = None;
    if args.wait {
        let started = HoldFollower::start_watching(&connected, node, FollowGoal::Held).await?;
        follower = Some(started);
    }
    if let Some(holds) = list_node_holds(&connected, node).await? {
        hold_by_object(&connected, node, &request, &holds).await?;
    } else {
        hold_by_annotation(&connected, node, &request).await?;
        connected.warn_if_unanswered(node, false).await;
    }
    match follower {
        Some(follower) => follower.follow_until_done(&connected, args.timeout).await,
        None => Ok(()),
    }
}

/// `None`: the kind NodeReboot is not installed.
async fn list_node_holds(
    connected: &ConnectedCluster,
    node: &NodeName,
) -> Result<Option<Vec<ObservedNodeReboot>>, CommandFailure> {
    let open = node_reboots::list_open_reboots(connected, node).await?;
    Ok(open.map(|mut open| {
        open.retain(|one| one.plan.as_ref().is_ok_and(NodeRebootPlan::is_hold));
        open
    }))
}

async fn hold_by_object(
    connected: &ConnectedCluster,
    node: &NodeName,
    request: &RebootRequest,
    holds: &[ObservedNodeReboot],
) -> Result<(), CommandFailure> {
    // One that is being ended would not hold the node for whoever asks now.
    let is_kept = |hold: &&ObservedNodeReboot| {
        let is_cancelled = hold.plan.as_ref().is_ok_and(|plan| plan.cancel);
        !is_cancelled && hold.status.phase != NodeRebootPhase::Returning
    };
    if let Some(hold) = holds.iter().find(is_kept) {
        return print_line(&format!(
            "node/{node} was already requested to be held: {}",
            describe_hold(hold)
        ));
    }
    let spec = NodeRebootSpec {
        method: Some(RebootMethod::Hold),
        reason: node_reboots::optional_text(&request.reason),
        requester: node_reboots::optional_text(&request.requester),
        ..NodeRebootSpec::default()
    };
    let name = node_reboots::create_node_reboot(connected, "hold", node, spec).await?;
    print_line(&format!(
        "node/{node} was requested to be held: nodereboot/{name}"
    ))?;
    node_reboots::warn_if_without_status(connected, &name).await;
    Ok(())
}

/// The object, and who asked for it.
fn describe_hold(hold: &ObservedNodeReboot) -> String {
    let plan = hold.plan.as_ref().ok();
    let requester = plan.and_then(|plan| plan.requester.as_deref());
    let requester = printable_text(requester.unwrap_or("an unnamed requester"));
    format!("nodereboot/{} by {requester}", hold.name)
}

async fn hold_by_annotation(
    connected: &ConnectedCluster,
    node: &NodeName,
    request: &RebootRequest,
) -> Result<(), CommandFailure> {
    let asked = connected.fleet.request_reboot(node, request, false).await;
    let asked = asked.map_err(|error| {
        connected.api_failure(&format!("request a hold of node {node}"), &error)
    })?;
    match asked {
        RebootRequestOutcome::Written => {
            print_line(&format!("node/{node} was requested to be held"))
        }
        RebootRequestOutcome::Same => print_line(&format!(
            "node/{node} was already requested to be held, with the same reason"
        )),
        RebootRequestOutcome::Other { text } => Err(CommandFailure::new(
            CliExitCode::Failed,
            format!(
                "node {node} already has another request: {}",
                printable_text(&text)
            ),
        )
        .with_next_step(format!(
            "wait until it is done, or remove it: dogwatch abort {node}"
        ))),
        RebootRequestOutcome::NoSuchNode => Err(connected.no_such_node(node).await),
    }
}

//! Implements `dogwatch hold`.

pub mod follow;
pub mod release;

use std::time::Duration;

use dogwatch_api::node_reboot::{NodeRebootPhase, NodeRebootSpec, RebootMethod};
use dogwatch_core::duration;
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::{
    NodeRebootPlan, ObservedNodeReboot, begun_record, is_past_joining,
};
use dogwatch_core::reboot::{ObservedNode, RebootRecord, RebootRequest};
use dogwatch_k8s::fleet::RebootRequestOutcome;
use jiff::Timestamp;

use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
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
    let mut node_reboot = None;
    if let Some(holds) = list_node_holds(&connected, node).await? {
        let name = hold_by_object(&connected, node, &request, &holds).await?;
        node_reboot = Some(name);
    } else {
        hold_by_annotation(&connected, node, &request).await?;
        connected.warn_if_unanswered(node, false).await;
    }
    let Some(mut follower) = follower else {
        return Ok(());
    };
    if let Some(name) = node_reboot {
        follower.follow_node_reboot(&connected, name);
    }
    follower.follow_until_done(&connected, args.timeout).await
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

/// Returns the name of the NodeReboot that asks.
async fn hold_by_object(
    connected: &ConnectedCluster,
    node: &NodeName,
    request: &RebootRequest,
    holds: &[ObservedNodeReboot],
) -> Result<String, CommandFailure> {
    let seen = connected.fleet.read_node(node).await;
    let seen = seen.map_err(|error| connected.api_failure(&format!("read node {node}"), &error))?;
    let Some(seen) = seen else {
        return Err(connected.no_such_node(node).await);
    };
    let now = current_time().wall;
    let same = |hold: &&ObservedNodeReboot| serves_same_hold(hold, request, &seen, now);
    if let Some(hold) = holds.iter().find(same) {
        print_line(&format!(
            "node/{node} was already requested to be held: {}",
            describe_hold(hold)
        ))?;
        return Ok(hold.name.clone());
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
    if let Some(record) = begun_record(&seen) {
        print_line(&describe_later_begin(record))?;
    }
    node_reboots::warn_if_without_status(connected, &name).await;
    Ok(name)
}

/// Whether this NodeReboot holds the node for this person, from now until it is released.
fn serves_same_hold(
    hold: &ObservedNodeReboot,
    request: &RebootRequest,
    node: &ObservedNode,
    now: Timestamp,
) -> bool {
    let Ok(plan) = &hold.plan else {
        return false;
    };
    plan.requester.as_deref().unwrap_or_default() == request.requester
        && plan.reason == request.reason
        && plan.not_before.is_none_or(|at| at <= now)
        && plan.deadline.is_none()
        && hold.is_for_node(&node.uid)
        && !plan.cancel
        && hold.status.phase != NodeRebootPhase::Returning
        && !is_past_joining(hold, node)
}

/// A hold does not join what has begun.
fn describe_later_begin(record: &RebootRecord) -> String {
    let (phase, trigger) = (record.phase.as_str(), &record.trigger);
    let requester = trigger.requester.as_deref().filter(|name| !name.is_empty());
    let requester = printable_text(requester.unwrap_or(&trigger.source));
    format!(
        "  the node is in phase {phase} for {requester}: when that has ended, it returns into service, and is then drained for this hold"
    )
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
        RebootRequestOutcome::Other { text } | RebootRequestOutcome::Held { text } => {
            Err(CommandFailure::new(
                CliExitCode::Failed,
                format!(
                    "node {node} already has another request: {}",
                    printable_text(&text)
                ),
            )
            .with_next_step(format!(
                "wait until it is done, or remove it: dogwatch abort {node}"
            )))
        }
        RebootRequestOutcome::NoSuchNode => Err(connected.no_such_node(node).await),
    }
}

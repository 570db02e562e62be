//! Implements `dogwatch hold`.

pub mod follow;
pub mod release;

use std::time::Duration;

use dogwatch_api::node_reboot::RebootMethod;
use dogwatch_core::duration;
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::RebootRequest;
use dogwatch_k8s::fleet::{NodeHold, RebootRequestOutcome};

use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::{CliExitCode, CommandFailure};
use crate::output::print_line;
use crate::person;
use crate::resource::parse_node;
use crate::table::to_printable;
use follow::{FollowGoal, HoldFollower};

/// The longest name of an object, without the time that is added to it.
const MAX_NAME_LENGTH: usize = 200;

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
    match list_node_holds(&connected, node).await? {
        Some(holds) => hold_by_object(&connected, node, &request, &holds).await?,
        None => hold_by_annotation(&connected, node, &request).await?,
    }
    connected.warn_if_unanswered(node, false).await;
    match follower {
        Some(follower) => follower.follow_until_done(&connected, args.timeout).await,
        None => Ok(()),
    }
}

/// `None`: the kind NodeReboot is not installed.
async fn list_node_holds(
    connected: &ConnectedCluster,
    node: &NodeName,
) -> Result<Option<Vec<NodeHold>>, CommandFailure> {
    let listed = connected.fleet.list_holds(node).await;
    listed.map_err(|error| connected.api_failure("list NodeReboots", &error))
}

async fn hold_by_object(
    connected: &ConnectedCluster,
    node: &NodeName,
    request: &RebootRequest,
    holds: &[NodeHold],
) -> Result<(), CommandFailure> {
    if let Some(hold) = holds.first() {
        return print_line(&format!(
            "node/{node} was already requested to be held: nodereboot/{} by {}",
            hold.name,
            to_printable(&hold.requester)
        ));
    }
    let what = format!("request a hold of node {node}");
    let fleet = &connected.fleet;
    let seen = fleet.read_node(node).await;
    let seen = seen.map_err(|error| connected.api_failure(&what, &error))?;
    let Some(seen) = seen else {
        return Err(connected.no_such_node(node).await);
    };
    let name = hold_name(node);
    let created = fleet.create_hold(&name, node, &seen.uid, request).await;
    created.map_err(|error| connected.api_failure(&what, &error))?;
    print_line(&format!(
        "node/{node} was requested to be held: nodereboot/{name}"
    ))
}

/// The time makes the name differ from that of a hold that has ended.
fn hold_name(node: &NodeName) -> String {
    let short: String = node.as_str().chars().take(MAX_NAME_LENGTH).collect();
    format!("hold-{short}-{}", current_time().wall.as_second())
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
                to_printable(&text)
            ),
        )
        .with_next_step(format!(
            "wait until it is done, or remove it: dogwatch abort {node}"
        ))),
        RebootRequestOutcome::NoSuchNode => Err(connected.no_such_node(node).await),
    }
}

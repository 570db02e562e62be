//! Implements `dogwatch release`.

use std::time::Duration;

use dogwatch_api::node_reboot::RebootMethod;
use dogwatch_core::duration;
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::{ObservedNodeReboot, is_written_by_person};
use dogwatch_core::reboot::RebootRequest;
use dogwatch_k8s::fleet::HoldWithdrawal;

use super::follow::{FollowGoal, HoldFollower};
use super::{describe_hold, list_node_holds};
use crate::args::ClusterArgs;
use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};
use crate::output::{self, print_line};
use crate::resource::parse_node;
use dogwatch_core::printable::printable_text;

#[derive(Debug, clap::Args)]
pub struct ReleaseArgs {
    /// Node to release (NAME or node/NAME)
    #[arg(value_name = "NODE", value_parser = parse_node)]
    node: NodeName,

    /// Release it although several requests hold it
    #[arg(long)]
    all: bool,

    /// Wait until the node is back in service
    #[arg(long)]
    wait: bool,

    /// How long to wait; without a limit unless given
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_duration, requires = "wait")]
    timeout: Option<Duration>,
}

/// Deletes the NodeReboots that hold the node, and removes the annotation of a person.
pub async fn run(cluster: &ClusterArgs, args: &ReleaseArgs) -> Result<(), CommandFailure> {
    let connected = ConnectedCluster::connect_to(cluster).await?;
    let node = &args.node;
    let mut follower = None;
    if args.wait {
        let started = HoldFollower::start_watching(&connected, node, FollowGoal::Released).await?;
        follower = Some(started);
    }
    let holds = list_node_holds(&connected, node).await?.unwrap_or_default();
    if holds.is_empty() {
        release_annotation(&connected, node, &holds).await?;
    } else {
        let by_annotation = read_annotation_hold(&connected, node).await;
        let is_one = holds.len() == 1 && by_annotation.is_none();
        if !is_one && !args.all {
            return Err(several_holds_failure(node, &holds, by_annotation.as_ref()));
        }
        release_objects(&connected, node, &holds).await?;
        if by_annotation.is_some() {
            release_annotation(&connected, node, &holds).await?;
        }
    }
    match follower {
        Some(follower) => follower.follow_until_done(&connected, args.timeout).await,
        None => Ok(()),
    }
}

/// The request for a hold that a person wrote onto the Node, if there is one. NodeReboots may have
/// joined it, and it stays without them. Whoever may not read Nodes can still end their own hold.
async fn read_annotation_hold(
    connected: &ConnectedCluster,
    node: &NodeName,
) -> Option<RebootRequest> {
    let seen = connected.fleet.read_node(node).await;
    let seen = seen.unwrap_or_else(|error| {
        let why = error.error_chain();
        output::print_warning(&format!(
            "dogwatch: whether an annotation holds node {node}, too, could not be read: {why}"
        ));
        None
    });
    let request = seen?.request.get().cloned()?;
    let is_hold = request.method == RebootMethod::Hold && is_written_by_person(&request);
    is_hold.then_some(request)
}

async fn release_objects(
    connected: &ConnectedCluster,
    node: &NodeName,
    holds: &[ObservedNodeReboot],
) -> Result<(), CommandFailure> {
    for hold in holds {
        let name = &hold.name;
        let deleted = connected.fleet.delete_node_reboot(hold).await;
        deleted
            .map_err(|error| connected.api_failure(&format!("delete NodeReboot {name}"), &error))?;
        print_line(&format!(
            "node/{node} is released: nodereboot/{name} was deleted"
        ))?;
    }
    Ok(())
}

/// Somebody else may still work on the machine.
fn several_holds_failure(
    node: &NodeName,
    holds: &[ObservedNodeReboot],
    by_annotation: Option<&RebootRequest>,
) -> CommandFailure {
    let by_annotation = by_annotation.map(|request| {
        let requester = Some(request.requester.as_str()).filter(|name| !name.is_empty());
        let requester = printable_text(requester.unwrap_or("an unnamed requester"));
        format!("annotation dogwatch.dev/reboot-requested by {requester}")
    });
    let each = holds.iter().map(describe_hold).chain(by_annotation);
    let each: Vec<String> = each.collect();
    let each = each.join(", ");
    let text = format!("node {node} is held by several requests: {each}");
    CommandFailure::new(CliExitCode::Failed, text).with_next_step(format!(
        "end one (kubectl delete nodereboot NAME), or all: dogwatch release {node} --all"
    ))
}

async fn release_annotation(
    connected: &ConnectedCluster,
    node: &NodeName,
    released: &[ObservedNodeReboot],
) -> Result<(), CommandFailure> {
    let released: Vec<String> = released.iter().map(|hold| hold.uid.clone()).collect();
    let withdrawn = connected.fleet.withdraw_hold(node, &released).await;
    let withdrawn = withdrawn
        .map_err(|error| connected.api_failure(&format!("release node {node}"), &error))?;
    let failure = |text: String| CommandFailure::new(CliExitCode::Failed, text);
    match withdrawn {
        HoldWithdrawal::Withdrawn => print_line(&format!("node/{node} is released")),
        // It went with the last NodeReboot.
        HoldWithdrawal::NotAsked if !released.is_empty() => Ok(()),
        HoldWithdrawal::NotAsked => Err(failure(format!("nobody holds node {node}"))
            .with_next_step(format!("dogwatch explain {node}"))),
        HoldWithdrawal::OfNodeReboots(names) => print_line(&format!(
            "node/{node} is being released by the controller: {}; if none of these NodeReboots is left, end the hold with \
             dogwatch abort {node}",
            printable_text(&names.join(", "))
        )),
        HoldWithdrawal::Unreadable(why) => Err(failure(format!(
            "the request on node {node} cannot be read: {}",
            printable_text(&why)
        ))
        .with_next_step(format!(
            "to remove it: kubectl annotate node {node} dogwatch.dev/reboot-requested-"
        ))),
        HoldWithdrawal::NoSuchNode => Err(connected.no_such_node(node).await),
    }
}

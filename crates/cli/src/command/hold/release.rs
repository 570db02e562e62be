//! Implements `dogwatch release`.

use std::time::Duration;

use dogwatch_core::duration;
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::ObservedNodeReboot;
use dogwatch_k8s::fleet::HoldWithdrawal;

use super::follow::{FollowGoal, HoldFollower};
use super::{describe_hold, list_node_holds};
use crate::args::ClusterArgs;
use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};
use crate::output::print_line;
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

/// Deletes the NodeReboots that hold the node; if there is none, removes the annotation of a person.
pub async fn run(cluster: &ClusterArgs, args: &ReleaseArgs) -> Result<(), CommandFailure> {
    let connected = ConnectedCluster::connect_to(cluster).await?;
    let node = &args.node;
    let mut follower = None;
    if args.wait {
        let started = HoldFollower::start_watching(&connected, node, FollowGoal::Released).await?;
        follower = Some(started);
    }
    let holds = list_node_holds(&connected, node).await?.unwrap_or_default();
    match holds.as_slice() {
        [] => release_annotation(&connected, node).await?,
        [_, _, ..] if !args.all => return Err(several_holds_failure(node, &holds)),
        [..] => release_objects(&connected, node, &holds).await?,
    }
    match follower {
        Some(follower) => follower.follow_until_done(&connected, args.timeout).await,
        None => Ok(()),
    }
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
fn several_holds_failure(node: &NodeName, holds: &[ObservedNodeReboot]) -> CommandFailure {
    let each: Vec<String> = holds.iter().map(describe_hold).collect();
    let each = each.join(", ");
    let text = format!("node {node} is held by several requests: {each}");
    CommandFailure::new(CliExitCode::Failed, text).with_next_step(format!(
        "end one (kubectl delete nodereboot NAME), or all: dogwatch release {node} --all"
    ))
}

async fn release_annotation(
    connected: &ConnectedCluster,
    node: &NodeName,
) -> Result<(), CommandFailure> {
    let withdrawn = connected.fleet.withdraw_hold(node).await;
    let withdrawn = withdrawn
        .map_err(|error| connected.api_failure(&format!("release node {node}"), &error))?;
    let failure = |text: String| CommandFailure::new(CliExitCode::Failed, text);
    match withdrawn {
        HoldWithdrawal::Withdrawn => print_line(&format!("node/{node} is released")),
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

//! Asks one node to reboot: by a NodeReboot, or by the annotation of a request.

use dogwatch_api::node_reboot::{NodeRebootPhase, NodeRebootSpec, RebootMethod};
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::{NodeRebootPlan, ObservedNodeReboot};
use dogwatch_core::reboot::RebootRequest;
use dogwatch_k8s::fleet::{NodeRebootsFound, RebootRequestOutcome};
use jiff::Timestamp;

use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};
use crate::node_reboots;
use crate::output::print_line;
use dogwatch_core::printable::printable_text;

/// What each node is asked for.
pub struct RebootDemand {
    pub method: RebootMethod,
    pub reason: String,
    pub requester: String,
    pub not_before: Option<Timestamp>,
    pub deadline: Option<Timestamp>,
}

/// How nodes are asked.
pub enum RequestChannel {
    /// All NodeReboots of the cluster, as they were before.
    Objects(NodeRebootsFound),
    Annotations {
        replace: bool,
    },
}

/// A node that carries a request, or has a NodeReboot, now.
pub struct AskedNode {
    pub node: NodeName,
    /// The NodeReboot that asks; `None`: an annotation does.
    pub node_reboot: Option<String>,
}

/// Prints what was done.
pub async fn ask_node(
    connected: &ConnectedCluster,
    node: &NodeName,
    demand: &RebootDemand,
    channel: &RequestChannel,
) -> Result<AskedNode, CommandFailure> {
    let node_reboot = match channel {
        RequestChannel::Objects(found) => {
            let open = found.open_of_node(node).unwrap_or_default();
            Some(ask_by_object(connected, node, demand, &open).await?)
        }
        RequestChannel::Annotations { replace } => {
            ask_by_annotation(connected, node, demand, *replace).await?;
            None
        }
    };
    Ok(AskedNode {
        node: node.clone(),
        node_reboot,
    })
}

async fn ask_by_object(
    connected: &ConnectedCluster,
    node: &NodeName,
    demand: &RebootDemand,
    open: &[ObservedNodeReboot],
) -> Result<String, CommandFailure> {
    // One whose command may have been started serves nothing that was installed since then.
    let is_to_come = |one: &&ObservedNodeReboot| one.status.phase <= NodeRebootPhase::Draining;
    let mut to_come = open.iter().filter(is_to_come);
    let same = to_come.find(|one| {
        let plan = one.plan.as_ref();
        plan.is_ok_and(|plan| is_same_demand(plan, demand))
    });
    if let Some(same) = same {
        print_line(&format!(
            "node/{node} was already requested to reboot, with the same reason: nodereboot/{}",
            same.name
        ))?;
        return Ok(same.name.clone());
    }
    let spec = NodeRebootSpec {
        method: Some(demand.method),
        reason: node_reboots::optional_text(&demand.reason),
        requester: node_reboots::optional_text(&demand.requester),
        not_before: demand.not_before,
        deadline: demand.deadline,
        ..NodeRebootSpec::default()
    };
    let name = node_reboots::create_node_reboot(connected, "reboot", node, spec).await?;
    print_line(&format!(
        "node/{node} was requested to reboot: nodereboot/{name}"
    ))?;
    Ok(name)
}

fn is_same_demand(plan: &NodeRebootPlan, demand: &RebootDemand) -> bool {
    let requester = plan.requester.as_deref().unwrap_or_default();
    plan.method == demand.method
        && plan.reason == demand.reason
        && requester == demand.requester
        && plan.not_before == demand.not_before
        && plan.deadline == demand.deadline
        && plan.success.is_none()
        && !plan.cancel
}

async fn ask_by_annotation(
    connected: &ConnectedCluster,
    node: &NodeName,
    demand: &RebootDemand,
    replace: bool,
) -> Result<(), CommandFailure> {
    let request = RebootRequest {
        reason: demand.reason.clone(),
        requester: demand.requester.clone(),
        not_before: demand.not_before,
        ..RebootRequest::default()
    };
    let asked = connected.fleet.request_reboot(node, &request, replace);
    let asked = asked.await.map_err(|error| {
        connected.api_failure(&format!("request a reboot of node {node}"), &error)
    })?;
    match asked {
        RebootRequestOutcome::Written => {
            print_line(&format!("node/{node} was requested to reboot"))
        }
        RebootRequestOutcome::Same => print_line(&format!(
            "node/{node} was already requested to reboot, with the same reason"
        )),
        RebootRequestOutcome::Other { text } => Err(CommandFailure::new(
            CliExitCode::Failed,
            format!(
                "node {node} already has another reboot request: {}",
                printable_text(&text)
            ),
        )
        .with_next_step(format!(
            "keep that request, or replace it: dogwatch reboot {node} --replace"
        ))),
        RebootRequestOutcome::NoSuchNode => Err(connected.no_such_node(node).await),
    }
}

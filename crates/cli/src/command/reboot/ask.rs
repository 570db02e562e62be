//! Asks one node to reboot: by a NodeReboot, or by the annotation of a request.

use dogwatch_api::node_reboot::{NodeRebootPhase, NodeRebootSpec, RebootMethod};
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::{ObservedNodeReboot, is_past_joining};
use dogwatch_core::reboot::{ObservedNode, RebootRequest};
use dogwatch_k8s::fleet::{NodeRebootFound, NodeRebootsFound, RebootRequestOutcome};
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
    if let Some(name) = find_same_reboot(connected, node, demand, open).await? {
        print_line(&format!(
            "node/{node} was already requested to reboot, with the same reason: nodereboot/{name}"
        ))?;
        return Ok(name);
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

/// The list may be minutes old, so what it shows is read once more.
async fn find_same_reboot(
    connected: &ConnectedCluster,
    node: &NodeName,
    demand: &RebootDemand,
    open: &[ObservedNodeReboot],
) -> Result<Option<String>, CommandFailure> {
    let fleet = &connected.fleet;
    for listed in open.iter().filter(|one| is_same_demand(one, demand)) {
        let name = &listed.name;
        let newest = fleet.find_node_reboot(name).await;
        let newest = newest
            .map_err(|error| connected.api_failure(&format!("read NodeReboot {name}"), &error))?;
        let NodeRebootFound::There(newest) = newest else {
            continue;
        };
        let seen = fleet.read_node(node).await;
        let seen =
            seen.map_err(|error| connected.api_failure(&format!("read node {node}"), &error))?;
        if seen.is_some_and(|seen| serves_same_demand(&newest, demand, &seen)) {
            return Ok(Some(newest.name));
        }
    }
    Ok(None)
}

/// One whose command may have been started serves nothing that was installed since then.
fn serves_same_demand(
    newest: &ObservedNodeReboot,
    demand: &RebootDemand,
    node: &ObservedNode,
) -> bool {
    is_same_demand(newest, demand)
        && newest.is_for_node(&node.uid)
        && !newest.is_final()
        && !newest.deleting
        && !is_past_joining(newest, node)
}

fn is_same_demand(reboot: &ObservedNodeReboot, demand: &RebootDemand) -> bool {
    let Ok(plan) = &reboot.plan else {
        return false;
    };
    let requester = plan.requester.as_deref().unwrap_or_default();
    reboot.status.phase <= NodeRebootPhase::Draining
        && plan.method == demand.method
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
        RebootRequestOutcome::Held { text } => Err(CommandFailure::new(
            CliExitCode::Failed,
            format!(
                "somebody holds node {node}, or has asked to: {}",
                printable_text(&text)
            ),
        )
        .with_next_step(format!(
            "wait until it is over, or end it, and then ask again: dogwatch release {node}"
        ))),
        RebootRequestOutcome::NoSuchNode => Err(connected.no_such_node(node).await),
    }
}

#[cfg(test)]
mod tests {
    use dogwatch_core::name::BootId;
    use dogwatch_k8s::node_reboot::convert_node_reboot;
    use serde_json::{Value, json};

    use super::*;

    fn observed(fields: &Value, status: &Value) -> ObservedNodeReboot {
        let mut spec = json!({ "nodeName": "n1", "reason": "kernel", "requester": "ann" });
        for (field, value) in fields.as_object().unwrap() {
            spec[field] = value.clone();
        }
        let object = json!({ "metadata": { "name": "a", "uid": "u" }, "spec": spec,
            "status": status });
        convert_node_reboot(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn only_what_serves_this_demand_and_this_node_is_reused() {
        let name = NodeName::new("n1").unwrap();
        let node = ObservedNode::ready_node(name, "uid-n1".into(), BootId::new("boot-1").unwrap());
        let demand = RebootDemand {
            method: RebootMethod::Reboot,
            reason: "kernel".into(),
            requester: "ann".into(),
            not_before: None,
            deadline: None,
        };
        for (fields, status, is_reused) in [
            (json!({}), json!({}), true),
            (json!({ "nodeUID": "uid-n1" }), json!({}), true),
            (json!({ "nodeUID": "uid-before" }), json!({}), false),
            (json!({}), json!({ "nodeUID": "uid-before" }), false),
            (json!({ "requester": "bob" }), json!({}), false),
            (json!({ "cancel": true }), json!({}), false),
            (json!({}), json!({ "phase": "Draining" }), true),
            (json!({}), json!({ "phase": "Rebooting" }), false),
        ] {
            let newest = observed(&fields, &status);
            assert_eq!(
                serves_same_demand(&newest, &demand, &node),
                is_reused,
                "{fields} {status}"
            );
        }
    }
}

//! Implements `dogwatch explain nodereboot/NAME`.

use dogwatch_core::explain::{
    self, NodeExplanation, NodeRebootExplanation, ObservedController, explain_node_reboot,
};
use dogwatch_core::node_reboot::ObservedNodeReboot;
use serde::Serialize;

use super::{ExplanationText, print_explanations, read_node_input, warn_left_out};
use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::CommandFailure;
use crate::node_reboots;
use crate::output::OutputFormat;

/// The request, and its node while the request is open.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeRebootReport {
    #[serde(flatten)]
    request: NodeRebootExplanation,
    #[serde(skip_serializing_if = "Option::is_none")]
    of_node: Option<NodeExplanation>,
}

/// The NodeReboot must be readable; anything else that cannot be read is left out with a warning.
pub async fn run(
    cluster: &ClusterArgs,
    name: &str,
    format: OutputFormat,
) -> Result<(), CommandFailure> {
    let connected = ConnectedCluster::connect_to(cluster).await?;
    let reboot = node_reboots::read_node_reboot(&connected, name).await?;
    let controller = connected.fleet.read_controller().await;
    let controller = controller
        .map_err(|error| warn_left_out("who leads the controllers", &error))
        .unwrap_or(ObservedController::Unknown);
    let report = NodeRebootReport {
        request: explain_node_reboot(&reboot, &controller, current_time()),
        of_node: explain_its_node(&connected, &reboot).await?,
    };
    let of_request = ExplanationText {
        summary: &report.request.summary,
        chain: &report.request.chain,
        advice: &report.request.advice,
    };
    let of_node = report.of_node.iter().map(|it| ExplanationText {
        summary: &it.summary,
        chain: &it.chain,
        advice: &it.advice,
    });
    let told: Vec<ExplanationText<'_>> = std::iter::once(of_request).chain(of_node).collect();
    print_explanations(&report, &told, format)
}

async fn explain_its_node(
    connected: &ConnectedCluster,
    reboot: &ObservedNodeReboot,
) -> Result<Option<NodeExplanation>, CommandFailure> {
    match &reboot.plan {
        Ok(plan) if !reboot.is_final() => {
            let view = read_node_input(connected, &plan.node).await?;
            Ok(explain::explain_node(&view, current_time()))
        }
        Ok(_) | Err(_) => Ok(None),
    }
}

//! Implements `dogwatch reboot --cancel`.

use dogwatch_api::node_reboot::NodeRebootPhase;
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::ObservedNodeReboot;

use super::end_with_failures;
use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};
use crate::node_reboots;
use crate::output::print_line;

/// Cancels the NodeReboots of these nodes, but no holds.
pub async fn cancel_reboots(
    connected: &ConnectedCluster,
    nodes: &[NodeName],
) -> Result<(), CommandFailure> {
    let mut failures = Vec::new();
    for node in nodes {
        let cancelled = cancel_reboots_of(connected, node).await;
        failures.extend(cancelled.err());
    }
    end_with_failures(failures)
}

async fn cancel_reboots_of(
    connected: &ConnectedCluster,
    node: &NodeName,
) -> Result<(), CommandFailure> {
    let open = node_reboots::list_open_reboots(connected, node).await?;
    let mut open = open.ok_or_else(node_reboots::kind_missing)?;
    open.retain(is_reboot);
    if open.is_empty() {
        let text = format!("no NodeReboot asks for a reboot of node {node}");
        return Err(
            CommandFailure::new(CliExitCode::Failed, text).with_next_step(format!(
                "to stop a reboot that was requested otherwise, or that has begun: dogwatch abort {node}"
            )),
        );
    }
    for reboot in &open {
        let name = &reboot.name;
        let cancelled = connected.fleet.cancel_node_reboot(reboot).await;
        cancelled
            .map_err(|error| connected.api_failure(&format!("cancel NodeReboot {name}"), &error))?;
        print_line(&describe_cancel(node, reboot))?;
    }
    Ok(())
}

fn is_reboot(reboot: &ObservedNodeReboot) -> bool {
    reboot.plan.as_ref().is_ok_and(|plan| !plan.is_hold())
}

fn describe_cancel(node: &NodeName, reboot: &ObservedNodeReboot) -> String {
    let has_begun = reboot.status.phase > NodeRebootPhase::Waiting;
    let begun = if has_begun {
        "; what has begun is finished first"
    } else {
        ""
    };
    format!(
        "node/{node}: nodereboot/{} was cancelled{begun}",
        reboot.name
    )
}

//! Implements `dogwatch explain host/NAMESPACE/NAME`.

use dogwatch_core::explain::{HostReportInput, ObservedController, explain_host};
use dogwatch_core::power::{HostName, HostOwner, HostSnapshot};
use dogwatch_k8s::fleet::HostsFound;

use super::{ExplanationText, print_explanation, warn_left_out};
use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
use crate::command::hosts;
use crate::exit::CommandFailure;
use crate::output::OutputFormat;
use crate::resource::ObjectArg;

pub async fn run(
    cluster: &ClusterArgs,
    named: &ObjectArg,
    format: OutputFormat,
) -> Result<(), CommandFailure> {
    let connected = ConnectedCluster::connect_for_objects(cluster).await?;
    let name = named.resolve_name(cluster, &connected, HostName::new);
    let host = hosts::read_host(&connected, &name).await?;
    let explanation = explain_host(&read_host_input(&connected, host).await, current_time());
    let told = ExplanationText {
        summary: &explanation.summary,
        chain: &explanation.chain,
        advice: &explanation.advice,
    };
    print_explanation(&explanation, &told, format)
}

/// The host must be readable; anything else that cannot be read is left out with a warning.
async fn read_host_input(connected: &ConnectedCluster, host: HostSnapshot) -> HostReportInput {
    let fleet = &connected.fleet;
    let carried = fleet.read_nodes_by_host().await;
    let carried = carried.map_err(|error| warn_left_out("the host's Node", &error));
    let controller = fleet.read_controller().await;
    let owner = fleet.read_host_owner(&host, current_time()).await;
    HostReportInput {
        node: carried.ok().and_then(|carried| carried.node_of_host(&host)),
        shared_with: hosts_sharing_bmc(connected, &host).await,
        owner: owner
            .map_err(|error| warn_left_out("whether a baremetal-operator leads", &error))
            .unwrap_or(HostOwner::NotYetKnown),
        controller: controller
            .map_err(|error| warn_left_out("who leads the controllers", &error))
            .unwrap_or(ObservedController::Unknown),
        host,
    }
}

/// Other hosts that name one of its devices. Without the right to list all hosts, only its own
/// namespace is searched.
async fn hosts_sharing_bmc(connected: &ConnectedCluster, host: &HostSnapshot) -> Vec<HostName> {
    let all = connected.fleet.list_hosts(None).await;
    let others = match all {
        Ok(others) => Ok(others),
        Err(_) => connected.fleet.list_hosts(Some(&host.name.namespace)).await,
    };
    match others {
        Ok(HostsFound::Hosts(others)) => hosts::find_shared_bmcs(&others)
            .remove(&host.name)
            .unwrap_or_default(),
        Ok(HostsFound::NoKind) => Vec::new(),
        Err(error) => {
            warn_left_out("whether another host has its BMC", &error);
            Vec::new()
        }
    }
}

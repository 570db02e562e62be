//! `dogwatch explain host/NAMESPACE/NAME`.

use dogwatch_core::explain::{ControllerSeen, HostView, explain_host};
use dogwatch_core::power::{Host, HostName, Owner};
use dogwatch_k8s::fleet::HostsFound;

use super::{Told, print, without};
use crate::args::Cluster;
use crate::cluster::{Connected, now};
use crate::command::hosts::{self, Named};
use crate::exit::Failure;
use crate::output::Format;

/// Reads, explains, prints.
pub async fn run(cluster: &Cluster, named: &Named, format: Format) -> Result<(), Failure> {
    let connected = hosts::connect(cluster).await?;
    let name = named.in_cluster(cluster, &connected);
    let host = hosts::one(&connected, &name).await?;
    let explanation = explain_host(&look(&connected, host).await, now());
    let told = Told {
        summary: &explanation.summary,
        chain: &explanation.chain,
        advice: &explanation.advice,
    };
    print(&explanation, &told, format)
}

/// The host must be readable; what else is missing is said and left out.
async fn look(connected: &Connected, host: Host) -> HostView {
    let fleet = &connected.fleet;
    let carried = fleet.carried().await;
    let carried = carried.map_err(|error| without("the host's Node", &error));
    let controller = fleet.controller().await;
    let owner = fleet.owner(&host, now()).await;
    HostView {
        node: carried.ok().and_then(|carried| carried.node_of(&host)),
        shared_with: shared_with(connected, &host).await,
        owner: owner
            .map_err(|error| without("whether a baremetal-operator leads", &error))
            .unwrap_or(Owner::NotYetKnown),
        controller: controller
            .map_err(|error| without("who leads the controllers", &error))
            .unwrap_or(ControllerSeen::Unknown),
        host,
    }
}

/// Who else names one of its devices; of the namespace alone where nobody may see more.
async fn shared_with(connected: &Connected, host: &Host) -> Vec<HostName> {
    let all = connected.fleet.hosts(None).await;
    let others = match all {
        Ok(others) => Ok(others),
        Err(_) => connected.fleet.hosts(Some(&host.name.namespace)).await,
    };
    match others {
        Ok(HostsFound::Hosts(others)) => hosts::sharing(&others)
            .remove(&host.name)
            .unwrap_or_default(),
        Ok(HostsFound::NoKind) => Vec::new(),
        Err(error) => {
            without("whether another host has its BMC", &error);
            Vec::new()
        }
    }
}

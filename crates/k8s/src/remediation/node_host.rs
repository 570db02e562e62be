//! Reads what links Nodes to hosts, once, for whoever switches the host of a Node.

use std::sync::Arc;

use dogwatch_core::name::NodeName;
use dogwatch_core::remediation::RemediationSnapshot;
use kube::api::ListParams;
use kube::{Api, Client};

use super::RemediationWatchView;
use super::list::read_machine_links;
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::host::{HostObject, convert_host};
use crate::node::{get_node, observed_node};
use crate::paged::list_paged;

/// All hosts and Machines, and this Node. The inner error says why there are no hosts.
pub(crate) async fn read_host_links(
    client: &Client,
    node: &NodeName,
) -> Result<Result<RemediationSnapshot, String>, Error> {
    let hosts: Api<HostObject> = Api::all(client.clone());
    let hosts = match with_timeout(list_paged(&hosts, ListParams::default(), convert_host)).await {
        Ok(hosts) => hosts.items,
        Err(error) if error.kind() == ApiErrorKind::NotFound => {
            return Ok(Err("there are no BareMetalHosts in this cluster".into()));
        }
        Err(error)
            if matches!(
                error.kind(),
                ApiErrorKind::Forbidden | ApiErrorKind::Refused
            ) =>
        {
            let why = format!("BareMetalHosts cannot be listed: {}", error.error_chain());
            return Ok(Err(why));
        }
        Err(error) => return Err(error),
    };
    let (machines, there) = futures::try_join!(
        Box::pin(read_permitted_links(client)),
        get_node(client, node.as_str())
    )?;
    // The API server accepts no name that we would reject.
    let there = there.and_then(|there| observed_node(&there).ok());
    let hosts = hosts.into_iter().map(|it| (it.name.clone(), Arc::new(it)));
    let nodes = there.into_iter().map(|it| (it.name.clone(), Arc::new(it)));
    Ok(Ok(RemediationSnapshot {
        machines: machines.machines,
        infra: machines.infra,
        hosts: hosts.collect(),
        nodes: nodes.collect(),
        synced: true,
        ..RemediationSnapshot::default()
    }))
}

/// If Machines may not be listed (rights of an older version), only hosts name their Nodes, as in
/// that version.
async fn read_permitted_links(client: &Client) -> Result<RemediationWatchView, Error> {
    match Box::pin(read_machine_links(client)).await {
        Err(error) if error.kind() == ApiErrorKind::Forbidden => {
            Ok(RemediationWatchView::default())
        }
        found => found,
    }
}

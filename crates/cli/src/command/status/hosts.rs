//! Reads the hosts of a status.

use std::collections::BTreeMap;

use dogwatch_core::explain::{HostRow, host_rows};
use dogwatch_core::power::HostSnapshot;
use dogwatch_k8s::fleet::{HostsFound, NodesByHost};

use super::{StatusPart, StatusScope};
use crate::cluster::ConnectedCluster;
use crate::exit::CommandFailure;
use crate::resource::{ObjectKind, kind_missing};

/// The rows of the hosts in scope. In a status of all parts, hosts that cannot be read are left
/// out.
pub async fn read_host_rows(
    connected: &ConnectedCluster,
    scope: &StatusScope,
    unreadable: &mut Vec<String>,
) -> Result<Vec<HostRow>, CommandFailure> {
    if !scope.includes_part(StatusPart::Hosts) {
        return Ok(Vec::new());
    }
    let is_all_that_is_wanted = scope.part == Some(StatusPart::Hosts);
    let hosts = match connected.fleet.list_hosts(scope.namespace.as_deref()).await {
        Ok(HostsFound::Hosts(hosts)) => hosts,
        Ok(HostsFound::NoKind) if is_all_that_is_wanted => {
            return Err(kind_missing(ObjectKind::Host));
        }
        Ok(HostsFound::NoKind) => return Ok(Vec::new()),
        Err(error) if is_all_that_is_wanted => {
            return Err(connected.api_failure("list BareMetalHosts", &error));
        }
        Err(error) => {
            let missing = format!("the hosts cannot be shown: {}", error.error_chain());
            unreadable.push(missing);
            return Ok(Vec::new());
        }
    };
    if hosts.is_empty() {
        if is_all_that_is_wanted {
            eprintln!("dogwatch: {}", no_hosts_text(scope.namespace.as_deref()));
        }
        return Ok(Vec::new());
    }
    Ok(build_host_rows(
        &hosts,
        &read_nodes_of_hosts(connected).await,
    ))
}

fn no_hosts_text(namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("there are no BareMetalHosts in namespace {namespace}"),
        None => "there are no BareMetalHosts in this cluster".into(),
    }
}

/// Maps Nodes to hosts; without the right to list Nodes, only the hosts' own fields are used.
pub async fn read_nodes_of_hosts(connected: &ConnectedCluster) -> NodesByHost {
    connected
        .fleet
        .read_nodes_by_host()
        .await
        .unwrap_or_else(|error| {
            eprintln!(
                "dogwatch: the hosts' Nodes cannot be shown: {}",
                error.error_chain()
            );
            NodesByHost::default()
        })
}

pub fn build_host_rows<'a>(
    hosts: impl IntoIterator<Item = &'a HostSnapshot>,
    carried: &NodesByHost,
) -> Vec<HostRow> {
    let hosts: BTreeMap<_, &HostSnapshot> =
        hosts.into_iter().map(|host| (&host.name, host)).collect();
    let node = |name: &_| carried.node_of_host(hosts.get(name)?);
    host_rows(hosts.values().copied(), node)
}

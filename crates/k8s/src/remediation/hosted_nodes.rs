//! Finds the Nodes that a host carries. Read on demand, when a BMC reports "off" for a host that
//! nobody wanted off; not watched.

use std::collections::BTreeSet;
use std::sync::Arc;

use dogwatch_core::name::NodeName;
use dogwatch_core::power::HostSnapshot;
use dogwatch_core::remediation::{
    InfraMachine, MachineApi, ObservedMachine, node_annotated_on, nodes_of_host,
};
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client};

use super::kind::{METAL3_MACHINE, OptionalKind};
use super::machine::{parse_infra_machine, parse_machine};
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::paged::list_paged;

/// The Nodes, and the links that we may not read.
#[derive(Debug, Default)]
pub(crate) struct HostedNodes {
    pub(crate) nodes: Vec<NodeName>,
    pub(crate) unread: Option<String>,
}

/// By every link: the host's annotation, else the Machines in its namespace and in its consumer's.
/// With workload clusters, Machines of Cluster API name no Nodes of this cluster.
pub(crate) async fn read_hosted_nodes(
    client: &Client,
    host: &Arc<HostSnapshot>,
    has_workload_clusters: bool,
) -> Result<HostedNodes, Error> {
    if let Some(node) = node_annotated_on(host) {
        return Ok(HostedNodes {
            nodes: vec![node],
            unread: None,
        });
    }
    let mut links = MachineLinks::default();
    let apis = [MachineApi::OpenShift, MachineApi::ClusterApi];
    let is_here = |api: &MachineApi| *api == MachineApi::OpenShift || !has_workload_clusters;
    for api in apis.into_iter().filter(is_here) {
        let keep = move |object: &_| parse_machine(object, api);
        let found = links
            .read_objects(client, host, OptionalKind::of_machine_api(api), keep)
            .await?;
        links.machines.extend(found);
    }
    if links.machines.iter().any(|it| it.infra.is_some()) {
        let found = links.read_objects(client, host, METAL3_MACHINE, parse_infra_machine);
        let found = found.await?;
        links.infra.extend(found);
    }
    Ok(HostedNodes {
        nodes: nodes_of_host(host, links.machines, links.infra),
        unread: links.unread,
    })
}

#[derive(Default)]
struct MachineLinks {
    machines: Vec<ObservedMachine>,
    infra: Vec<InfraMachine>,
    unread: Option<String>,
}

impl MachineLinks {
    /// The objects of a kind in the host's namespace and in its consumer's. A kind that is not
    /// installed has none; for a kind that we may not list, the error is recorded.
    async fn read_objects<T: Clone>(
        &mut self,
        client: &Client,
        host: &HostSnapshot,
        kind: OptionalKind,
        keep: impl Fn(&DynamicObject) -> T + Copy,
    ) -> Result<Vec<T>, Error> {
        let Some(resource) = kind.find_served_version(client).await? else {
            return Ok(Vec::new());
        };
        let mut all = Vec::new();
        for namespace in link_namespaces(host) {
            let api: Api<DynamicObject> =
                Api::namespaced_with(client.clone(), namespace, &resource);
            match with_timeout(list_paged(&api, ListParams::default(), keep)).await {
                Ok(list) => all.extend(list.items),
                Err(error) if error.kind() == ApiErrorKind::NotFound => {}
                Err(error) if error.kind() == ApiErrorKind::Forbidden => {
                    self.unread = Some(error.error_chain());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }
}

fn link_namespaces(host: &HostSnapshot) -> BTreeSet<&str> {
    let consumer = host.consumer.as_ref().map(|it| it.namespace.as_str());
    let all = consumer.into_iter().chain([host.name.namespace.as_str()]);
    all.filter(|namespace| !namespace.is_empty()).collect()
}

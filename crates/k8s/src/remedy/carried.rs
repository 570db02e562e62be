//! Which Nodes a host carries, for whoever wants to know whether they live: read when a BMC says "off" of a host that
//! nobody asked to be off, and not watched.

use std::collections::BTreeSet;
use std::sync::Arc;

use dogwatch_core::name::NodeName;
use dogwatch_core::power::Host;
use dogwatch_core::remedy::{InfraMachine, Machine, MachineApi, named_node, nodes_of};
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client};

use super::kind::{Kind, METAL3_MACHINE};
use super::machine::{infra_machine, machine};
use crate::error::{Error, Kind as Meaning, ask};
use crate::paged::list;

/// The Nodes, and what of the links we may not read.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    pub(crate) nodes: Vec<NodeName>,
    pub(crate) unread: Option<String>,
}

/// By every link: the host's annotation, else the Machines of its namespace and of its consumer's.
pub(crate) async fn carried(client: &Client, host: &Arc<Host>) -> Result<Carried, Error> {
    if let Some(node) = named_node(host) {
        return Ok(Carried {
            nodes: vec![node],
            unread: None,
        });
    }
    let mut links = Links::default();
    for api in [MachineApi::OpenShift, MachineApi::ClusterApi] {
        let keep = move |object: &_| machine(object, api);
        let found = links.read(client, host, Kind::of(api), keep).await?;
        links.machines.extend(found);
    }
    if links.machines.iter().any(|it| it.infra.is_some()) {
        let found = links.read(client, host, METAL3_MACHINE, infra_machine);
        let found = found.await?;
        links.infra.extend(found);
    }
    Ok(Carried {
        nodes: nodes_of(host, links.machines, links.infra),
        unread: links.unread,
    })
}

#[derive(Default)]
struct Links {
    machines: Vec<Machine>,
    infra: Vec<InfraMachine>,
    unread: Option<String>,
}

impl Links {
    /// The objects of a kind in the host's namespace and in its consumer's. A kind that is not installed has none;
    /// of one that we may not list it is remembered why.
    async fn read<T: Clone>(
        &mut self,
        client: &Client,
        host: &Host,
        kind: Kind,
        keep: impl Fn(&DynamicObject) -> T + Copy,
    ) -> Result<Vec<T>, Error> {
        let Some(resource) = kind.served(client).await? else {
            return Ok(Vec::new());
        };
        let mut all = Vec::new();
        for namespace in namespaces(host) {
            let api: Api<DynamicObject> =
                Api::namespaced_with(client.clone(), namespace, &resource);
            match ask(list(&api, ListParams::default(), keep)).await {
                Ok(list) => all.extend(list.items),
                Err(error) if error.kind() == Meaning::NotFound => {}
                Err(error) if error.kind() == Meaning::Forbidden => {
                    self.unread = Some(error.in_words());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }
}

fn namespaces(host: &Host) -> BTreeSet<&str> {
    let consumer = host.consumer.as_ref().map(|it| it.namespace.as_str());
    let all = consumer.into_iter().chain([host.name.namespace.as_str()]);
    all.filter(|namespace| !namespace.is_empty()).collect()
}

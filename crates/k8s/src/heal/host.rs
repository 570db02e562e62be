//! BareMetalHosts: which one carries a Node, and the request to reboot it.
//! Source: specification §2.4; `metal3.io/v1alpha1` as metal3 defines it.

use std::sync::Arc;

use dogwatch_api::annotation;
use dogwatch_core::heal::{Escalated, HostRef};
use dogwatch_core::name::NodeName;
use dogwatch_core::power::Host;
use dogwatch_core::reboot::Parsed;
use dogwatch_core::remedy::{World, host_carrying};
use kube::Api;
use kube::api::{ListParams, Patch};
use serde_json::json;

use super::{HealClient, params};
use crate::error::{Error, Kind, ask};
use crate::host::{HostObject, convert};
use crate::node::{get_node, node_seen};
use crate::paged::list;
use crate::remedy::{self, RemedyView};

/// What the power controller obeys: a reboot without asking the machine first, for it does not
/// answer. Once: the key has no suffix.
const HARD: &str = r#"{"mode":"hard"}"#;

impl HealClient {
    /// The host that carries this Node, by every link that remediation goes by: hosts and Machines choose
    /// Nodes, never the reverse, for a kubelet may write on its own Node. Or why it cannot be known.
    pub async fn host_of(&self, node: &NodeName) -> Result<Result<HostRef, String>, Error> {
        let hosts: Api<HostObject> = Api::all(self.client.clone());
        let hosts = match ask(list(&hosts, ListParams::default(), convert)).await {
            Ok(hosts) => hosts.items,
            Err(error) if error.kind() == Kind::NotFound => {
                return Ok(Err("there are no BareMetalHosts in this cluster".into()));
            }
            Err(error) if matches!(error.kind(), Kind::Forbidden | Kind::Refused) => {
                let why = format!("BareMetalHosts cannot be listed: {}", error.in_words());
                return Ok(Err(why));
            }
            Err(error) => return Err(error),
        };
        let (machines, there) = futures::try_join!(
            Box::pin(self.links()),
            get_node(&self.client, node.as_str())
        )?;
        // The API server accepts no name that we would not.
        let there = there.and_then(|there| node_seen(&there).ok());
        let world = World {
            machines: machines.machines,
            infra: machines.infra,
            hosts: hosts
                .into_iter()
                .map(|it| (it.name.clone(), Arc::new(it)))
                .collect(),
            nodes: there
                .into_iter()
                .map(|it| (it.name.clone(), Arc::new(it)))
                .collect(),
            synced: true,
            ..World::default()
        };
        Ok(host_carrying(&world, node).map(|host| host_ref(&host)))
    }

    /// Where Machines may not be listed (the rights are those of an older version), hosts alone say what they
    /// carry, as they did then.
    async fn links(&self) -> Result<RemedyView, Error> {
        match Box::pin(remedy::links(&self.client)).await {
            Err(error) if error.kind() == Kind::Forbidden => Ok(RemedyView::default()),
            found => found,
        }
    }

    /// Asks the host to reboot, and marks it as asked for this reboot, in one patch.
    pub async fn escalate(&self, host: &HostRef, note: &Escalated) -> Result<(), Error> {
        let mark = serde_json::to_string(note).expect("names and a time serialise");
        let body = Patch::Merge(json!({ "metadata": {
            "uid": host.uid,
            "resourceVersion": host.resource_version,
            "annotations": { annotation::METAL3_REBOOT: HARD, annotation::ESCALATED: mark },
        }}));
        let hosts: Api<HostObject> = Api::namespaced(self.client.clone(), &host.namespace);
        ask(hosts.patch_metadata(&host.name, &params(), &body)).await?;
        Ok(())
    }
}

fn host_ref(host: &Host) -> HostRef {
    let mark = host.annotations.get(annotation::ESCALATED);
    HostRef {
        namespace: host.name.namespace.clone(),
        name: host.name.name.clone(),
        uid: host.uid.clone(),
        resource_version: host.resource_version.clone(),
        asked: host.annotations.contains_key(annotation::METAL3_REBOOT),
        mark: Parsed::<Escalated>::read(mark.map(String::as_str)),
    }
}

//! Reads the host of a Node, and puts our key on it.

use std::sync::Arc;

use dogwatch_api::CONTROLLER;
use dogwatch_api::annotation::CONFIRMED_OFF;
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::{HostKeyPatch, ObservedNodeReboot};
use dogwatch_core::power::{HostName, HostSnapshot};
use dogwatch_core::remediation::{HostLinkProblem, sole_host_carrying};
use kube::Api;
use kube::api::{ListParams, Patch};
use serde_json::{Map, Value, json};

use super::{NodeRebootClient, convert_node_reboot};
use crate::error::{Error, with_timeout};
use crate::field_manager::patch_params_for;
use crate::host::{HostObject, convert_host};
use crate::paged::list_paged;
use crate::remediation;

type FoundHost = Result<Arc<HostSnapshot>, HostLinkProblem>;

impl NodeRebootClient {
    /// The host that carries this Node, by the same links as remediation uses.
    pub async fn find_host_of(&self, node: &NodeName) -> Result<FoundHost, Error> {
        let world = remediation::read_host_links(&self.client, node).await?;
        let world = world.map_err(HostLinkProblem::NoHost);
        Ok(world.and_then(|world| sole_host_carrying(&world, node)))
    }

    pub async fn read_host(&self, name: &HostName) -> Result<FoundHost, Error> {
        let found = with_timeout(self.host_api(name).get_opt(&name.name)).await?;
        let host = found.as_ref().map(convert_host).map(Arc::new);
        let missing = || HostLinkProblem::NoHost(format!("there is no host {name}"));
        Ok(host.ok_or_else(missing))
    }

    /// Puts our key on the host if the NodeReboot still has the version that was decided on.
    /// `None`: it has not, and nothing was written.
    pub async fn put_host_key(
        &self,
        own: &ObservedNodeReboot,
        patch: &HostKeyPatch,
    ) -> Result<Option<HostSnapshot>, Error> {
        if !self.is_current(own).await? {
            return Ok(None);
        }
        self.patch_host_key(patch).await.map(Some)
    }

    /// Puts our key on the host, or takes it away. Returns the host as written.
    pub async fn patch_host_key(&self, patch: &HostKeyPatch) -> Result<HostSnapshot, Error> {
        let params = patch_params_for(CONTROLLER);
        let body = Patch::Merge(host_key_patch(patch));
        let hosts = self.host_api(&patch.host);
        let answer = with_timeout(hosts.patch(&patch.host.name, &params, &body)).await?;
        Ok(convert_host(&answer))
    }

    /// All NodeReboots, in one list.
    pub async fn list_reboots(&self) -> Result<Vec<ObservedNodeReboot>, Error> {
        let all = self.object_api();
        let list = list_paged(&all, ListParams::default(), convert_node_reboot);
        Ok(with_timeout(list).await?.items)
    }

    fn host_api(&self, name: &HostName) -> Api<HostObject> {
        Api::namespaced(self.client.clone(), &name.namespace)
    }
}

pub(super) fn host_key_patch(patch: &HostKeyPatch) -> Value {
    let mut annotations = Map::new();
    annotations.insert(patch.key.clone(), json!(patch.value));
    if patch.removes_confirmation {
        annotations.insert(CONFIRMED_OFF.to_owned(), Value::Null);
    }
    json!({ "metadata": {
        "uid": patch.uid,
        "resourceVersion": patch.resource_version,
        "annotations": annotations,
    }})
}

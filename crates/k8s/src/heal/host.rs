//! BareMetalHosts: which one names a Node, and the request to reboot it.
//! Source: specification §2.4; `metal3.io/v1alpha1` as metal3 defines it.

use dogwatch_api::annotation;
use dogwatch_core::heal::{Escalated, HostRef};
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::Parsed;
use kube::api::{ListParams, PartialObjectMeta, Patch};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::{HealClient, params};
use crate::error::{Error, Kind, ask};
use crate::host::HostObject;

/// What the power controller obeys: a reboot without asking the machine first, for it does not
/// answer. Once: the key has no suffix.
const HARD: &str = r#"{"mode":"hard"}"#;

impl HealClient {
    /// The hosts that name this Node: hosts choose nodes, never the reverse, for a kubelet may write
    /// on its own Node. Or why they cannot be known.
    pub async fn hosts_of(&self, node: &NodeName) -> Result<Result<Vec<HostRef>, String>, Error> {
        let hosts: Api<HostObject> = Api::all(self.client.clone());
        match ask(hosts.list_metadata(&ListParams::default())).await {
            Ok(list) => Ok(Ok(list
                .items
                .iter()
                .filter(|host| names(host, node))
                .filter_map(host_ref)
                .collect())),
            Err(error) if error.kind() == Kind::NotFound => {
                Ok(Err("there are no BareMetalHosts in this cluster".into()))
            }
            Err(error) if matches!(error.kind(), Kind::Forbidden | Kind::Refused) => Ok(Err(
                format!("BareMetalHosts cannot be listed: {}", error.in_words()),
            )),
            Err(error) => Err(error),
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

fn names(host: &PartialObjectMeta<HostObject>, node: &NodeName) -> bool {
    host.annotations().get(annotation::NODE).map(String::as_str) == Some(node.as_str())
}

fn host_ref(host: &PartialObjectMeta<HostObject>) -> Option<HostRef> {
    let annotations = host.annotations();
    let mark = annotations.get(annotation::ESCALATED).map(String::as_str);
    Some(HostRef {
        namespace: host.namespace()?,
        name: host.name_any(),
        uid: host.uid()?,
        resource_version: host.resource_version()?,
        asked: annotations.contains_key(annotation::METAL3_REBOOT),
        mark: Parsed::<Escalated>::read(mark),
    })
}

//! Finds the BareMetalHost of a Node, and requests its reboot. Source: specification §2.4;
//! `metal3.io/v1alpha1` as metal3 defines it.

use dogwatch_api::annotation;
use dogwatch_core::healer::{EscalationRecord, HostRef};
use dogwatch_core::name::NodeName;
use dogwatch_core::power::HostSnapshot;
use dogwatch_core::reboot::ParsedAnnotation;
use dogwatch_core::remediation::host_carrying;
use kube::Api;
use kube::api::Patch;
use serde_json::json;

use super::{HealerClient, patch_params};
use crate::error::{Error, with_timeout};
use crate::host::HostObject;
use crate::remediation;

/// Value of the reboot annotation: the power controller reboots the host without a soft shutdown,
/// since the machine does not answer. The annotation's key has no suffix, so the reboot happens
/// once.
const HARD_REBOOT: &str = r#"{"mode":"hard"}"#;

impl HealerClient {
    /// The host that carries this Node, by the same links as remediation uses. Hosts and Machines
    /// name Nodes, never the reverse, because a kubelet may write to its own Node. The inner error
    /// says why the host is not known.
    pub async fn find_host_of(&self, node: &NodeName) -> Result<Result<HostRef, String>, Error> {
        let world = remediation::read_host_links(&self.client, node).await?;
        Ok(world.and_then(|world| match host_carrying(&world, node) {
            Ok(host) => Ok(host_ref(&host)),
            Err(problem) => Err(problem.message().to_owned()),
        }))
    }

    /// Writes the reboot annotation and our mark for this reboot in one patch.
    pub async fn request_host_reboot(
        &self,
        host: &HostRef,
        note: &EscalationRecord,
    ) -> Result<(), Error> {
        let mark = serde_json::to_string(note).expect("names and a time serialise");
        let body = Patch::Merge(json!({ "metadata": {
            "uid": host.uid,
            "resourceVersion": host.resource_version,
            "annotations": { annotation::METAL3_REBOOT: HARD_REBOOT, annotation::ESCALATED: mark },
        }}));
        let hosts: Api<HostObject> = Api::namespaced(self.client.clone(), &host.namespace);
        with_timeout(hosts.patch_metadata(&host.name, &patch_params(), &body)).await?;
        Ok(())
    }
}

fn host_ref(host: &HostSnapshot) -> HostRef {
    let mark = host.annotations.get(annotation::ESCALATED);
    HostRef {
        namespace: host.name.namespace.clone(),
        name: host.name.name.clone(),
        uid: host.uid.clone(),
        resource_version: host.resource_version.clone(),
        asked: host.annotations.contains_key(annotation::METAL3_REBOOT),
        mark: ParsedAnnotation::<EscalationRecord>::from_text(mark.map(String::as_str)),
    }
}

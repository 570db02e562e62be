//! Finds the BareMetalHost of a Node, and requests its reboot. Source: specification §2.4;
//! `metal3.io/v1alpha1` as metal3 defines it.

use std::sync::Arc;

use dogwatch_api::annotation;
use dogwatch_core::healer::{EscalationRecord, HostRef};
use dogwatch_core::name::NodeName;
use dogwatch_core::power::HostSnapshot;
use dogwatch_core::reboot::ParsedAnnotation;
use dogwatch_core::remediation::{RemediationSnapshot, host_carrying};
use kube::Api;
use kube::api::{ListParams, Patch};
use serde_json::json;

use super::{HealerClient, patch_params};
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::host::{HostObject, convert_host};
use crate::node::{get_node, observed_node};
use crate::paged::list_paged;
use crate::remediation::{self, RemediationWatchView};

/// Value of the reboot annotation: the power controller reboots the host without a soft shutdown,
/// since the machine does not answer. The annotation's key has no suffix, so the reboot happens
/// once.
const HARD_REBOOT: &str = r#"{"mode":"hard"}"#;

impl HealerClient {
    /// The host that carries this Node, by the same links as remediation uses. Hosts and Machines
    /// name Nodes, never the reverse, because a kubelet may write to its own Node. The inner error
    /// says why the host is not known.
    pub async fn find_host_of(&self, node: &NodeName) -> Result<Result<HostRef, String>, Error> {
        let hosts: Api<HostObject> = Api::all(self.client.clone());
        let hosts =
            match with_timeout(list_paged(&hosts, ListParams::default(), convert_host)).await {
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
            Box::pin(self.read_machine_links()),
            get_node(&self.client, node.as_str())
        )?;
        // The API server accepts no name that we would reject.
        let there = there.and_then(|there| observed_node(&there).ok());
        let world = RemediationSnapshot {
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
            ..RemediationSnapshot::default()
        };
        Ok(host_carrying(&world, node).map(|host| host_ref(&host)))
    }

    /// If Machines may not be listed (rights of an older version), only hosts name their Nodes, as
    /// in that version.
    async fn read_machine_links(&self) -> Result<RemediationWatchView, Error> {
        match Box::pin(remediation::read_machine_links(&self.client)).await {
            Err(error) if error.kind() == ApiErrorKind::Forbidden => {
                Ok(RemediationWatchView::default())
            }
            found => found,
        }
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

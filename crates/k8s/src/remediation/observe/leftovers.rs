//! Lists the workloads that are left on a Node with the taint out-of-service.

use std::time::Duration;

use dogwatch_api::annotation::MIRROR_POD;
use dogwatch_core::name::NodeName;
use dogwatch_core::remediation::WorkloadLeftovers;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};

use crate::drain::{TaintRef, tolerates_taint};
use crate::error::{Error, with_timeout};
use crate::node::OUT_OF_SERVICE_TAINT;
use crate::paged::list_paged;
use crate::remediation::client::RemediationClient;
use crate::remediation::write::NODE_SHUTDOWN;

/// How many pods and how many volumes are named.
const MAX_NAMED: usize = 5;

impl RemediationClient {
    /// The pods that the taint out-of-service still has to remove from the Node, and its attached
    /// volumes. `taken`: a time before this call.
    ///
    /// # Errors
    /// When one of the reads fails.
    pub async fn read_leftovers(
        &self,
        node: &NodeName,
        taken: Duration,
    ) -> Result<WorkloadLeftovers, Error> {
        let (pods, attachments) = futures::try_join!(
            self.list_leftover_pods(node),
            self.list_leftover_attachments(node)
        )?;
        Ok(WorkloadLeftovers {
            asked_at: taken,
            pods,
            attachments,
        })
    }

    async fn list_leftover_pods(&self, node: &NodeName) -> Result<Vec<String>, Error> {
        let pods: Api<Pod> = Api::all(self.node_client.clone());
        let params = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let left = move |pod: &Pod| has_to_go(pod).then(|| pod_name(pod));
        let left = with_timeout(list_paged(&pods, params, &left)).await?;
        Ok(left.items.into_iter().flatten().take(MAX_NAMED).collect())
    }

    /// There is no field selector for the node: all attachments are listed.
    async fn list_leftover_attachments(&self, node: &NodeName) -> Result<Vec<String>, Error> {
        let all: Api<VolumeAttachment> = Api::all(self.node_client.clone());
        let here = move |it: &VolumeAttachment| {
            (it.spec.node_name == node.as_str()).then(|| it.name_any())
        };
        let here = with_timeout(list_paged(&all, ListParams::default(), &here)).await?;
        Ok(here.items.into_iter().flatten().take(MAX_NAMED).collect())
    }
}

/// A finished pod runs nothing and holds no volume; a static pod belongs to its host.
fn has_to_go(pod: &Pod) -> bool {
    const SHUTDOWN_TAINT: TaintRef<'_> = TaintRef {
        key: OUT_OF_SERVICE_TAINT,
        value: NODE_SHUTDOWN,
        effect: "NoExecute",
    };
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let has_ended = matches!(phase, Some("Succeeded" | "Failed"));
    let specs = pod.spec.iter();
    let mut tolerations = specs.flat_map(|spec| spec.tolerations.iter().flatten());
    let stays = tolerations.any(|toleration| tolerates_taint(toleration, SHUTDOWN_TAINT));
    !has_ended && !stays && !pod.annotations().contains_key(MIRROR_POD)
}

fn pod_name(pod: &Pod) -> String {
    format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any())
}

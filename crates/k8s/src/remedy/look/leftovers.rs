//! What is left of the workloads of a Node that is tainted out of service.

use std::time::Duration;

use dogwatch_api::annotation::MIRROR_POD;
use dogwatch_core::name::NodeName;
use dogwatch_core::remedy::Leftovers;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};

use crate::drain::{TaintRef, tolerates};
use crate::error::{Error, ask};
use crate::node::OUT_OF_SERVICE;
use crate::paged::list;
use crate::remedy::client::RemedyClient;
use crate::remedy::write::NODE_SHUTDOWN;

/// How many of each are named.
const NAMED: usize = 5;

impl RemedyClient {
    /// The pods of the Node that the taint out-of-service has still to remove, and its volumes that are
    /// still attached. `taken` is a moment before this was called.
    ///
    /// # Errors
    /// When one of them is not known.
    pub async fn leftovers(&self, node: &NodeName, taken: Duration) -> Result<Leftovers, Error> {
        let (pods, attachments) = futures::try_join!(self.pods(node), self.attachments(node))?;
        Ok(Leftovers {
            taken,
            pods,
            attachments,
        })
    }

    async fn pods(&self, node: &NodeName) -> Result<Vec<String>, Error> {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let params = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let left = move |pod: &Pod| has_to_go(pod).then(|| name(pod));
        let left = ask(list(&pods, params, &left)).await?;
        Ok(left.items.into_iter().flatten().take(NAMED).collect())
    }

    /// There is no field selector for their node: all are listed.
    async fn attachments(&self, node: &NodeName) -> Result<Vec<String>, Error> {
        let all: Api<VolumeAttachment> = Api::all(self.client.clone());
        let here = move |it: &VolumeAttachment| {
            (it.spec.node_name == node.as_str()).then(|| it.name_any())
        };
        let here = ask(list(&all, ListParams::default(), &here)).await?;
        Ok(here.items.into_iter().flatten().take(NAMED).collect())
    }
}

/// Of a pod that has ended nothing runs and no volume is held; a static one is its host's own affair.
fn has_to_go(pod: &Pod) -> bool {
    const TAINT: TaintRef<'_> = TaintRef {
        key: OUT_OF_SERVICE,
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
    let stays = tolerations.any(|toleration| tolerates(toleration, TAINT));
    !has_ended && !stays && !pod.annotations().contains_key(MIRROR_POD)
}

fn name(pod: &Pod) -> String {
    format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any())
}

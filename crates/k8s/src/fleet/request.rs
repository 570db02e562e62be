//! Asking for a reboot: annotation `dogwatch.dev/reboot-requested`. Source: specification §2.1.

use dogwatch_api::annotation;
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::Request;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use kube::api::Patch;
use serde_json::{Value, json};

use super::FleetClient;
use crate::error::{Error, Kind, ask};
use crate::manager::patched_by;
use crate::node::get_node;

/// How a person's tool names itself as a field manager.
pub(super) const MANAGER: &str = "dogwatch";
/// A Node that changes between each read and each write does not exist; a kubelet's status writes
/// may come in between once or twice.
pub(super) const TRIES: u32 = 5;

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requested {
    /// It stands on the Node now.
    Written,
    /// It stood there already, word for word.
    Same,
    /// Another one stands there, and was left alone.
    Other {
        /// Its text.
        text: String,
    },
    /// There is no Node of that name.
    NoSuchNode,
}

impl FleetClient {
    /// Writes a request onto a Node. One that is there already is replaced only if `replace` says
    /// so: the coordinator takes another text for another request.
    pub async fn request_reboot(
        &self,
        node: &NodeName,
        request: &Request,
        replace: bool,
    ) -> Result<Requested, Error> {
        let text = serde_json::to_string(request).expect("two texts and a time serialise");
        let mut tries = 0;
        loop {
            tries += 1;
            let Some(seen) = get_node(&self.client, node.as_str()).await? else {
                return Ok(Requested::NoSuchNode);
            };
            match seen.annotations().get(annotation::REBOOT_REQUESTED) {
                Some(there) if *there == text => return Ok(Requested::Same),
                Some(there) if !replace => {
                    return Ok(Requested::Other {
                        text: there.clone(),
                    });
                }
                Some(_) | None => {}
            }
            let annotations = json!({ annotation::REBOOT_REQUESTED: text });
            match self.annotate(&seen, &annotations).await {
                Ok(()) => return Ok(Requested::Written),
                Err(error) if error.kind() == Kind::Conflict && tries < TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes these annotations onto the Node as it was seen: if it has changed, nothing is written.
    pub(super) async fn annotate(&self, seen: &Node, annotations: &Value) -> Result<(), Error> {
        let body = json!({ "metadata": {
            "uid": seen.uid(),
            "resourceVersion": seen.resource_version(),
            "annotations": annotations,
        }});
        let params = patched_by(MANAGER);
        let nodes = self.nodes();
        ask(nodes.patch_metadata(&seen.name_any(), &params, &Patch::Merge(&body))).await?;
        Ok(())
    }
}

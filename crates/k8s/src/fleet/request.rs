//! Requests a reboot: annotation `dogwatch.dev/reboot-requested`. Source: specification §2.1.

use dogwatch_api::annotation;
use dogwatch_api::node_reboot::RebootMethod;
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::{ParsedAnnotation, RebootRequest};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use kube::api::Patch;
use serde_json::{Value, json};

use super::FleetClient;
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::field_manager::patch_params_for;
use crate::node::get_node;

/// Field manager of the CLI's writes.
pub(super) const FIELD_MANAGER: &str = "dogwatch";
/// A conflict at every try is not expected: a kubelet's status write may come in between once or
/// twice.
pub(super) const MAX_TRIES: u32 = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RebootRequestOutcome {
    Written,
    /// An identical request existed already.
    Same,
    /// Another request exists, and was left unchanged.
    Other {
        text: String,
    },
    /// The Node is held, or is to be held. A reboot does not replace that: somebody may work on the
    /// machine.
    Held {
        text: String,
    },
    NoSuchNode,
}

impl FleetClient {
    /// Writes a request onto a Node. An existing one is replaced only if `replace` is set: the
    /// coordinator treats another text as another request.
    pub async fn request_reboot(
        &self,
        node: &NodeName,
        request: &RebootRequest,
        replace: bool,
    ) -> Result<RebootRequestOutcome, Error> {
        let text = serde_json::to_string(request).expect("two texts and a time serialise");
        let mut tries = 0;
        loop {
            tries += 1;
            let Some(seen) = get_node(&self.client, node.as_str()).await? else {
                return Ok(RebootRequestOutcome::NoSuchNode);
            };
            match seen.annotations().get(annotation::REBOOT_REQUESTED) {
                Some(there) if *there == text => return Ok(RebootRequestOutcome::Same),
                Some(there) if request.method != RebootMethod::Hold && asks_for_hold(there) => {
                    return Ok(RebootRequestOutcome::Held {
                        text: there.clone(),
                    });
                }
                Some(there) if !replace => {
                    return Ok(RebootRequestOutcome::Other {
                        text: there.clone(),
                    });
                }
                Some(_) | None => {}
            }
            let annotations = json!({ annotation::REBOOT_REQUESTED: text });
            match self.annotate_node(&seen, &annotations).await {
                Ok(()) => return Ok(RebootRequestOutcome::Written),
                Err(error) if error.kind() == ApiErrorKind::Conflict && tries < MAX_TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes these annotations, unless the Node has changed since it was read.
    pub(super) async fn annotate_node(
        &self,
        seen: &Node,
        annotations: &Value,
    ) -> Result<(), Error> {
        let body = json!({ "metadata": {
            "uid": seen.uid(),
            "resourceVersion": seen.resource_version(),
            "annotations": annotations,
        }});
        let params = patch_params_for(FIELD_MANAGER);
        let nodes = self.node_api();
        with_timeout(nodes.patch_metadata(&seen.name_any(), &params, &Patch::Merge(&body))).await?;
        Ok(())
    }
}

fn asks_for_hold(text: &str) -> bool {
    let request = ParsedAnnotation::<RebootRequest>::from_text(Some(text));
    let request = request.get();
    request.is_some_and(|request| request.method == RebootMethod::Hold)
}

//! Reads and patches the Node of a host that uses the lock API.

use dogwatch_api::{CONTROLLER, annotation};
use dogwatch_core::lock::api_lock::{ApiNode, NodeWrite};
use dogwatch_core::name::{BadName, NodeName};
use dogwatch_core::reboot::ParsedAnnotation;
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, Patch};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Map, Value, json};

use crate::error::{Error, with_timeout};
use crate::field_manager::patch_params_for;
use crate::node::cordon_spec;
use crate::node::observed_node;
use crate::readable_dates::ReadableApi as _;

/// Page size when all Nodes are listed.
const NODES_PER_PAGE: u32 = 500;

/// `None`: the host is no Node.
///
/// # Errors
/// When the request fails.
pub async fn read_api_node(client: &Client, name: &str) -> Result<Option<ApiNode>, Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = with_timeout(nodes.get_readable_opt(name)).await?;
    // An invalid name means that there is no such Node: the API server accepts no such name.
    Ok(node.and_then(|node| observed_api_node(&node).ok()))
}

/// # Errors
/// On a name that no API server would have accepted.
pub fn observed_api_node(node: &Node) -> Result<ApiNode, BadName> {
    let text = node.annotations().get(annotation::API_LOCK);
    Ok(ApiNode {
        seen: observed_node(node)?,
        lock: ParsedAnnotation::from_text(text.map(String::as_str)),
    })
}

/// Sends one conditional patch: cordon and annotation together, or uncordon and the annotation's
/// removal. The API server answers 409 if the Node has changed since it was read or has been
/// replaced.
///
/// # Errors
/// Any refusal; or no answer, and then the patch may still be applied.
pub async fn patch_api_node(
    client: &Client,
    node: &ApiNode,
    write: &NodeWrite,
) -> Result<(), Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let params = patch_params_for(CONTROLLER);
    let body = Patch::Merge(patch_body(&node.seen.uid, write));
    with_timeout(nodes.patch_metadata(node.seen.name.as_str(), &params, &body))
        .await
        .map(|_| ())
}

fn patch_body(uid: &str, write: &NodeWrite) -> Value {
    let lock = write.lock.as_ref().map(|lock| {
        serde_json::to_string(lock).expect("a record has only names, a flag and a time")
    });
    let mut body = Map::new();
    let metadata = json!({
        "uid": uid,
        "resourceVersion": write.resource_version,
        "annotations": { annotation::API_LOCK: lock },
    });
    body.insert("metadata".into(), metadata);
    if let Some(unschedulable) = write.unschedulable {
        body.insert("spec".into(), cordon_spec(unschedulable));
    }
    Value::Object(body)
}

/// Every Node's machine id (`status.nodeInfo.machineID`), for FleetLock's clients.
///
/// # Errors
/// When the request fails.
pub async fn list_machine_ids(client: &Client) -> Result<Vec<(NodeName, String)>, Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut ids = Vec::new();
    let mut params = ListParams::default().limit(NODES_PER_PAGE);
    loop {
        let page = with_timeout(nodes.list_readable(&params)).await?;
        ids.extend(page.items.iter().filter_map(machine_id_of));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => {
                params = ListParams::default()
                    .limit(NODES_PER_PAGE)
                    .continue_token(&token);
            }
            None => return Ok(ids),
        }
    }
}

fn machine_id_of(node: &Node) -> Option<(NodeName, String)> {
    let info = node.status.as_ref()?.node_info.as_ref()?;
    let name = NodeName::new(node.name_any()).ok()?;
    Some((name, info.machine_id.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dogwatch_core::lock::api_lock::ApiLock;
    use dogwatch_core::name::RunId;

    fn lock() -> ApiLock {
        ApiLock {
            lease: "dogwatch-default-0".into(),
            cordoned_by_us: true,
            since: jiff::Timestamp::UNIX_EPOCH,
            run: RunId::new("api/p/1").unwrap(),
        }
    }

    #[test]
    fn cordon_and_annotation_are_one_patch_with_both_preconditions() {
        let write = NodeWrite {
            resource_version: "7".into(),
            unschedulable: Some(true),
            lock: Some(lock()),
        };
        let body = patch_body("u1", &write);
        assert_eq!(body["metadata"]["uid"], "u1");
        assert_eq!(body["metadata"]["resourceVersion"], "7");
        assert_eq!(body["spec"]["unschedulable"], true);
        let text = body["metadata"]["annotations"]["dogwatch.dev/api-lock"].as_str();
        assert_eq!(
            ParsedAnnotation::from_text(text),
            ParsedAnnotation::Is(lock())
        );
    }

    #[test]
    fn a_cordon_that_is_not_ours_to_undo_is_not_named() {
        let write = NodeWrite {
            resource_version: "7".into(),
            unschedulable: None,
            lock: None,
        };
        let body = patch_body("u1", &write);
        assert!(body.get("spec").is_none());
        assert!(body["metadata"]["annotations"]["dogwatch.dev/api-lock"].is_null());
    }
}

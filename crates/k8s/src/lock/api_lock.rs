//! A Node whose host uses the lock API: read afresh, and patched on what was read.

use dogwatch_api::{CONTROLLER, annotation};
use dogwatch_core::lock::api_lock::{ApiNode, NodeWrite};
use dogwatch_core::name::{BadName, NodeName};
use dogwatch_core::reboot::Parsed;
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, Patch};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Map, Value, json};

use crate::error::{Error, ask};
use crate::manager::patched_by;
use crate::node::cordon;
use crate::node::node_seen;

/// How many Nodes are read at a time when all are.
const PAGE: u32 = 500;

/// Reads the Node of this name; `None` if the host is none.
///
/// # Errors
/// When there is no answer to go by.
pub async fn read(client: &Client, name: &str) -> Result<Option<ApiNode>, Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = ask(nodes.get_opt(name)).await?;
    // A name that the API server would not have accepted is not one that it gave.
    Ok(node.and_then(|node| seen(&node).ok()))
}

/// What the lock API's decisions see of a Node.
///
/// # Errors
/// On a name that no API server would have accepted.
pub fn seen(node: &Node) -> Result<ApiNode, BadName> {
    let text = node.annotations().get(annotation::API_LOCK);
    Ok(ApiNode {
        seen: node_seen(node)?,
        lock: Parsed::read(text.map(String::as_str)),
    })
}

/// Sends one conditional patch: cordon and annotation, or uncordon and its removal, together. A Node
/// that has changed since it was read, or is another one of the same name, is answered 409.
///
/// # Errors
/// Whatever the API server says, and no answer: then it may land yet.
pub async fn write(client: &Client, node: &ApiNode, write: &NodeWrite) -> Result<(), Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let params = patched_by(CONTROLLER);
    let body = Patch::Merge(body(&node.seen.uid, write));
    ask(nodes.patch_metadata(node.seen.name.as_str(), &params, &body))
        .await
        .map(|_| ())
}

fn body(uid: &str, write: &NodeWrite) -> Value {
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
        body.insert("spec".into(), cordon(unschedulable));
    }
    Value::Object(body)
}

/// Every Node's machine id (`status.nodeInfo.machineID`), for FleetLock's clients.
///
/// # Errors
/// When there is no answer to go by.
pub async fn machine_ids(client: &Client) -> Result<Vec<(NodeName, String)>, Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut ids = Vec::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = ask(nodes.list(&params)).await?;
        ids.extend(page.items.iter().filter_map(machine_id));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = ListParams::default().limit(PAGE).continue_token(&token),
            None => return Ok(ids),
        }
    }
}

fn machine_id(node: &Node) -> Option<(NodeName, String)> {
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
        let body = body("u1", &write);
        assert_eq!(body["metadata"]["uid"], "u1");
        assert_eq!(body["metadata"]["resourceVersion"], "7");
        assert_eq!(body["spec"]["unschedulable"], true);
        let text = body["metadata"]["annotations"]["dogwatch.dev/api-lock"].as_str();
        assert_eq!(Parsed::read(text), Parsed::Is(lock()));
    }

    #[test]
    fn a_cordon_that_is_not_ours_to_undo_is_not_named() {
        let write = NodeWrite {
            resource_version: "7".into(),
            unschedulable: None,
            lock: None,
        };
        let body = body("u1", &write);
        assert!(body.get("spec").is_none());
        assert!(body["metadata"]["annotations"]["dogwatch.dev/api-lock"].is_null());
    }
}

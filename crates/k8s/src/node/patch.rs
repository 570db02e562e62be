//! Builds and sends the patches of our own Node.

use dogwatch_api::{COORDINATOR, annotation, label};
use dogwatch_core::Now;
use dogwatch_core::condition::ConditionWrite;
use dogwatch_core::reboot::{NodePatch, ObservedNode, RecordChange};
use k8s_openapi::api::core::v1::Node;
use kube::api::Patch;
use kube::{Api, Client};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::Error;
use crate::error::with_timeout;
use crate::field_manager::patch_params_for;
use crate::readable_dates::ReadableApi as _;

/// Sends one conditional patch of a Node. The API server answers 409, and changes nothing, if the
/// Node has changed since it was read or has been replaced.
pub async fn patch_node(
    client: &Client,
    node: &ObservedNode,
    patch: &NodePatch,
) -> Result<Node, Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let params = patch_params_for(COORDINATOR);
    let body = Patch::Merge(merge_patch(node, patch));
    with_timeout(nodes.patch_readable(node.name.as_str(), &params, &body)).await
}

/// Writes these conditions; all others stay.
pub async fn patch_conditions(
    client: &Client,
    node: &ObservedNode,
    writes: &[ConditionWrite],
    now: Now,
) -> Result<Node, Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let params = patch_params_for(COORDINATOR);
    let conditions: Vec<Value> = writes
        .iter()
        .map(|write| condition_value(write, now))
        .collect();
    let body = Patch::Strategic(json!({
        "metadata": { "uid": node.uid },
        "status": { "conditions": conditions },
    }));
    with_timeout(nodes.patch_readable_status(node.name.as_str(), &params, &body)).await
}

fn condition_value(write: &ConditionWrite, now: Now) -> Value {
    json!({
        "type": write.observation.kind,
        "status": write.observation.status.as_str(),
        "reason": write.observation.reason,
        "message": write.observation.message,
        "lastTransitionTime": format_seconds(write.last_transition),
        "lastHeartbeatTime": format_seconds(now.wall),
    })
}

/// `metav1.Time` has no fractions of a second.
pub(crate) fn format_seconds(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(crate) fn merge_patch(node: &ObservedNode, patch: &NodePatch) -> Value {
    let mut metadata = Map::new();
    metadata.insert("uid".into(), node.uid.clone().into());
    metadata.insert(
        "resourceVersion".into(),
        patch.resource_version.clone().into(),
    );
    metadata.insert(
        "annotations".into(),
        Value::Object(annotation_changes(patch)),
    );
    let labels = label_changes(patch);
    if !labels.is_empty() {
        metadata.insert("labels".into(), Value::Object(labels));
    }
    let mut body = Map::new();
    body.insert("metadata".into(), Value::Object(metadata));
    if let Some(unschedulable) = patch.unschedulable {
        body.insert("spec".into(), cordon_spec(unschedulable));
    }
    Value::Object(body)
}

fn label_changes(patch: &NodePatch) -> Map<String, Value> {
    let changes = [
        (label::REBOOT, label::WAITING, patch.waiting_label),
        (
            label::NVSENTINEL_MANAGED,
            label::NVSENTINEL_MUTED,
            patch.mute_label,
        ),
    ];
    let changed = changes.into_iter().filter_map(|(name, value, change)| {
        let value = change?.then_some(value).map_or(Value::Null, Value::from);
        Some((name.to_owned(), value))
    });
    let removed = patch.remove_labels.iter();
    let removed = removed.map(|name| (name.clone(), Value::Null));
    changed.chain(removed).collect()
}

/// The `spec` of a merge patch that cordons or uncordons. Uncordoning removes the field, as
/// `kubectl uncordon` does.
pub(crate) fn cordon_spec(unschedulable: bool) -> Value {
    json!({ "unschedulable": unschedulable.then_some(true) })
}

fn annotation_changes(patch: &NodePatch) -> Map<String, Value> {
    let mut annotations = Map::new();
    let record = match &patch.record {
        RecordChange::Set(record) => json_text(record),
        RecordChange::Remove => Value::Null,
    };
    annotations.insert(annotation::REBOOT.into(), record);
    if let Some(last) = &patch.last {
        annotations.insert(annotation::LAST_REBOOT.into(), json_text(last));
    }
    if patch.remove_request {
        annotations.insert(annotation::REBOOT_REQUESTED.into(), Value::Null);
    }
    if patch.remove_abort {
        annotations.insert(annotation::ABORT_REQUESTED.into(), Value::Null);
    }
    annotations
}

fn json_text<T: Serialize>(value: &T) -> Value {
    let text = serde_json::to_string(value).expect("plain structs with string keys serialise");
    Value::String(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> ObservedNode {
        let node: Node = serde_json::from_value(json!({"metadata": {
            "name": "n1", "uid": "u1", "resourceVersion": "7"}}))
        .unwrap();
        crate::node::observed_node(&node).unwrap()
    }

    fn patch() -> NodePatch {
        NodePatch {
            resource_version: "7".into(),
            unschedulable: None,
            record: RecordChange::Remove,
            waiting_label: None,
            mute_label: None,
            last: None,
            remove_labels: Vec::new(),
            remove_request: false,
            remove_abort: false,
        }
    }

    #[test]
    fn every_patch_carries_uid_and_version() {
        let body = merge_patch(&seen(), &patch());
        assert_eq!(body["metadata"]["uid"], "u1");
        assert_eq!(body["metadata"]["resourceVersion"], "7");
    }

    #[test]
    fn what_is_not_to_change_is_not_named() {
        let body = merge_patch(&seen(), &patch());
        assert!(body.get("spec").is_none());
        assert!(body["metadata"].get("labels").is_none());
        let annotations = body["metadata"]["annotations"].as_object().unwrap();
        assert_eq!(
            annotations.keys().collect::<Vec<_>>(),
            ["dogwatch.dev/reboot"]
        );
    }

    #[test]
    fn nvsentinels_label_is_set_to_false_and_removed() {
        for (change, value) in [(true, Value::from("false")), (false, Value::Null)] {
            let patch = NodePatch {
                mute_label: Some(change),
                ..patch()
            };
            let body = merge_patch(&seen(), &patch);
            let labels = json!({ "k8saas.nvidia.com/ManagedByNVSentinel": value });
            assert_eq!(body["metadata"]["labels"], labels);
        }
    }

    #[test]
    fn cordon_label_and_record_go_together() {
        let patch = NodePatch {
            unschedulable: Some(true),
            waiting_label: Some(false),
            ..patch()
        };
        let body = merge_patch(&seen(), &patch);
        assert_eq!(body["spec"]["unschedulable"], true);
        assert!(body["metadata"]["labels"]["dogwatch.dev/reboot"].is_null());
    }
}

//! Copies labels, annotations and taints from a deleted Node to its successor. [`NodeBackup`]
//! defines what is copied.

use dogwatch_core::remediation::{NodeBackup, NodeTaint};
use k8s_openapi::api::core::v1::{Node, Taint as TaintObject};
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use crate::node::observed_node;

/// What others had put on this Node.
pub(super) fn backup_of_node(node: &Node) -> NodeBackup {
    let mut backup = snapshot_node(node);
    let seen = observed_node(node).ok();
    backup.cordoned &= !seen.is_some_and(|seen| seen.is_cordon_ours());
    backup.without_excluded()
}

/// The merge patch with everything that the Node lacks; `None`: it lacks nothing.
pub(super) fn restore_patch(node: &Node, backup: &NodeBackup) -> Option<Value> {
    let missing = backup.missing_on(&snapshot_node(node));
    if missing.is_empty() {
        return None;
    }
    let mut spec = Map::new();
    if !missing.taints.is_empty() {
        // A merge patch replaces the whole list.
        let mut all = node_taints(node).to_vec();
        all.extend(missing.taints.iter().map(taint_object));
        spec.insert("taints".to_owned(), json!(all));
    }
    if missing.cordoned {
        spec.insert("unschedulable".to_owned(), json!(true));
    }
    let metadata = json!({ "labels": missing.labels, "annotations": missing.annotations });
    Some(json!({ "metadata": metadata, "spec": spec }))
}

fn snapshot_node(node: &Node) -> NodeBackup {
    let spec = node.spec.as_ref();
    let unschedulable = spec.and_then(|spec| spec.unschedulable);
    let info = node.status.as_ref().and_then(|it| it.node_info.as_ref());
    NodeBackup {
        node: node.name_any(),
        uid: node.uid().unwrap_or_default(),
        system_uuid: info
            .map(|info| info.system_uuid.clone())
            .filter(|it| !it.is_empty()),
        provider_id: spec
            .and_then(|spec| spec.provider_id.clone())
            .filter(|it| !it.is_empty()),
        labels: node.labels().clone(),
        annotations: node.annotations().clone(),
        taints: node_taints(node).iter().map(convert_taint).collect(),
        cordoned: unschedulable.unwrap_or(false),
        ..NodeBackup::default()
    }
}

fn node_taints(node: &Node) -> &[TaintObject] {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
    taints.unwrap_or_default()
}

fn convert_taint(taint: &TaintObject) -> NodeTaint {
    NodeTaint {
        key: taint.key.clone(),
        value: taint.value.clone().unwrap_or_default(),
        effect: taint.effect.clone(),
    }
}

fn taint_object(taint: &NodeTaint) -> TaintObject {
    TaintObject {
        key: taint.key.clone(),
        value: (!taint.value.is_empty()).then(|| taint.value.clone()),
        effect: taint.effect.clone(),
        time_added: None,
    }
}

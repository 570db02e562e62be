//! Copies labels, annotations and taints from a deleted Node to its successor. [`NodeBackup`]
//! defines what is copied.

use dogwatch_core::reboot::{ObservedNode, ParsedAnnotation};
use dogwatch_core::remediation::{NodeBackup, NodeTaint};
use k8s_openapi::api::core::v1::{Node, Taint as TaintObject};
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use crate::node::observed_node;

/// What others had put on this Node.
pub(super) fn backup_of_node(node: &Node) -> NodeBackup {
    let mut backup = snapshot_node(node);
    let seen = observed_node(node).ok();
    backup.cordoned &= !seen.is_some_and(|seen| is_cordon_ours(&seen));
    backup.without_excluded()
}

/// With an unreadable record the cordon counts as somebody else's and is restored: people can undo
/// one cordon too many. A cordon that a person asked to keep after the boot is theirs.
fn is_cordon_ours(node: &ObservedNode) -> bool {
    let by_record = match &node.record {
        ParsedAnnotation::Is(record) => record.cordoned_by_us,
        ParsedAnnotation::Absent | ParsedAnnotation::Bad { .. } => false,
    };
    node.api_lock || by_record && !node.keep_cordoned
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

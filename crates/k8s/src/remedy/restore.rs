//! What has to come back on a Node, read from one and written to the next. What that is says
//! [`Backup`].

use dogwatch_core::reboot::{NodeSeen, Parsed};
use dogwatch_core::remedy::{Backup, Taint};
use k8s_openapi::api::core::v1::{Node, Taint as TaintObject};
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use crate::node::node_seen;

/// What others had put on this Node.
pub(super) fn backup(node: &Node) -> Backup {
    let mut backup = there(node);
    let seen = node_seen(node).ok();
    backup.cordoned &= !seen.is_some_and(|seen| is_cordon_ours(&seen));
    backup.kept()
}

/// A record that cannot be read may be of a cordon of ours: one too many is undone by people. One that a
/// person asked to keep after the boot is theirs.
fn is_cordon_ours(node: &NodeSeen) -> bool {
    let by_record = match &node.record {
        Parsed::Is(record) => record.cordoned_by_us,
        Parsed::Absent | Parsed::Bad { .. } => false,
    };
    node.api_lock || by_record && !node.keep_cordoned
}

/// The merge patch of what the Node lacks; `None`: it has everything.
pub(super) fn patch(node: &Node, backup: &Backup) -> Option<Value> {
    let missing = backup.missing(&there(node));
    if missing.is_empty() {
        return None;
    }
    let mut spec = Map::new();
    if !missing.taints.is_empty() {
        // The list is written whole.
        let mut all = standing(node).to_vec();
        all.extend(missing.taints.iter().map(object));
        spec.insert("taints".to_owned(), json!(all));
    }
    if missing.cordoned {
        spec.insert("unschedulable".to_owned(), json!(true));
    }
    let metadata = json!({ "labels": missing.labels, "annotations": missing.annotations });
    Some(json!({ "metadata": metadata, "spec": spec }))
}

/// Everything that is on this Node.
fn there(node: &Node) -> Backup {
    let spec = node.spec.as_ref();
    let unschedulable = spec.and_then(|spec| spec.unschedulable);
    let info = node.status.as_ref().and_then(|it| it.node_info.as_ref());
    Backup {
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
        taints: standing(node).iter().map(taint).collect(),
        cordoned: unschedulable.unwrap_or(false),
        ..Backup::default()
    }
}

fn standing(node: &Node) -> &[TaintObject] {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
    taints.unwrap_or_default()
}

fn taint(taint: &TaintObject) -> Taint {
    Taint {
        key: taint.key.clone(),
        value: taint.value.clone().unwrap_or_default(),
        effect: taint.effect.clone(),
    }
}

fn object(taint: &Taint) -> TaintObject {
    TaintObject {
        key: taint.key.clone(),
        value: (!taint.value.is_empty()).then(|| taint.value.clone()),
        effect: taint.effect.clone(),
        time_added: None,
    }
}

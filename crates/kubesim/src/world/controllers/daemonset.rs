//! DaemonSets: one pod on every node that accepts it.
//!
//! Unlike the real controller, it binds its pods itself instead of leaving that to the scheduler by
//! node affinity; the pods end up on the same nodes.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod, Toleration};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::action::{self, ControllerAction, ControllerOwner, WritableKind};
use super::{ReconcileOutcome, SimulatedController, object_queries};
use crate::world::cache::{CacheChange, ControllerCache, ObjectKey};

/// Taints that every DaemonSet's pod tolerates, and their effects. Source: Kubernetes, "DaemonSet",
/// taints and tolerations.
const DAEMON_SET_TOLERATED_TAINTS: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// A key is a DaemonSet, to update its status, or `SET/NODE`.
#[derive(Debug)]
pub struct DaemonSetController;

impl SimulatedController for DaemonSetController {
    fn name(&self) -> &'static str {
        "daemonset"
    }

    fn enqueue_keys(
        &mut self,
        cache: &ControllerCache,
        change: &CacheChange,
        _: Timestamp,
        keys: &mut BTreeSet<ObjectKey>,
    ) {
        match change {
            CacheChange::DaemonSet(shift) => shift.known_states().for_each(|set| {
                let key = ObjectKey::of_metadata(&set.metadata);
                for (node, _) in cache.nodes.iter() {
                    keys.insert(node_key(&key, &node.name));
                }
                keys.insert(key);
            }),
            CacheChange::Node(shift)
                if affects_scheduling(shift.old.as_deref(), shift.new.as_deref()) =>
            {
                let Some(node) = shift.known_states().next() else {
                    return;
                };
                for (key, _) in cache.daemon_sets.iter() {
                    keys.insert(node_key(key, &node.name_any()));
                    keys.insert(key.clone());
                }
            }
            CacheChange::Pod(shift) => shift.known_states().for_each(|pod| {
                let owner = object_queries::controller_owner(&pod.metadata)
                    .filter(|owner| owner.kind == "DaemonSet");
                if let Some(owner) = owner {
                    let key = ObjectKey::new(pod.namespace().unwrap_or_default(), &owner.name);
                    keys.extend(object_queries::node_of_pod(pod).map(|node| node_key(&key, node)));
                    keys.insert(key);
                }
            }),
            CacheChange::Node(_)
            | CacheChange::ReplicaSet(_)
            | CacheChange::Deployment(_)
            | CacheChange::Budget(_)
            | CacheChange::Attachment(_)
            | CacheChange::Claim(_)
            | CacheChange::NodeLease(_)
            | CacheChange::Power { .. } => {}
        }
    }

    fn reconcile(
        &mut self,
        cache: &ControllerCache,
        key: &ObjectKey,
        _: Timestamp,
    ) -> ReconcileOutcome {
        let (name, node) = match key.name.split_once('/') {
            Some((name, node)) => (name, Some(node)),
            None => (key.name.as_str(), None),
        };
        let set = cache.daemon_sets.get(&ObjectKey::new(&key.namespace, name));
        let Some(set) = set.filter(|set| set.metadata.deletion_timestamp.is_none()) else {
            return ReconcileOutcome::default();
        };
        ReconcileOutcome::with_actions(match node {
            Some(node) => reconcile_node(cache, set, node),
            None => update_status(cache, set).into_iter().collect(),
        })
    }
}

fn node_key(set: &ObjectKey, node: &str) -> ObjectKey {
    ObjectKey::new(&set.namespace, format!("{}/{node}", set.name))
}

/// Whether the change matters for scheduling: heartbeats change nodes all the time.
fn affects_scheduling(old: Option<&Node>, new: Option<&Node>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => {
            old.spec != new.spec || old.metadata.labels != new.metadata.labels
        }
        (_, _) => true,
    }
}

fn reconcile_node(cache: &ControllerCache, set: &DaemonSet, name: &str) -> Vec<ControllerAction> {
    let Some(node) = cache.nodes.get(&ObjectKey::cluster_scoped(name)) else {
        return Vec::new();
    };
    let uid = set.uid().unwrap_or_default();
    let there: Vec<&Arc<Pod>> = cache
        .pods_on_node(name)
        .filter(|pod| {
            object_queries::controller_owner(&pod.metadata).is_some_and(|owner| owner.uid == uid)
        })
        .collect();
    if !should_run_on_node(set, node, &["NoExecute"]) {
        let staying = there
            .into_iter()
            .filter(|pod| !object_queries::is_deleting(pod));
        return staying
            .map(|pod| ControllerAction::delete_pod(pod))
            .collect();
    }
    // A pod that is still terminating delays its successor.
    if there.is_empty() && should_run_on_node(set, node, &["NoExecute", "NoSchedule"]) {
        return vec![ControllerAction::create_pod(daemon_pod(set, &uid, name))];
    }
    let ended = there
        .into_iter()
        .filter(|pod| object_queries::is_finished(pod) && !object_queries::is_deleting(pod));
    ended.map(|pod| ControllerAction::delete_pod(pod)).collect()
}

fn should_run_on_node(set: &DaemonSet, node: &Node, effects: &[&str]) -> bool {
    let template = set
        .spec
        .as_ref()
        .and_then(|spec| spec.template.spec.as_ref());
    let selector = template.and_then(|spec| spec.node_selector.as_ref());
    let labels = object_queries::object_labels(&node.metadata);
    let own = template
        .and_then(|spec| spec.tolerations.as_deref())
        .unwrap_or_default();
    let tolerations: Vec<Toleration> = own.iter().cloned().chain(daemon_tolerations()).collect();
    selector
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value))
        && object_queries::find_untolerated_taint(node, &tolerations, effects).is_none()
}

fn daemon_tolerations() -> impl Iterator<Item = Toleration> {
    DAEMON_SET_TOLERATED_TAINTS
        .iter()
        .map(|(key, effect)| Toleration {
            key: Some((*key).into()),
            operator: Some("Exists".into()),
            effect: Some((*effect).into()),
            ..Toleration::default()
        })
}

fn daemon_pod(set: &DaemonSet, uid: &str, node: &str) -> Value {
    let name = set.name_any();
    let owner = ControllerOwner {
        kind: "DaemonSet",
        name: &name,
        uid,
    };
    let template = set.spec.as_ref().map(|spec| &spec.template);
    let mut pod =
        action::pod_from_template(&template, &set.namespace().unwrap_or_default(), &owner);
    pod["spec"]["nodeName"] = json!(node);
    let mut all = pod["spec"]["tolerations"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    all.extend(daemon_tolerations().map(|toleration| json!(toleration)));
    pod["spec"]["tolerations"] = Value::Array(all);
    pod
}

fn update_status(cache: &ControllerCache, set: &DaemonSet) -> Option<ControllerAction> {
    let uid = set.uid().unwrap_or_default();
    let nodes = cache.nodes.iter().map(|(_, node)| node);
    let desired = nodes
        .filter(|node| should_run_on_node(set, node, &["NoExecute", "NoSchedule"]))
        .count();
    let pods: Vec<_> = cache
        .pods_of_owner(&uid)
        .filter(|pod| !object_queries::is_deleting(pod))
        .collect();
    let ready = pods
        .iter()
        .filter(|pod| object_queries::is_ready(pod))
        .count();
    let wanted = json!({
        "desiredNumberScheduled": desired,
        "currentNumberScheduled": pods.len(),
        "updatedNumberScheduled": pods.len(),
        "numberReady": ready,
        "numberAvailable": ready,
        "numberUnavailable": desired.saturating_sub(ready),
        "numberMisscheduled": 0,
        "observedGeneration": set.metadata.generation.unwrap_or(0),
    });
    action::patch_status_if_changed(WritableKind::DaemonSet, &set.metadata, &set.status, &wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::controllers::WriteVerb;

    fn cache(taints: &Value, pod: Option<&Value>) -> ControllerCache {
        let mut cache = ControllerCache::default();
        let set = json!({ "metadata": { "name": "logs", "namespace": "n", "uid": "ds", "resourceVersion": "1" },
            "spec": { "selector": {}, "template": { "metadata": {}, "spec": { "containers": [] } } } });
        cache.observe_object::<DaemonSet>(serde_json::from_value(set).unwrap());
        let node = json!({ "metadata": { "name": "n1", "uid": "n1", "resourceVersion": "1" }, "spec": { "unschedulable": true, "taints": taints } });
        cache.observe_object::<Node>(serde_json::from_value(node).unwrap());
        if let Some(overlay) = pod {
            let mut pod = json!({ "metadata": { "name": "logs-1", "namespace": "n", "uid": "p", "resourceVersion": "1",
                "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logs", "uid": "ds", "controller": true }] },
                "spec": { "nodeName": "n1", "containers": [] }, "status": overlay["status"] });
            pod["metadata"]["deletionTimestamp"] = overlay["deleted"].clone();
            cache.observe_object::<Pod>(serde_json::from_value(pod).unwrap());
        }
        cache
    }

    fn done(taints: &Value, pod: Option<&Value>) -> &'static str {
        let verdict = DaemonSetController.reconcile(
            &cache(taints, pod),
            &ObjectKey::new("n", "logs/n1"),
            Timestamp::UNIX_EPOCH,
        );
        let verb = verdict.actions.first().map(|action| &action.verb);
        if let Some(WriteVerb::Create(pod)) = verb {
            assert_eq!(pod["spec"]["nodeName"], "n1");
        }
        match verb {
            None => "nothing",
            Some(WriteVerb::Create(_)) => "create",
            Some(WriteVerb::Delete { .. }) => "delete",
            Some(
                WriteVerb::Patch(_)
                | WriteVerb::PatchStatus(_)
                | WriteVerb::PatchConditions(_)
                | WriteVerb::Bind { .. },
            ) => {
                panic!("neither made nor deleted: {verb:?}")
            }
        }
    }

    #[test]
    fn a_node_has_its_pod_whatever_its_cordon_says_and_one_only() {
        let cordon = json!([{ "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule" }]);
        let foreign = json!([{ "key": "x", "effect": "NoSchedule" }]);
        let strict = json!([{ "key": "x", "effect": "NoExecute" }]);
        let running = json!({ "status": { "phase": "Running" } });
        let failed = json!({ "status": { "phase": "Failed" } });
        let deleting = json!({ "deleted": "2026-01-01T00:00:00Z" });
        let table = [
            (&cordon, None, "create"),
            (&cordon, Some(&running), "nothing"),
            (&cordon, Some(&failed), "delete"),
            (&cordon, Some(&deleting), "nothing"),
            (&foreign, None, "nothing"),
            (&foreign, Some(&running), "nothing"),
            (&strict, Some(&running), "delete"),
        ];
        for (taints, pod, expected) in table {
            assert_eq!(done(taints, pod), expected, "{taints} {pod:?}");
        }
    }
}

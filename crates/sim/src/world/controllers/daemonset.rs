//! DaemonSets: one pod on every node that takes it.
//!
//! Unlike the real controller it binds its pods itself instead of asking the scheduler by affinity;
//! where they end up is the same.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod, Toleration};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::action::{self, Action, Kind, Owner};
use super::{Controller, Verdict, words};
use crate::world::cache::{Cache, Change, Key};

/// Taints that every DaemonSet's pod tolerates, and their effects. Source: Kubernetes, "DaemonSet",
/// taints and tolerations.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// The controller. A key is a set's, for its status, or `SET/NODE`.
#[derive(Debug)]
pub struct DaemonSets;

impl Controller for DaemonSets {
    fn name(&self) -> &'static str {
        "daemonset"
    }

    fn touched(&mut self, cache: &Cache, change: &Change, _: Timestamp, keys: &mut BTreeSet<Key>) {
        match change {
            Change::DaemonSet(shift) => shift.states().for_each(|set| {
                let key = Key::of(&set.metadata);
                for (node, _) in cache.nodes.iter() {
                    keys.insert(on_node(&key, &node.name));
                }
                keys.insert(key);
            }),
            Change::Node(shift) if decides(shift.old.as_deref(), shift.new.as_deref()) => {
                let Some(node) = shift.states().next() else {
                    return;
                };
                for (key, _) in cache.daemon_sets.iter() {
                    keys.insert(on_node(key, &node.name_any()));
                    keys.insert(key.clone());
                }
            }
            Change::Pod(shift) => shift.states().for_each(|pod| {
                let owner =
                    words::controller(&pod.metadata).filter(|owner| owner.kind == "DaemonSet");
                if let Some(owner) = owner {
                    let key = Key::new(pod.namespace().unwrap_or_default(), &owner.name);
                    keys.extend(words::node_of(pod).map(|node| on_node(&key, node)));
                    keys.insert(key);
                }
            }),
            Change::Node(_)
            | Change::ReplicaSet(_)
            | Change::Deployment(_)
            | Change::Budget(_)
            | Change::Attachment(_)
            | Change::Claim(_)
            | Change::NodeLease(_)
            | Change::Power { .. } => {}
        }
    }

    fn reconcile(&mut self, cache: &Cache, key: &Key, _: Timestamp) -> Verdict {
        let (name, node) = match key.name.split_once('/') {
            Some((name, node)) => (name, Some(node)),
            None => (key.name.as_str(), None),
        };
        let set = cache.daemon_sets.get(&Key::new(&key.namespace, name));
        let Some(set) = set.filter(|set| set.metadata.deletion_timestamp.is_none()) else {
            return Verdict::default();
        };
        Verdict::act(match node {
            Some(node) => one_node(cache, set, node),
            None => status(cache, set).into_iter().collect(),
        })
    }
}

fn on_node(set: &Key, node: &str) -> Key {
    Key::new(&set.namespace, format!("{}/{node}", set.name))
}

/// Heartbeats change nodes all the time; only this decides who runs where.
fn decides(old: Option<&Node>, new: Option<&Node>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => {
            old.spec != new.spec || old.metadata.labels != new.metadata.labels
        }
        (_, _) => true,
    }
}

fn one_node(cache: &Cache, set: &DaemonSet, name: &str) -> Vec<Action> {
    let Some(node) = cache.nodes.get(&Key::cluster(name)) else {
        return Vec::new();
    };
    let uid = set.uid().unwrap_or_default();
    let there: Vec<&Arc<Pod>> = cache
        .pods_on(name)
        .filter(|pod| words::controller(&pod.metadata).is_some_and(|owner| owner.uid == uid))
        .collect();
    if !belongs(set, node, &["NoExecute"]) {
        let staying = there.into_iter().filter(|pod| !words::is_deleting(pod));
        return staying.map(|pod| Action::delete_pod(pod)).collect();
    }
    // A pod that is still ending keeps its successor out.
    if there.is_empty() && belongs(set, node, &["NoExecute", "NoSchedule"]) {
        return vec![Action::create_pod(pod(set, &uid, name))];
    }
    let ended = there
        .into_iter()
        .filter(|pod| words::is_finished(pod) && !words::is_deleting(pod));
    ended.map(|pod| Action::delete_pod(pod)).collect()
}

fn belongs(set: &DaemonSet, node: &Node, effects: &[&str]) -> bool {
    let template = set
        .spec
        .as_ref()
        .and_then(|spec| spec.template.spec.as_ref());
    let selector = template.and_then(|spec| spec.node_selector.as_ref());
    let labels = words::labels(&node.metadata);
    let own = template
        .and_then(|spec| spec.tolerations.as_deref())
        .unwrap_or_default();
    let tolerations: Vec<Toleration> = own.iter().cloned().chain(tolerations()).collect();
    selector
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value))
        && words::untolerated(node, &tolerations, effects).is_none()
}

fn tolerations() -> impl Iterator<Item = Toleration> {
    TOLERATED.iter().map(|(key, effect)| Toleration {
        key: Some((*key).into()),
        operator: Some("Exists".into()),
        effect: Some((*effect).into()),
        ..Toleration::default()
    })
}

fn pod(set: &DaemonSet, uid: &str, node: &str) -> Value {
    let name = set.name_any();
    let owner = Owner {
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
    all.extend(tolerations().map(|toleration| json!(toleration)));
    pod["spec"]["tolerations"] = Value::Array(all);
    pod
}

fn status(cache: &Cache, set: &DaemonSet) -> Option<Action> {
    let uid = set.uid().unwrap_or_default();
    let nodes = cache.nodes.iter().map(|(_, node)| node);
    let desired = nodes
        .filter(|node| belongs(set, node, &["NoExecute", "NoSchedule"]))
        .count();
    let pods: Vec<_> = cache
        .pods_of(&uid)
        .filter(|pod| !words::is_deleting(pod))
        .collect();
    let ready = pods.iter().filter(|pod| words::is_ready(pod)).count();
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
    action::status(Kind::DaemonSet, &set.metadata, &set.status, &wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::controllers::Verb;

    fn cache(taints: &Value, pod: Option<&Value>) -> Cache {
        let mut cache = Cache::default();
        let set = json!({ "metadata": { "name": "logs", "namespace": "n", "uid": "ds", "resourceVersion": "1" },
            "spec": { "selector": {}, "template": { "metadata": {}, "spec": { "containers": [] } } } });
        cache.seen::<DaemonSet>(serde_json::from_value(set).unwrap());
        let node = json!({ "metadata": { "name": "n1", "uid": "n1", "resourceVersion": "1" }, "spec": { "unschedulable": true, "taints": taints } });
        cache.seen::<Node>(serde_json::from_value(node).unwrap());
        if let Some(overlay) = pod {
            let mut pod = json!({ "metadata": { "name": "logs-1", "namespace": "n", "uid": "p", "resourceVersion": "1",
                "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logs", "uid": "ds", "controller": true }] },
                "spec": { "nodeName": "n1", "containers": [] }, "status": overlay["status"] });
            pod["metadata"]["deletionTimestamp"] = overlay["deleted"].clone();
            cache.seen::<Pod>(serde_json::from_value(pod).unwrap());
        }
        cache
    }

    fn done(taints: &Value, pod: Option<&Value>) -> &'static str {
        let verdict = DaemonSets.reconcile(
            &cache(taints, pod),
            &Key::new("n", "logs/n1"),
            Timestamp::UNIX_EPOCH,
        );
        let verb = verdict.actions.first().map(|action| &action.verb);
        if let Some(Verb::Create(pod)) = verb {
            assert_eq!(pod["spec"]["nodeName"], "n1");
        }
        match verb {
            None => "nothing",
            Some(Verb::Create(_)) => "create",
            Some(Verb::Delete { .. }) => "delete",
            Some(
                Verb::Patch(_)
                | Verb::PatchStatus(_)
                | Verb::PatchConditions(_)
                | Verb::Bind { .. },
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

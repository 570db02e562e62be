//! ReplicaSets: as many live pods as they ask for, no more, no less.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::json;

use super::action::{self, Action, Kind, Owner};
use super::{Controller, Verdict, words};
use crate::world::cache::{Cache, Change, Key};

/// The controller.
#[derive(Debug)]
pub struct ReplicaSets;

impl Controller for ReplicaSets {
    fn name(&self) -> &'static str {
        "replicaset"
    }

    fn touched(&mut self, _: &Cache, change: &Change, _: Timestamp, keys: &mut BTreeSet<Key>) {
        match change {
            Change::ReplicaSet(shift) => {
                keys.extend(shift.states().map(|set| Key::of(&set.metadata)));
            }
            Change::Pod(shift) => keys.extend(shift.states().filter_map(|pod| {
                let owner = words::controller(&pod.metadata)?;
                (owner.kind == "ReplicaSet")
                    .then(|| Key::new(pod.namespace().unwrap_or_default(), &owner.name))
            })),
            Change::Node(_)
            | Change::DaemonSet(_)
            | Change::Deployment(_)
            | Change::Budget(_)
            | Change::Attachment(_)
            | Change::Claim(_)
            | Change::NodeLease(_)
            | Change::Power { .. } => {}
        }
    }

    fn reconcile(&mut self, cache: &Cache, key: &Key, _: Timestamp) -> Verdict {
        let Some(set) = cache.replica_sets.get(key) else {
            return Verdict::default();
        };
        if set.metadata.deletion_timestamp.is_some() {
            return Verdict::default();
        }
        let uid = set.uid().unwrap_or_default();
        // A pod that is being deleted or has ended is replaced at once: it does not count any more.
        let live: Vec<&Arc<Pod>> = cache
            .pods_of(&uid)
            .filter(|pod| !words::is_deleting(pod) && !words::is_finished(pod))
            .collect();
        let mut actions = replicas(set, &uid, &live);
        actions.extend(status(set, &live));
        Verdict::act(actions)
    }
}

fn replicas(set: &ReplicaSet, uid: &str, live: &[&Arc<Pod>]) -> Vec<Action> {
    let spec = set.spec.as_ref();
    let wanted = spec.and_then(|spec| spec.replicas).unwrap_or(1);
    let wanted = usize::try_from(wanted).unwrap_or(0);
    let name = set.name_any();
    let owner = Owner {
        kind: "ReplicaSet",
        name: &name,
        uid,
    };
    if live.len() < wanted {
        let template = spec.and_then(|spec| spec.template.as_ref());
        let pod =
            action::pod_from_template(&template, &set.namespace().unwrap_or_default(), &owner);
        return vec![Action::create_pod(pod); wanted - live.len()];
    }
    // As the real one: pods without a node first, then those that are not ready, then the youngest.
    let mut surplus = live.to_vec();
    surplus.sort_by_key(|pod| {
        let born = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (
            words::node_of(pod).is_some(),
            words::is_ready(pod),
            std::cmp::Reverse(born),
            pod.name_any(),
        )
    });
    surplus.truncate(live.len() - wanted);
    surplus
        .into_iter()
        .map(|pod| Action::delete_pod(pod))
        .collect()
}

fn status(set: &ReplicaSet, live: &[&Arc<Pod>]) -> Option<Action> {
    let ready = live.iter().filter(|pod| words::is_ready(pod)).count();
    let wanted = json!({
        "replicas": live.len(),
        "fullyLabeledReplicas": live.len(),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "observedGeneration": set.metadata.generation.unwrap_or(0),
    });
    action::status(Kind::ReplicaSet, &set.metadata, &set.status, &wanted)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::world::controllers::Verb;

    fn cache(replicas: u32, pods: &[Value]) -> Cache {
        let mut cache = Cache::default();
        let set = json!({
            "metadata": { "name": "web", "namespace": "n", "uid": "rs", "resourceVersion": "1", "generation": 1 },
            "spec": { "replicas": replicas, "selector": {}, "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [] } } },
        });
        cache.seen::<ReplicaSet>(serde_json::from_value(set).unwrap());
        for (number, pod) in pods.iter().enumerate() {
            let mut pod = pod.clone();
            pod["metadata"]["name"] = json!(format!("web-{number}"));
            pod["metadata"]["namespace"] = json!("n");
            pod["metadata"]["uid"] = json!(format!("u{number}"));
            pod["metadata"]["resourceVersion"] = json!("2");
            pod["metadata"]["ownerReferences"] = json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": true }]);
            cache.seen::<Pod>(serde_json::from_value(pod).unwrap());
        }
        cache
    }

    fn running() -> Value {
        json!({ "spec": { "containers": [], "nodeName": "n1" }, "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] } })
    }

    fn counted(replicas: u32, pods: &[Value]) -> (usize, Vec<String>) {
        let cache = cache(replicas, pods);
        let verdict = ReplicaSets.reconcile(&cache, &Key::new("n", "web"), Timestamp::UNIX_EPOCH);
        let made = verdict
            .actions
            .iter()
            .filter(|a| matches!(a.verb, Verb::Create(_)))
            .count();
        let deleted = verdict
            .actions
            .iter()
            .filter(|a| matches!(a.verb, Verb::Delete { .. }));
        (made, deleted.map(|a| a.key.name.clone()).collect())
    }

    #[test]
    fn a_pod_that_is_being_deleted_or_has_ended_is_replaced_at_once() {
        let mut deleting = running();
        deleting["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let failed = json!({ "spec": { "containers": [] }, "status": { "phase": "Failed" } });
        assert_eq!(counted(3, &[running(), deleting, failed]), (2, Vec::new()));
    }

    #[test]
    fn surplus_pods_go_those_first_that_do_not_serve() {
        let pending = json!({ "spec": { "containers": [] }, "status": { "phase": "Pending" } });
        assert_eq!(
            counted(1, &[running(), pending]),
            (0, vec!["web-1".to_owned()])
        );
    }

    #[test]
    fn a_set_in_order_is_left_alone() {
        let mut cache = cache(1, &[running()]);
        let key = Key::new("n", "web");
        let verdict = ReplicaSets.reconcile(&cache, &key, Timestamp::UNIX_EPOCH);
        let [
            Action {
                verb: Verb::PatchStatus(patch),
                ..
            },
        ] = &verdict.actions[..]
        else {
            panic!("only its status is told: {verdict:?}");
        };
        let mut set = serde_json::to_value(&**cache.replica_sets.get(&key).unwrap()).unwrap();
        set["status"] = patch["status"].clone();
        set["metadata"]["resourceVersion"] = json!("3");
        cache.seen::<ReplicaSet>(serde_json::from_value(set).unwrap());
        let verdict = ReplicaSets.reconcile(&cache, &key, Timestamp::UNIX_EPOCH);
        assert_eq!(verdict.actions, Vec::new());
    }
}

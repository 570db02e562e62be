//! ReplicaSets: as many live pods as the ReplicaSet asks for.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::json;

use super::action::{self, ControllerAction, ControllerOwner, WritableKind};
use super::{ReconcileOutcome, SimulatedController, object_queries};
use crate::world::cache::{CacheChange, ControllerCache, ObjectKey};

#[derive(Debug)]
pub struct ReplicaSetController;

impl SimulatedController for ReplicaSetController {
    fn name(&self) -> &'static str {
        "replicaset"
    }

    fn enqueue_keys(
        &mut self,
        _: &ControllerCache,
        change: &CacheChange,
        _: Timestamp,
        keys: &mut BTreeSet<ObjectKey>,
    ) {
        match change {
            CacheChange::ReplicaSet(shift) => {
                keys.extend(
                    shift
                        .known_states()
                        .map(|set| ObjectKey::of_metadata(&set.metadata)),
                );
            }
            CacheChange::Pod(shift) => keys.extend(shift.known_states().filter_map(|pod| {
                let owner = object_queries::controller_owner(&pod.metadata)?;
                (owner.kind == "ReplicaSet")
                    .then(|| ObjectKey::new(pod.namespace().unwrap_or_default(), &owner.name))
            })),
            CacheChange::Node(_)
            | CacheChange::DaemonSet(_)
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
        let Some(set) = cache.replica_sets.get(key) else {
            return ReconcileOutcome::default();
        };
        if set.metadata.deletion_timestamp.is_some() {
            return ReconcileOutcome::default();
        }
        let uid = set.uid().unwrap_or_default();
        // A pod that is being deleted or has ended does not count and is replaced at once.
        let live: Vec<&Arc<Pod>> = cache
            .pods_of_owner(&uid)
            .filter(|pod| !object_queries::is_deleting(pod) && !object_queries::is_finished(pod))
            .collect();
        let mut actions = reconcile_replicas(set, &uid, &live);
        actions.extend(update_status(set, &live));
        ReconcileOutcome::with_actions(actions)
    }
}

fn reconcile_replicas(set: &ReplicaSet, uid: &str, live: &[&Arc<Pod>]) -> Vec<ControllerAction> {
    let spec = set.spec.as_ref();
    let wanted = spec.and_then(|spec| spec.replicas).unwrap_or(1);
    let wanted = usize::try_from(wanted).unwrap_or(0);
    let name = set.name_any();
    let owner = ControllerOwner {
        kind: "ReplicaSet",
        name: &name,
        uid,
    };
    if live.len() < wanted {
        let template = spec.and_then(|spec| spec.template.as_ref());
        let pod =
            action::pod_from_template(&template, &set.namespace().unwrap_or_default(), &owner);
        return vec![ControllerAction::create_pod(pod); wanted - live.len()];
    }
    // Order as in the real controller: pods without a node first, then those that are not ready,
    // then the youngest.
    let mut surplus = live.to_vec();
    surplus.sort_by_key(|pod| {
        let born = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (
            object_queries::node_of_pod(pod).is_some(),
            object_queries::is_ready(pod),
            std::cmp::Reverse(born),
            pod.name_any(),
        )
    });
    surplus.truncate(live.len() - wanted);
    surplus
        .into_iter()
        .map(|pod| ControllerAction::delete_pod(pod))
        .collect()
}

fn update_status(set: &ReplicaSet, live: &[&Arc<Pod>]) -> Option<ControllerAction> {
    let ready = live
        .iter()
        .filter(|pod| object_queries::is_ready(pod))
        .count();
    let wanted = json!({
        "replicas": live.len(),
        "fullyLabeledReplicas": live.len(),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "observedGeneration": set.metadata.generation.unwrap_or(0),
    });
    action::patch_status_if_changed(
        WritableKind::ReplicaSet,
        &set.metadata,
        &set.status,
        &wanted,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::world::controllers::WriteVerb;

    fn cache(replicas: u32, pods: &[Value]) -> ControllerCache {
        let mut cache = ControllerCache::default();
        let set = json!({
            "metadata": { "name": "web", "namespace": "n", "uid": "rs", "resourceVersion": "1", "generation": 1 },
            "spec": { "replicas": replicas, "selector": {}, "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [] } } },
        });
        cache.observe_object::<ReplicaSet>(serde_json::from_value(set).unwrap());
        for (number, pod) in pods.iter().enumerate() {
            let mut pod = pod.clone();
            pod["metadata"]["name"] = json!(format!("web-{number}"));
            pod["metadata"]["namespace"] = json!("n");
            pod["metadata"]["uid"] = json!(format!("u{number}"));
            pod["metadata"]["resourceVersion"] = json!("2");
            pod["metadata"]["ownerReferences"] = json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": true }]);
            cache.observe_object::<Pod>(serde_json::from_value(pod).unwrap());
        }
        cache
    }

    fn running() -> Value {
        json!({ "spec": { "containers": [], "nodeName": "n1" }, "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] } })
    }

    fn counted(replicas: u32, pods: &[Value]) -> (usize, Vec<String>) {
        let cache = cache(replicas, pods);
        let verdict = ReplicaSetController.reconcile(
            &cache,
            &ObjectKey::new("n", "web"),
            Timestamp::UNIX_EPOCH,
        );
        let made = verdict
            .actions
            .iter()
            .filter(|a| matches!(a.verb, WriteVerb::Create(_)))
            .count();
        let deleted = verdict
            .actions
            .iter()
            .filter(|a| matches!(a.verb, WriteVerb::Delete { .. }));
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
        let key = ObjectKey::new("n", "web");
        let verdict = ReplicaSetController.reconcile(&cache, &key, Timestamp::UNIX_EPOCH);
        let [
            ControllerAction {
                verb: WriteVerb::PatchStatus(patch),
                ..
            },
        ] = &verdict.actions[..]
        else {
            panic!("only its status is told: {verdict:?}");
        };
        let mut set = serde_json::to_value(&**cache.replica_sets.get(&key).unwrap()).unwrap();
        set["status"] = patch["status"].clone();
        set["metadata"]["resourceVersion"] = json!("3");
        cache.observe_object::<ReplicaSet>(serde_json::from_value(set).unwrap());
        let verdict = ReplicaSetController.reconcile(&cache, &key, Timestamp::UNIX_EPOCH);
        assert_eq!(verdict.actions, Vec::new());
    }
}

//! Deletes objects whose owner is gone, and the pods of nodes that no longer exist.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::ResourceExt as _;

use super::action::{ControllerAction, WritableKind, WriteVerb};
use super::{ReconcileOutcome, SimulatedController, object_queries};
use crate::world::cache::{CacheChange, ControllerCache, ObjectKey};

/// Minimum age of an object that is deleted for a missing owner: the owner may not have reached the
/// cache yet, because each kind has its own watch. (The real collector asks the API server
/// instead.)
const ORPHAN_MIN_AGE: Duration = Duration::from_secs(5);
/// A Node must be gone for this long before its pods are deleted (the pod collector's quarantine).
const LOST_NODE_QUARANTINE: Duration = Duration::from_secs(40);

/// Keys in this namespace are owners' UIDs; it is no valid name of a namespace.
const OWNER_NAMESPACE: &str = "(owner)";

/// Keys are UIDs of owners, or nodes.
#[derive(Debug, Default)]
pub struct GarbageCollector {
    /// Nodes that have pods but do not exist, and since when.
    lost_nodes: BTreeMap<String, Timestamp>,
}

impl SimulatedController for GarbageCollector {
    fn name(&self) -> &'static str {
        "garbage"
    }

    fn enqueue_keys(
        &mut self,
        cache: &ControllerCache,
        change: &CacheChange,
        _: Timestamp,
        keys: &mut BTreeSet<ObjectKey>,
    ) {
        match change {
            CacheChange::Pod(shift) => {
                let Some(pod) = &shift.new else { return };
                keys.extend(owner_key(&pod.metadata).filter(|_| shift.old.is_none()));
                let lost = object_queries::node_of_pod(pod)
                    .filter(|node| cache.nodes.get(&ObjectKey::cluster_scoped(*node)).is_none());
                keys.extend(lost.map(ObjectKey::cluster_scoped));
            }
            CacheChange::ReplicaSet(shift) => {
                enqueue_owner(shift.new.as_ref().map(|one| &one.metadata), keys);
                enqueue_deleted_owner(
                    shift.old.as_ref().map(|one| &one.metadata),
                    shift.new.is_none(),
                    keys,
                );
            }
            CacheChange::DaemonSet(shift) => {
                enqueue_deleted_owner(
                    shift.old.as_ref().map(|one| &one.metadata),
                    shift.new.is_none(),
                    keys,
                );
            }
            CacheChange::Deployment(shift) => {
                enqueue_deleted_owner(
                    shift.old.as_ref().map(|one| &one.metadata),
                    shift.new.is_none(),
                    keys,
                );
            }
            CacheChange::Node(shift) => {
                let lost = shift.old.as_ref().filter(|_| shift.new.is_none());
                enqueue_deleted_owner(lost.map(|node| &node.metadata), true, keys);
                keys.extend(lost.map(|node| ObjectKey::of_metadata(&node.metadata)));
            }
            CacheChange::Budget(_)
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
        now: Timestamp,
    ) -> ReconcileOutcome {
        if key.namespace == OWNER_NAMESPACE {
            collect_orphans(cache, &key.name, now)
        } else {
            self.collect_pods_of_lost_node(cache, key, now)
        }
    }
}

impl GarbageCollector {
    fn collect_pods_of_lost_node(
        &mut self,
        cache: &ControllerCache,
        node: &ObjectKey,
        now: Timestamp,
    ) -> ReconcileOutcome {
        let pods: Vec<_> = cache.pods_on_node(&node.name).collect();
        if cache.nodes.get(node).is_some() || pods.is_empty() {
            self.lost_nodes.remove(&node.name);
            return ReconcileOutcome::default();
        }
        let since = *self.lost_nodes.entry(node.name.clone()).or_insert(now);
        match time_left(since, LOST_NODE_QUARANTINE, now) {
            None => ReconcileOutcome::with_actions(
                pods.into_iter()
                    .map(|pod| ControllerAction::force_delete_pod(pod))
                    .collect(),
            ),
            Some(left) => ReconcileOutcome {
                actions: Vec::new(),
                requeue_after: Some(left),
            },
        }
    }
}

fn enqueue_owner(meta: Option<&ObjectMeta>, keys: &mut BTreeSet<ObjectKey>) {
    keys.extend(meta.and_then(owner_key));
}

fn enqueue_deleted_owner(meta: Option<&ObjectMeta>, is_gone: bool, keys: &mut BTreeSet<ObjectKey>) {
    let uid = meta.filter(|_| is_gone).and_then(|meta| meta.uid.clone());
    keys.extend(uid.map(|uid| ObjectKey::new(OWNER_NAMESPACE, uid)));
}

fn owner_key(meta: &ObjectMeta) -> Option<ObjectKey> {
    Some(ObjectKey::new(
        OWNER_NAMESPACE,
        &object_queries::controller_owner(meta)?.uid,
    ))
}

fn collect_orphans(cache: &ControllerCache, owner: &str, now: Timestamp) -> ReconcileOutcome {
    let pods = cache
        .pods_of_owner(owner)
        .map(|pod| (WritableKind::Pod, &pod.metadata));
    let sets = cache
        .replica_sets
        .iter()
        .map(|(_, set)| (WritableKind::ReplicaSet, &set.metadata))
        .filter(|(_, meta)| {
            object_queries::controller_owner(meta).is_some_and(|one| one.uid == owner)
        });
    let mut verdict = ReconcileOutcome::default();
    for (kind, meta) in pods.chain(sets) {
        let lives = object_queries::controller_owner(meta)
            .is_some_and(|one| owner_exists(cache, meta, one));
        if lives || meta.deletion_timestamp.is_some() {
            continue;
        }
        let born = meta
            .creation_timestamp
            .as_ref()
            .map_or(Timestamp::UNIX_EPOCH, |time| time.0);
        if let Some(left) = time_left(born, ORPHAN_MIN_AGE, now) {
            verdict.requeue_after = Some(verdict.requeue_after.map_or(left, |one| one.min(left)));
        } else {
            let uid = meta.uid.clone().unwrap_or_default();
            let verb = WriteVerb::Delete { uid, grace: None };
            verdict.actions.push(ControllerAction::new(
                kind,
                ObjectKey::of_metadata(meta),
                verb,
            ));
        }
    }
    verdict
}

/// Whether the owner exists. An owner of an unknown kind is assumed to exist.
fn owner_exists(cache: &ControllerCache, dependent: &ObjectMeta, owner: &OwnerReference) -> bool {
    let key = ObjectKey::new(dependent.namespace.clone().unwrap_or_default(), &owner.name);
    let uid = match owner.kind.as_str() {
        "ReplicaSet" => cache.replica_sets.get(&key).and_then(|one| one.uid()),
        "DaemonSet" => cache.daemon_sets.get(&key).and_then(|one| one.uid()),
        "Deployment" => cache.deployments.get(&key).and_then(|one| one.uid()),
        "Node" => cache
            .nodes
            .get(&ObjectKey::cluster_scoped(&owner.name))
            .and_then(|one| one.uid()),
        _ => return true,
    };
    uid.as_ref() == Some(&owner.uid)
}

/// The rest of a time span; `None` when it is over.
fn time_left(since: Timestamp, span: Duration, now: Timestamp) -> Option<Duration> {
    let left = Duration::try_from((since + span).duration_since(now)).ok()?;
    (!left.is_zero()).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn cache(kind: &str) -> ControllerCache {
        let mut cache = ControllerCache::default();
        let pod = json!({ "metadata": { "name": "a", "namespace": "n", "uid": "a", "resourceVersion": "1", "creationTimestamp": at(0),
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "o", "controller": true }] },
            "spec": { "nodeName": "n1", "containers": [] } });
        cache.observe_object::<Pod>(serde_json::from_value(pod).unwrap());
        cache
    }

    #[test]
    fn an_orphan_is_deleted_once_its_owner_cannot_be_new_any_more() {
        let owner = ObjectKey::new(OWNER_NAMESPACE, "o");
        for (kind, deleted) in [
            ("ReplicaSet", true),
            ("DaemonSet", true),
            ("StatefulSet", false),
        ] {
            let cache = cache(kind);
            assert_eq!(
                GarbageCollector::default()
                    .reconcile(&cache, &owner, at(1))
                    .actions,
                Vec::new()
            );
            let actions = GarbageCollector::default()
                .reconcile(&cache, &owner, at(5))
                .actions;
            assert_eq!(actions.len(), usize::from(deleted), "{kind}");
        }
    }

    #[test]
    fn a_dependent_of_an_owner_that_lives_stays() {
        let mut cache = cache("ReplicaSet");
        let set = json!({ "metadata": { "name": "web", "namespace": "n", "uid": "o", "resourceVersion": "1" }, "spec": { "selector": {} } });
        cache.observe_object::<k8s_openapi::api::apps::v1::ReplicaSet>(
            serde_json::from_value(set).unwrap(),
        );
        assert_eq!(
            GarbageCollector::default()
                .reconcile(&cache, &ObjectKey::new(OWNER_NAMESPACE, "o"), at(60))
                .actions,
            Vec::new()
        );
    }

    #[test]
    fn the_pods_of_a_node_that_is_gone_go_after_its_quarantine() {
        let cache = cache("ReplicaSet");
        let mut garbage = GarbageCollector::default();
        let node = ObjectKey::cluster_scoped("n1");
        assert_eq!(
            garbage.reconcile(&cache, &node, at(100)).requeue_after,
            Some(LOST_NODE_QUARANTINE)
        );
        let actions = garbage.reconcile(&cache, &node, at(140)).actions;
        assert!(matches!(
            actions[..],
            [ControllerAction {
                verb: WriteVerb::Delete { grace: Some(0), .. },
                ..
            }]
        ));
    }
}

//! Deletes what lost its owner, and the pods of nodes that are no more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::ResourceExt as _;

use super::action::{Action, Kind, Verb};
use super::{Controller, Verdict, words};
use crate::world::cache::{Cache, Change, Key};

/// An object younger than this is given the benefit of the doubt: its owner may be newer to us than
/// itself, for their watches are not one. (The real collector asks the API server instead.)
const BENEFIT_OF_DOUBT: Duration = Duration::from_secs(5);
/// How long a Node must be gone before its pods are (the pod collector's quarantine).
const QUARANTINE: Duration = Duration::from_secs(40);

/// Keys in this namespace, which no namespace can have as a name, are owners' UIDs.
const OWNER: &str = "(owner)";

/// The controller; a key is an owner's UID or a node.
#[derive(Debug, Default)]
pub struct Garbage {
    /// Nodes that have pods and are not there, since when.
    lost_nodes: BTreeMap<String, Timestamp>,
}

impl Controller for Garbage {
    fn name(&self) -> &'static str {
        "garbage"
    }

    fn touched(&mut self, cache: &Cache, change: &Change, _: Timestamp, keys: &mut BTreeSet<Key>) {
        match change {
            Change::Pod(shift) => {
                let Some(pod) = &shift.new else { return };
                keys.extend(owner_key(&pod.metadata).filter(|_| shift.old.is_none()));
                let lost = words::node_of(pod)
                    .filter(|node| cache.nodes.get(&Key::cluster(*node)).is_none());
                keys.extend(lost.map(Key::cluster));
            }
            Change::ReplicaSet(shift) => {
                owned(shift.new.as_ref().map(|one| &one.metadata), keys);
                gone(
                    shift.old.as_ref().map(|one| &one.metadata),
                    shift.new.is_none(),
                    keys,
                );
            }
            Change::DaemonSet(shift) => {
                gone(
                    shift.old.as_ref().map(|one| &one.metadata),
                    shift.new.is_none(),
                    keys,
                );
            }
            Change::Deployment(shift) => {
                gone(
                    shift.old.as_ref().map(|one| &one.metadata),
                    shift.new.is_none(),
                    keys,
                );
            }
            Change::Node(shift) => {
                let lost = shift.old.as_ref().filter(|_| shift.new.is_none());
                gone(lost.map(|node| &node.metadata), true, keys);
                keys.extend(lost.map(|node| Key::of(&node.metadata)));
            }
            Change::Budget(_)
            | Change::Attachment(_)
            | Change::Claim(_)
            | Change::NodeLease(_)
            | Change::Power { .. } => {}
        }
    }

    fn reconcile(&mut self, cache: &Cache, key: &Key, now: Timestamp) -> Verdict {
        if key.namespace == OWNER {
            orphans(cache, &key.name, now)
        } else {
            self.stranded(cache, key, now)
        }
    }
}

impl Garbage {
    fn stranded(&mut self, cache: &Cache, node: &Key, now: Timestamp) -> Verdict {
        let pods: Vec<_> = cache.pods_on(&node.name).collect();
        if cache.nodes.get(node).is_some() || pods.is_empty() {
            self.lost_nodes.remove(&node.name);
            return Verdict::default();
        }
        let since = *self.lost_nodes.entry(node.name.clone()).or_insert(now);
        match left(since, QUARANTINE, now) {
            None => Verdict::act(
                pods.into_iter()
                    .map(|pod| Action::force_delete_pod(pod))
                    .collect(),
            ),
            Some(left) => Verdict {
                actions: Vec::new(),
                again_in: Some(left),
            },
        }
    }
}

fn owned(meta: Option<&ObjectMeta>, keys: &mut BTreeSet<Key>) {
    keys.extend(meta.and_then(owner_key));
}

fn gone(meta: Option<&ObjectMeta>, is_gone: bool, keys: &mut BTreeSet<Key>) {
    let uid = meta.filter(|_| is_gone).and_then(|meta| meta.uid.clone());
    keys.extend(uid.map(|uid| Key::new(OWNER, uid)));
}

fn owner_key(meta: &ObjectMeta) -> Option<Key> {
    Some(Key::new(OWNER, &words::controller(meta)?.uid))
}

fn orphans(cache: &Cache, owner: &str, now: Timestamp) -> Verdict {
    let pods = cache.pods_of(owner).map(|pod| (Kind::Pod, &pod.metadata));
    let sets = cache
        .replica_sets
        .iter()
        .map(|(_, set)| (Kind::ReplicaSet, &set.metadata))
        .filter(|(_, meta)| words::controller(meta).is_some_and(|one| one.uid == owner));
    let mut verdict = Verdict::default();
    for (kind, meta) in pods.chain(sets) {
        let lives = words::controller(meta).is_some_and(|one| is_there(cache, meta, one));
        if lives || meta.deletion_timestamp.is_some() {
            continue;
        }
        let born = meta
            .creation_timestamp
            .as_ref()
            .map_or(Timestamp::UNIX_EPOCH, |time| time.0);
        if let Some(left) = left(born, BENEFIT_OF_DOUBT, now) {
            verdict.again_in = Some(verdict.again_in.map_or(left, |one| one.min(left)));
        } else {
            let uid = meta.uid.clone().unwrap_or_default();
            let verb = Verb::Delete { uid, grace: None };
            verdict.actions.push(Action::new(kind, Key::of(meta), verb));
        }
    }
    verdict
}

/// Whether the owner is there. One of a kind that we do not know is taken to be.
fn is_there(cache: &Cache, dependent: &ObjectMeta, owner: &OwnerReference) -> bool {
    let key = Key::new(dependent.namespace.clone().unwrap_or_default(), &owner.name);
    let uid = match owner.kind.as_str() {
        "ReplicaSet" => cache.replica_sets.get(&key).and_then(|one| one.uid()),
        "DaemonSet" => cache.daemon_sets.get(&key).and_then(|one| one.uid()),
        "Deployment" => cache.deployments.get(&key).and_then(|one| one.uid()),
        "Node" => cache
            .nodes
            .get(&Key::cluster(&owner.name))
            .and_then(|one| one.uid()),
        _ => return true,
    };
    uid.as_ref() == Some(&owner.uid)
}

/// What is left of a span; `None` when it is over.
fn left(since: Timestamp, span: Duration, now: Timestamp) -> Option<Duration> {
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

    fn cache(kind: &str) -> Cache {
        let mut cache = Cache::default();
        let pod = json!({ "metadata": { "name": "a", "namespace": "n", "uid": "a", "resourceVersion": "1", "creationTimestamp": at(0),
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "o", "controller": true }] },
            "spec": { "nodeName": "n1", "containers": [] } });
        cache.seen::<Pod>(serde_json::from_value(pod).unwrap());
        cache
    }

    #[test]
    fn an_orphan_is_deleted_once_its_owner_cannot_be_new_any_more() {
        let owner = Key::new(OWNER, "o");
        for (kind, deleted) in [
            ("ReplicaSet", true),
            ("DaemonSet", true),
            ("StatefulSet", false),
        ] {
            let cache = cache(kind);
            assert_eq!(
                Garbage::default().reconcile(&cache, &owner, at(1)).actions,
                Vec::new()
            );
            let actions = Garbage::default().reconcile(&cache, &owner, at(5)).actions;
            assert_eq!(actions.len(), usize::from(deleted), "{kind}");
        }
    }

    #[test]
    fn a_dependent_of_an_owner_that_lives_stays() {
        let mut cache = cache("ReplicaSet");
        let set = json!({ "metadata": { "name": "web", "namespace": "n", "uid": "o", "resourceVersion": "1" }, "spec": { "selector": {} } });
        cache.seen::<k8s_openapi::api::apps::v1::ReplicaSet>(serde_json::from_value(set).unwrap());
        assert_eq!(
            Garbage::default()
                .reconcile(&cache, &Key::new(OWNER, "o"), at(60))
                .actions,
            Vec::new()
        );
    }

    #[test]
    fn the_pods_of_a_node_that_is_gone_go_after_its_quarantine() {
        let cache = cache("ReplicaSet");
        let mut garbage = Garbage::default();
        let node = Key::cluster("n1");
        assert_eq!(
            garbage.reconcile(&cache, &node, at(100)).again_in,
            Some(QUARANTINE)
        );
        let actions = garbage.reconcile(&cache, &node, at(140)).actions;
        assert!(matches!(
            actions[..],
            [Action {
                verb: Verb::Delete { grace: Some(0), .. },
                ..
            }]
        ));
    }
}

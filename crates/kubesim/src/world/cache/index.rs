//! Indices: pods by owner, by node, by label and unbound; nodes by load.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;

use super::store::{ObjectChange, ObjectKey};
use crate::world::controllers::object_queries;

#[derive(Debug, Default)]
pub struct PodIndex {
    owners: BTreeMap<String, BTreeSet<ObjectKey>>,
    nodes: BTreeMap<String, BTreeSet<ObjectKey>>,
    unbound: BTreeSet<ObjectKey>,
    /// By namespace, label and value.
    labels: BTreeMap<[String; 3], BTreeSet<ObjectKey>>,
    /// Existing nodes by their number of pods.
    load: BTreeSet<(usize, String)>,
    known_nodes: BTreeSet<String>,
}

impl PodIndex {
    /// The pods whose controller has this UID.
    pub fn keys_of_owner(&self, uid: &str) -> impl Iterator<Item = &ObjectKey> {
        self.owners.get(uid).into_iter().flatten()
    }

    pub fn keys_on_node(&self, node: &str) -> impl Iterator<Item = &ObjectKey> {
        self.nodes.get(node).into_iter().flatten()
    }

    pub fn keys_with_label<'a>(
        &'a self,
        namespace: &str,
        label: &str,
        value: &str,
    ) -> impl Iterator<Item = &'a ObjectKey> + use<'a> {
        let entry = [namespace, label, value].map(str::to_owned);
        self.labels.get(&entry).into_iter().flatten()
    }

    pub fn unbound_keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.unbound.iter()
    }

    pub fn count_on_node(&self, node: &str) -> usize {
        self.nodes.get(node).map_or(0, BTreeSet::len)
    }

    /// The existing nodes; those with the fewest pods come first, then by name.
    pub fn nodes_by_load(&self) -> impl Iterator<Item = &(usize, String)> {
        self.load.iter()
    }

    pub(super) fn update_pod(&mut self, shift: &ObjectChange<Pod>) {
        if let Some(old) = &shift.old {
            self.remove_pod(old);
        }
        if let Some(new) = &shift.new {
            self.insert_pod(new);
        }
    }

    pub(super) fn update_node(&mut self, shift: &ObjectChange<Node>) {
        let Some(node) = shift.known_states().next() else {
            return;
        };
        let name = node.name_any();
        let entry = (self.count_on_node(&name), name.clone());
        if shift.new.is_some() {
            self.load.insert(entry);
            self.known_nodes.insert(name);
        } else {
            self.load.remove(&entry);
            self.known_nodes.remove(&name);
        }
    }

    fn insert_pod(&mut self, pod: &Pod) {
        let key = ObjectKey::of_metadata(&pod.metadata);
        for entry in label_entries(pod) {
            self.labels.entry(entry).or_default().insert(key.clone());
        }
        if let Some(owner) = object_queries::controller_owner(&pod.metadata) {
            self.owners
                .entry(owner.uid.clone())
                .or_default()
                .insert(key.clone());
        }
        match object_queries::node_of_pod(pod) {
            None => {
                self.unbound.insert(key);
            }
            Some(node) => self.update_node_pods(node, |keys| {
                keys.insert(key);
            }),
        }
    }

    fn remove_pod(&mut self, pod: &Pod) {
        let key = ObjectKey::of_metadata(&pod.metadata);
        for entry in label_entries(pod) {
            remove_indexed_key(&mut self.labels, &entry, &key);
        }
        if let Some(owner) = object_queries::controller_owner(&pod.metadata) {
            remove_indexed_key(&mut self.owners, &owner.uid, &key);
        }
        self.unbound.remove(&key);
        if let Some(node) = object_queries::node_of_pod(pod) {
            self.update_node_pods(node, |keys| {
                keys.remove(&key);
            });
        }
    }

    /// Changes a node's set of pods and updates the order by load.
    fn update_node_pods(&mut self, node: &str, change: impl FnOnce(&mut BTreeSet<ObjectKey>)) {
        let before = self.count_on_node(node);
        let keys = self.nodes.entry(node.to_owned()).or_default();
        change(keys);
        let after = keys.len();
        if after == 0 {
            self.nodes.remove(node);
        }
        if before != after && self.known_nodes.contains(node) {
            self.load.remove(&(before, node.to_owned()));
            self.load.insert((after, node.to_owned()));
        }
    }
}

fn label_entries(pod: &Pod) -> impl Iterator<Item = [String; 3]> {
    let namespace = pod.namespace().unwrap_or_default();
    let labels = object_queries::object_labels(&pod.metadata);
    labels
        .iter()
        .map(move |(label, value)| [namespace.clone(), label.clone(), value.clone()])
}

fn remove_indexed_key<E: Ord>(
    index: &mut BTreeMap<E, BTreeSet<ObjectKey>>,
    under: &E,
    key: &ObjectKey,
) {
    if let Some(keys) = index.get_mut(under) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(under);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::cache::ControllerCache;
    use serde_json::json;

    fn pod(name: &str, node: Option<&str>, version: u32) -> Pod {
        serde_json::from_value(json!({
            "metadata": { "namespace": "n", "name": name, "uid": name, "resourceVersion": version.to_string(),
                "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "owner", "controller": true }] },
            "spec": { "nodeName": node, "containers": [] },
        }))
        .unwrap()
    }

    fn node(name: &str) -> Node {
        serde_json::from_value(
            json!({ "metadata": { "name": name, "uid": name, "resourceVersion": "1" } }),
        )
        .unwrap()
    }

    #[test]
    fn nodes_come_in_the_order_of_their_load_whatever_is_seen_first() {
        let mut cache = ControllerCache::default();
        cache.observe_object(pod("a", Some("n1"), 1));
        cache.observe_object(node("n1"));
        cache.observe_object(node("n2"));
        let order = |cache: &ControllerCache| {
            cache
                .index
                .nodes_by_load()
                .map(|(load, name)| format!("{name}={load}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(order(&cache), ["n2=0", "n1=1"]);
        cache.observe_deleted(&pod("a", Some("n1"), 2));
        cache.observe_object(pod("b", Some("n2"), 3));
        assert_eq!(order(&cache), ["n1=0", "n2=1"]);
        cache.observe_deleted(&node("n1"));
        assert_eq!(order(&cache), ["n2=1"]);
    }

    #[test]
    fn a_pod_is_found_by_its_owner_and_its_node_until_it_is_gone() {
        let mut cache = ControllerCache::default();
        cache.observe_object(pod("a", None, 1));
        assert_eq!(cache.index.unbound_keys().count(), 1);
        cache.observe_object(pod("a", Some("n1"), 2));
        assert_eq!(cache.index.unbound_keys().count(), 0);
        assert_eq!(cache.pods_of_owner("owner").count(), 1);
        assert_eq!(cache.pods_on_node("n1").count(), 1);
        cache.assume_deleted::<Pod>(&ObjectKey::new("n", "a"), "a");
        assert_eq!(cache.pods_of_owner("owner").count(), 0);
        assert_eq!(cache.pods_on_node("n1").count(), 0);
    }
}

//! Pods by owner, by node and by need; nodes by load.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;

use super::store::{Key, Shift};
use crate::world::controllers::words;

/// The indices over the pods of a cache.
#[derive(Debug, Default)]
pub struct PodIndex {
    owners: BTreeMap<String, BTreeSet<Key>>,
    nodes: BTreeMap<String, BTreeSet<Key>>,
    unbound: BTreeSet<Key>,
    /// By namespace, label and value.
    labels: BTreeMap<[String; 3], BTreeSet<Key>>,
    /// Existing nodes by the number of pods on them.
    load: BTreeSet<(usize, String)>,
    known_nodes: BTreeSet<String>,
}

impl PodIndex {
    /// The pods whose controller has this UID.
    pub fn of_owner(&self, uid: &str) -> impl Iterator<Item = &Key> {
        self.owners.get(uid).into_iter().flatten()
    }

    /// The pods bound to this node.
    pub fn on_node(&self, node: &str) -> impl Iterator<Item = &Key> {
        self.nodes.get(node).into_iter().flatten()
    }

    /// The pods of a namespace with this label.
    pub fn labelled<'a>(
        &'a self,
        namespace: &str,
        label: &str,
        value: &str,
    ) -> impl Iterator<Item = &'a Key> + use<'a> {
        let entry = [namespace, label, value].map(str::to_owned);
        self.labels.get(&entry).into_iter().flatten()
    }

    /// The nodes that pods are bound to, existing or not.
    pub fn nodes_with_pods(&self) -> impl Iterator<Item = &String> {
        self.nodes.keys()
    }

    /// The pods without a node.
    pub fn unbound(&self) -> impl Iterator<Item = &Key> {
        self.unbound.iter()
    }

    /// How many pods are bound to this node.
    pub fn count(&self, node: &str) -> usize {
        self.nodes.get(node).map_or(0, BTreeSet::len)
    }

    /// The existing nodes, those with the fewest pods first, then by name.
    pub fn by_load(&self) -> impl Iterator<Item = &(usize, String)> {
        self.load.iter()
    }

    pub(super) fn pod(&mut self, shift: &Shift<Pod>) {
        if let Some(old) = &shift.old {
            self.remove(old);
        }
        if let Some(new) = &shift.new {
            self.insert(new);
        }
    }

    pub(super) fn node(&mut self, shift: &Shift<Node>) {
        let Some(node) = shift.states().next() else {
            return;
        };
        let name = node.name_any();
        let entry = (self.count(&name), name.clone());
        if shift.new.is_some() {
            self.load.insert(entry);
            self.known_nodes.insert(name);
        } else {
            self.load.remove(&entry);
            self.known_nodes.remove(&name);
        }
    }

    fn insert(&mut self, pod: &Pod) {
        let key = Key::of(&pod.metadata);
        for entry in label_entries(pod) {
            self.labels.entry(entry).or_default().insert(key.clone());
        }
        if let Some(owner) = words::controller(&pod.metadata) {
            self.owners
                .entry(owner.uid.clone())
                .or_default()
                .insert(key.clone());
        }
        match words::node_of(pod) {
            None => {
                self.unbound.insert(key);
            }
            Some(node) => self.reload(node, |keys| {
                keys.insert(key);
            }),
        }
    }

    fn remove(&mut self, pod: &Pod) {
        let key = Key::of(&pod.metadata);
        for entry in label_entries(pod) {
            forget(&mut self.labels, &entry, &key);
        }
        if let Some(owner) = words::controller(&pod.metadata) {
            forget(&mut self.owners, &owner.uid, &key);
        }
        self.unbound.remove(&key);
        if let Some(node) = words::node_of(pod) {
            self.reload(node, |keys| {
                keys.remove(&key);
            });
        }
    }

    /// Changes the set of a node's pods, and its place in the order of load with it.
    fn reload(&mut self, node: &str, change: impl FnOnce(&mut BTreeSet<Key>)) {
        let before = self.count(node);
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
    let labels = words::labels(&pod.metadata);
    labels
        .iter()
        .map(move |(label, value)| [namespace.clone(), label.clone(), value.clone()])
}

fn forget<E: Ord>(index: &mut BTreeMap<E, BTreeSet<Key>>, under: &E, key: &Key) {
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
    use crate::world::cache::Cache;
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
        let mut cache = Cache::default();
        cache.seen(pod("a", Some("n1"), 1));
        cache.seen(node("n1"));
        cache.seen(node("n2"));
        let order = |cache: &Cache| {
            cache
                .index
                .by_load()
                .map(|(load, name)| format!("{name}={load}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(order(&cache), ["n2=0", "n1=1"]);
        cache.deleted(&pod("a", Some("n1"), 2));
        cache.seen(pod("b", Some("n2"), 3));
        assert_eq!(order(&cache), ["n1=0", "n2=1"]);
        cache.deleted(&node("n1"));
        assert_eq!(order(&cache), ["n2=1"]);
    }

    #[test]
    fn a_pod_is_found_by_its_owner_and_its_node_until_it_is_gone() {
        let mut cache = Cache::default();
        cache.seen(pod("a", None, 1));
        assert_eq!(cache.index.unbound().count(), 1);
        cache.seen(pod("a", Some("n1"), 2));
        assert_eq!(cache.index.unbound().count(), 0);
        assert_eq!(cache.pods_of("owner").count(), 1);
        assert_eq!(cache.pods_on("n1").count(), 1);
        cache.known_gone::<Pod>(&Key::new("n", "a"), "a");
        assert_eq!(cache.pods_of("owner").count(), 0);
        assert_eq!(cache.pods_on("n1").count(), 0);
    }
}

//! The objects of one kind, as last seen or last written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

/// Namespace (empty where there is none) and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// The key of a namespaced object.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The key of a cluster-scoped object.
    pub fn cluster(name: impl Into<String>) -> Self {
        Self::new("", name)
    }

    /// The key of what has this metadata.
    pub fn of(meta: &ObjectMeta) -> Self {
        Self::new(
            meta.namespace.clone().unwrap_or_default(),
            meta.name.clone().unwrap_or_default(),
        )
    }
}

/// One object before and after something happened; never both absent.
#[derive(Debug, Clone)]
pub struct Shift<K> {
    /// As it was known; `None` if it was not.
    pub old: Option<Arc<K>>,
    /// As it is; `None` if it is gone.
    pub new: Option<Arc<K>>,
}

impl<K> Shift<K> {
    /// Both states that there are.
    pub fn states(&self) -> impl Iterator<Item = &Arc<K>> {
        self.old.iter().chain(self.new.iter())
    }
}

/// The objects of one kind. The answers to our own writes go in beside what the watch says, so that
/// a controller never acts twice because its watch lags behind; an older state never replaces a
/// newer one.
#[derive(Debug)]
pub struct Store<K> {
    objects: BTreeMap<Key, Arc<K>>,
    /// UIDs that we know to be gone although the watch may still show them.
    gone: BTreeSet<String>,
}

impl<K> Default for Store<K> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            gone: BTreeSet::new(),
        }
    }
}

impl<K: Resource> Store<K> {
    /// The object of this name.
    pub fn get(&self, key: &Key) -> Option<&Arc<K>> {
        self.objects.get(key)
    }

    /// All, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<K>)> {
        self.objects.iter()
    }

    /// Those of one namespace, by name.
    pub fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<K>> + 'a {
        self.objects
            .range(Key::new(namespace, "")..)
            .take_while(move |(key, _)| key.namespace == namespace)
            .map(|(_, object)| object)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Takes in a state of an object, unless a newer one is known.
    pub fn seen(&mut self, object: K) -> Option<Shift<K>> {
        let uid = object.meta().uid.as_deref().unwrap_or_default();
        if self.gone.contains(uid) {
            return None;
        }
        let key = Key::of(object.meta());
        if let Some(old) = self.objects.get(&key)
            && old.meta().uid == object.meta().uid
            && version(&**old) >= version(&object)
        {
            return None;
        }
        Some(self.assume(object))
    }

    /// Takes in a state of an object whatever is known.
    pub fn assume(&mut self, object: K) -> Shift<K> {
        let new = Arc::new(object);
        let old = self.objects.insert(Key::of(new.meta()), Arc::clone(&new));
        Shift {
            old,
            new: Some(new),
        }
    }

    /// The watch says that this object is gone.
    pub fn deleted(&mut self, object: &K) -> Option<Shift<K>> {
        self.gone
            .remove(object.meta().uid.as_deref().unwrap_or_default());
        self.forget(object.meta())
    }

    /// We were told, in answer to our own call, that this object is gone; the watch will say so.
    pub fn known_gone(&mut self, key: &Key, uid: &str) -> Option<Shift<K>> {
        let current = self.objects.get(key)?.clone();
        if current.meta().uid.as_deref() != Some(uid) {
            return None;
        }
        self.gone.insert(uid.to_owned());
        self.forget(current.meta())
    }

    /// The complete list: what it lacks is gone.
    pub fn listed(&mut self, objects: Vec<K>) -> Vec<Shift<K>> {
        let uids: BTreeSet<&str> = objects
            .iter()
            .filter_map(|o| o.meta().uid.as_deref())
            .collect();
        let lost: Vec<ObjectMeta> = self
            .objects
            .values()
            .filter(|o| {
                !o.meta()
                    .uid
                    .as_deref()
                    .is_some_and(|uid| uids.contains(uid))
            })
            .map(|o| o.meta().clone())
            .collect();
        self.gone.retain(|uid| uids.contains(uid.as_str()));
        let lost: Vec<_> = lost.iter().filter_map(|meta| self.forget(meta)).collect();
        let seen: Vec<_> = objects
            .into_iter()
            .filter_map(|object| self.seen(object))
            .collect();
        lost.into_iter().chain(seen).collect()
    }

    fn forget(&mut self, meta: &ObjectMeta) -> Option<Shift<K>> {
        let key = Key::of(meta);
        if self.objects.get(&key)?.meta().uid != meta.uid {
            return None;
        }
        let old = self.objects.remove(&key);
        Some(Shift { old, new: None })
    }
}

/// Resource versions of one resource on one server grow as numbers (KEP-5504 made this a promise).
fn version<K: Resource>(object: &K) -> u64 {
    let text = object.meta().resource_version.as_deref();
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;

    fn pod(uid: &str, version: u32) -> Pod {
        Pod {
            metadata: ObjectMeta {
                name: Some("a".into()),
                namespace: Some("n".into()),
                uid: Some(uid.into()),
                resource_version: Some(version.to_string()),
                ..ObjectMeta::default()
            },
            ..Pod::default()
        }
    }

    #[test]
    fn a_watch_that_lags_behind_our_own_write_changes_nothing() {
        let mut store = Store::default();
        assert!(store.seen(pod("u1", 9)).is_some());
        assert!(store.seen(pod("u1", 8)).is_none());
        assert!(store.seen(pod("u1", 10)).is_some());
    }

    #[test]
    fn what_we_know_to_be_gone_does_not_come_back_by_an_old_event() {
        let mut store = Store::default();
        store.seen(pod("u1", 1));
        assert!(store.known_gone(&Key::new("n", "a"), "u1").is_some());
        assert!(store.seen(pod("u1", 2)).is_none());
        assert!(
            store.seen(pod("u2", 3)).is_some(),
            "its successor is another"
        );
        store.deleted(&pod("u1", 4));
        assert_eq!(store.len(), 1, "the old one's end is not the new one's");
    }

    #[test]
    fn what_a_new_list_lacks_is_gone() {
        let mut store = Store::default();
        store.seen(pod("u1", 1));
        let shifts = store.listed(vec![pod("u2", 5)]);
        assert_eq!(shifts.len(), 2);
        assert!(shifts[0].new.is_none());
        assert_eq!(store.len(), 1);
        assert_eq!(store.listed(Vec::new()).len(), 1);
        assert!(store.is_empty());
    }
}

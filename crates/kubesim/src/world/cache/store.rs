//! The cached objects of one kind: as the watch last showed them or as our own calls last wrote
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

/// Namespace (empty for a cluster-scoped object) and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Empty for a cluster-scoped object.
    pub namespace: String,
    pub name: String,
}

impl ObjectKey {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    pub fn cluster_scoped(name: impl Into<String>) -> Self {
        Self::new("", name)
    }

    pub fn of_metadata(meta: &ObjectMeta) -> Self {
        Self::new(
            meta.namespace.clone().unwrap_or_default(),
            meta.name.clone().unwrap_or_default(),
        )
    }
}

/// One object before and after a change; at least one of the two is present.
#[derive(Debug, Clone)]
pub struct ObjectChange<K> {
    /// `None` if the object was not cached.
    pub old: Option<Arc<K>>,
    /// `None` if the object is deleted.
    pub new: Option<Arc<K>>,
}

impl<K> ObjectChange<K> {
    /// The states that are present.
    pub fn known_states(&self) -> impl Iterator<Item = &Arc<K>> {
        self.old.iter().chain(self.new.iter())
    }
}

/// The objects of one kind. The answers to our own writes are stored beside what the watch shows,
/// so a controller never acts twice because its watch lags; an older state never replaces a newer
/// one.
#[derive(Debug)]
pub struct CachedObjects<K> {
    objects: BTreeMap<ObjectKey, Arc<K>>,
    /// UIDs of objects that are deleted although the watch may still show them.
    gone: BTreeSet<String>,
}

impl<K> Default for CachedObjects<K> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            gone: BTreeSet::new(),
        }
    }
}

impl<K: Resource> CachedObjects<K> {
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<K>> {
        self.objects.get(key)
    }

    /// All objects, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Arc<K>)> {
        self.objects.iter()
    }

    pub fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<K>> + 'a {
        self.objects
            .range(ObjectKey::new(namespace, "")..)
            .take_while(move |(key, _)| key.namespace == namespace)
            .map(|(_, object)| object)
    }

    pub fn len(&self) -> usize {
        self.objects.len()
    }

    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Stores a state of an object, unless a newer one is cached.
    pub fn observe_object(&mut self, object: K) -> Option<ObjectChange<K>> {
        let uid = object.meta().uid.as_deref().unwrap_or_default();
        if self.gone.contains(uid) {
            return None;
        }
        let key = ObjectKey::of_metadata(object.meta());
        if let Some(old) = self.objects.get(&key)
            && old.meta().uid == object.meta().uid
            && resource_version(&**old) >= resource_version(&object)
        {
            return None;
        }
        Some(self.assume_object(object))
    }

    /// Stores a state of an object, whatever is cached.
    pub fn assume_object(&mut self, object: K) -> ObjectChange<K> {
        let new = Arc::new(object);
        let old = self
            .objects
            .insert(ObjectKey::of_metadata(new.meta()), Arc::clone(&new));
        ObjectChange {
            old,
            new: Some(new),
        }
    }

    /// Removes an object that the watch reported as deleted.
    pub fn observe_deleted(&mut self, object: &K) -> Option<ObjectChange<K>> {
        self.gone
            .remove(object.meta().uid.as_deref().unwrap_or_default());
        self.forget_object(object.meta())
    }

    /// Removes an object that our own call has deleted; the watch will report it later.
    pub fn assume_deleted(&mut self, key: &ObjectKey, uid: &str) -> Option<ObjectChange<K>> {
        let current = self.objects.get(key)?.clone();
        if current.meta().uid.as_deref() != Some(uid) {
            return None;
        }
        self.gone.insert(uid.to_owned());
        self.forget_object(current.meta())
    }

    /// Stores the complete list and removes every object that it lacks.
    pub fn observe_list(&mut self, objects: Vec<K>) -> Vec<ObjectChange<K>> {
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
        let lost: Vec<_> = lost
            .iter()
            .filter_map(|meta| self.forget_object(meta))
            .collect();
        let seen: Vec<_> = objects
            .into_iter()
            .filter_map(|object| self.observe_object(object))
            .collect();
        lost.into_iter().chain(seen).collect()
    }

    fn forget_object(&mut self, meta: &ObjectMeta) -> Option<ObjectChange<K>> {
        let key = ObjectKey::of_metadata(meta);
        if self.objects.get(&key)?.meta().uid != meta.uid {
            return None;
        }
        let old = self.objects.remove(&key);
        Some(ObjectChange { old, new: None })
    }
}

/// The resource versions of one resource on one server grow as numbers (promised by KEP-5504).
fn resource_version<K: Resource>(object: &K) -> u64 {
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
        let mut store = CachedObjects::default();
        assert!(store.observe_object(pod("u1", 9)).is_some());
        assert!(store.observe_object(pod("u1", 8)).is_none());
        assert!(store.observe_object(pod("u1", 10)).is_some());
    }

    #[test]
    fn what_we_know_to_be_gone_does_not_come_back_by_an_old_event() {
        let mut store = CachedObjects::default();
        store.observe_object(pod("u1", 1));
        assert!(
            store
                .assume_deleted(&ObjectKey::new("n", "a"), "u1")
                .is_some()
        );
        assert!(store.observe_object(pod("u1", 2)).is_none());
        assert!(
            store.observe_object(pod("u2", 3)).is_some(),
            "its successor is another"
        );
        store.observe_deleted(&pod("u1", 4));
        assert_eq!(store.len(), 1, "the old one's end is not the new one's");
    }

    #[test]
    fn what_a_new_list_lacks_is_gone() {
        let mut store = CachedObjects::default();
        store.observe_object(pod("u1", 1));
        let shifts = store.observe_list(vec![pod("u2", 5)]);
        assert_eq!(shifts.len(), 2);
        assert!(shifts[0].new.is_none());
        assert_eq!(store.len(), 1);
        assert_eq!(store.observe_list(Vec::new()).len(), 1);
        assert!(store.is_empty());
    }
}

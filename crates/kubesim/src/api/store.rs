//! The server's memory: objects, their history, the open watches, and the revision that counts
//! every write.

mod backup;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::access::Denial;
use super::admission::EvictionPolicy;
use super::audit::RequestAuditLog;
use super::kinds::{ResourceRegistry, ServedResource};
use super::request::ApiRequest;
use super::route::ResourcePath;
use super::value::{format_rfc3339, meta_mut, meta_text, text_at};
use super::watch::{CollectionWatchers, StoreEvent};
use crate::clock::ClusterClock;

pub use self::backup::StoreBackup;

/// One state of one object, without kind and apiVersion (the served resource adds them).
#[derive(Debug)]
pub(crate) struct StoredObject {
    pub(crate) value: Value,
    json: OnceLock<Bytes>,
}

impl StoredObject {
    pub(crate) fn new(value: Value) -> Self {
        Self {
            value,
            json: OnceLock::new(),
        }
    }

    /// The state as JSON, serialised once and cached.
    pub(crate) fn to_json(&self) -> Bytes {
        self.json
            .get_or_init(|| Bytes::from(self.value.to_string()))
            .clone()
    }

    /// The same state at another revision.
    pub(crate) fn at_revision(&self, revision: u64) -> Self {
        let mut value = self.value.clone();
        value["metadata"]["resourceVersion"] = revision.to_string().into();
        Self::new(value)
    }
}

#[derive(Debug, Default)]
pub(crate) struct ObjectCollection {
    pub(crate) objects: BTreeMap<String, Arc<StoredObject>>,
    /// Keys by `spec.nodeName`, an index for the pods of a node.
    by_node: BTreeMap<String, BTreeSet<String>>,
    history: VecDeque<Arc<StoreEvent>>,
    /// The newest revision that was dropped from the history.
    forgotten: u64,
    pub(crate) watchers: CollectionWatchers,
}

impl ObjectCollection {
    fn update_node_index(
        &mut self,
        key: &str,
        before: Option<&StoredObject>,
        after: Option<&StoredObject>,
    ) {
        let node = |stored: &StoredObject| text_at(&stored.value, &["spec", "nodeName"]).to_owned();
        let (before, after) = (before.map(node), after.map(node));
        if before == after {
            return;
        }
        if let Some(keys) = before.as_ref().and_then(|node| self.by_node.get_mut(node)) {
            keys.remove(key);
        }
        if let Some(node) = after.filter(|node| !node.is_empty()) {
            self.by_node.entry(node).or_default().insert(key.to_owned());
        }
    }

    /// The objects of a namespace; all objects when it is empty.
    pub(crate) fn in_namespace<'a>(
        &'a self,
        namespace: &str,
    ) -> Box<dyn Iterator<Item = (&'a String, &'a Arc<StoredObject>)> + 'a> {
        if namespace.is_empty() {
            return Box::new(self.objects.iter());
        }
        // '0' follows '/': the range contains the keys that begin with "NAMESPACE/".
        let range = format!("{namespace}/")..format!("{namespace}0");
        Box::new(self.objects.range(range))
    }

    /// The pods of one node.
    pub(crate) fn on_node<'a>(
        &'a self,
        node: &str,
    ) -> impl Iterator<Item = (&'a String, &'a Arc<StoredObject>)> {
        let keys = self.by_node.get(node).into_iter().flatten();
        keys.filter_map(|key| self.objects.get_key_value(key))
    }

    /// The events after a revision. None when the history no longer reaches back to it.
    pub(crate) fn events_since(
        &self,
        revision: u64,
    ) -> Option<impl Iterator<Item = &Arc<StoreEvent>>> {
        if revision < self.forgotten {
            return None;
        }
        let from = self
            .history
            .partition_point(|event| event.revision <= revision);
        Some(self.history.range(from..))
    }

    /// The objects as they were at a revision. None when the history no longer reaches back to it.
    pub(crate) fn objects_at_revision(
        &self,
        revision: u64,
    ) -> Option<BTreeMap<String, Arc<StoredObject>>> {
        let later: Vec<&Arc<StoreEvent>> = self.events_since(revision)?.collect();
        let mut objects = self.objects.clone();
        for event in later.into_iter().rev() {
            match &event.before {
                Some(before) => drop(objects.insert(event.key.clone(), Arc::clone(before))),
                None => drop(objects.remove(&event.key)),
            }
        }
        Some(objects)
    }

    fn record_event(&mut self, event: Arc<StoreEvent>, keep: usize) {
        self.watchers.publish_event(&event);
        self.history.push_back(event);
        while self.history.len() > keep {
            if let Some(event) = self.history.pop_front() {
                self.forgotten = event.revision;
            }
        }
    }
}

/// Server settings that differ between real clusters.
#[derive(Debug, Clone)]
pub struct ApiServerOptions {
    /// The source of everything random.
    pub seed: u64,
    /// Number of changes kept per kind, for watches that resume.
    pub history: usize,
    /// Time between two bookmarks of a watch. The real server: about a minute.
    pub bookmark_interval: std::time::Duration,
    /// Shortest lifetime of a watch that asks for none; the longest is twice that. The real server:
    /// half an hour.
    pub watch_timeout: std::time::Duration,
    /// Whether requests are recorded in the audit log.
    pub audit: bool,
}

impl Default for ApiServerOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            history: 20_000,
            bookmark_interval: std::time::Duration::from_mins(1),
            watch_timeout: std::time::Duration::from_mins(30),
            audit: true,
        }
    }
}

/// The server's memory and its synchronous core: see [`ObjectStore::handle_request`].
pub struct ObjectStore {
    pub(crate) registry: ResourceRegistry,
    pub(crate) collections: Vec<ObjectCollection>,
    pub(crate) revision: u64,
    pub(crate) options: ApiServerOptions,
    pub(crate) audit: RequestAuditLog,
    pub(crate) denials: Vec<Denial>,
    pub(crate) eviction_policies: Vec<EvictionPolicy>,
    /// The warnings of the request that is being served.
    pub(crate) warnings: Vec<String>,
    clock: Arc<dyn ClusterClock>,
    random: ChaCha8Rng,
    last_watch: u64,
}

/// Letters of generated names: no vowels and no look-alikes.
const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

impl ObjectStore {
    /// An empty cluster with the four initial namespaces.
    pub fn new(clock: Arc<dyn ClusterClock>, options: ApiServerOptions) -> Self {
        let registry = ResourceRegistry::with_built_in_kinds();
        let mut collections = Vec::new();
        collections.resize_with(registry.count_collections(), ObjectCollection::default);
        let mut store = Self {
            registry,
            collections,
            revision: 0,
            audit: RequestAuditLog::new(options.audit),
            denials: Vec::new(),
            eviction_policies: Vec::new(),
            warnings: Vec::new(),
            clock,
            random: ChaCha8Rng::seed_from_u64(options.seed),
            last_watch: 0,
            options,
        };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            store.create_initial_namespace(name);
        }
        store
    }

    fn create_initial_namespace(&mut self, name: &str) {
        let resource = self.registry.expect_resource("v1", "namespaces");
        let namespace = json!({
            "metadata": {
                "name": name,
                "uid": self.new_uid(),
                "creationTimestamp": self.now_text(),
                "labels": { "kubernetes.io/metadata.name": name },
            },
            "spec": { "finalizers": ["kubernetes"] },
            "status": { "phase": "Active" },
        });
        self.put_object(&resource, name, namespace);
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time as objects carry it: RFC 3339.
    pub(crate) fn now_text(&self) -> String {
        format_rfc3339(self.now())
    }

    /// The revision of the last write.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// A random UUID (version 4) from the seed.
    pub(crate) fn new_uid(&mut self) -> String {
        let (high, low) = (self.random.next_u64(), self.random.next_u64());
        let high = (high & !0xf000) | 0x4000;
        let low = (low & !(0b11 << 62)) | (0b10 << 62);
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }

    /// Five random characters for `generateName`.
    pub(crate) fn new_suffix(&mut self) -> String {
        let mut letter = || {
            let index = self.random.next_u32() as usize % NAME_LETTERS.len();
            char::from(NAME_LETTERS[index])
        };
        (0..5).map(|_| letter()).collect()
    }

    /// A lifetime for a watch that asks for none.
    pub(crate) fn new_watch_timeout(&mut self) -> std::time::Duration {
        let least = self.options.watch_timeout;
        let share = f64::from(self.random.next_u32()) / f64::from(u32::MAX);
        least + least.mul_f64(share)
    }

    pub(crate) fn new_watch_id(&mut self) -> u64 {
        self.last_watch += 1;
        self.last_watch
    }

    pub(crate) fn collection_of_resource(&self, resource: &ServedResource) -> &ObjectCollection {
        &self.collections[resource.collection]
    }

    pub(crate) fn find_object(
        &self,
        resource: &ServedResource,
        key: &str,
    ) -> Option<&Arc<StoredObject>> {
        self.collection_of_resource(resource).objects.get(key)
    }

    /// Writes an object at the next revision and notifies the watchers.
    pub(crate) fn put_object(
        &mut self,
        resource: &ServedResource,
        key: &str,
        mut value: Value,
    ) -> Arc<StoredObject> {
        self.revision += 1;
        meta_mut(&mut value).insert("resourceVersion".into(), self.revision.to_string().into());
        if resource.is_built_in_kind("apiextensions.k8s.io", "customresourcedefinitions") {
            self.registry.add_definition(&value);
            self.collections
                .resize_with(self.registry.count_collections(), ObjectCollection::default);
        }
        let stored = Arc::new(StoredObject::new(value));
        let collection = &mut self.collections[resource.collection];
        let before = collection
            .objects
            .insert(key.to_owned(), Arc::clone(&stored));
        collection.update_node_index(key, before.as_deref(), Some(&stored));
        let event = StoreEvent::new(
            self.revision,
            key.to_owned(),
            before,
            Some(Arc::clone(&stored)),
        );
        collection.record_event(Arc::new(event), self.options.history);
        stored
    }

    /// Removes an object at the next revision and notifies the watchers. Returns its last state.
    pub(crate) fn remove_object(
        &mut self,
        resource: &ServedResource,
        key: &str,
    ) -> Option<Arc<StoredObject>> {
        let collection = &mut self.collections[resource.collection];
        let before = collection.objects.remove(key)?;
        self.revision += 1;
        collection.update_node_index(key, Some(&before), None);
        let event = StoreEvent::new(
            self.revision,
            key.to_owned(),
            Some(Arc::clone(&before)),
            None,
        );
        collection.record_event(Arc::new(event), self.options.history);
        if resource.is_built_in_kind("apiextensions.k8s.io", "customresourcedefinitions") {
            self.undefine_resource(&before.value);
        }
        Some(before)
    }

    /// Deleting a definition also deletes its objects.
    fn undefine_resource(&mut self, definition: &Value) {
        let versions = definition["spec"]["versions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let plural = text_at(definition, &["spec", "names", "plural"]).to_owned();
        let group = text_at(definition, &["spec", "group"]).to_owned();
        let name = |version: &Value| format!("{group}/{}", text_at(version, &["name"]));
        let resource = versions
            .iter()
            .find_map(|version| self.registry.get(&name(version), &plural).cloned());
        if let Some(resource) = resource {
            let keys: Vec<String> = self
                .collection_of_resource(&resource)
                .objects
                .keys()
                .cloned()
                .collect();
            for key in keys {
                self.remove_object(&resource, &key);
            }
        }
        self.registry.remove_definition(definition);
    }

    /// Sets the denied rights, replacing earlier ones.
    pub fn set_denials(&mut self, denials: Vec<Denial>) {
        self.denials = denials;
    }

    /// Adds a policy that refuses evictions, replacing the one of the same name.
    pub fn refuse_evictions(&mut self, policy: EvictionPolicy) {
        self.admit_evictions(&policy.name);
        self.eviction_policies.push(policy);
    }

    /// Removes the eviction policy of this name.
    pub fn admit_evictions(&mut self, policy: &str) {
        self.eviction_policies.retain(|other| other.name != policy);
    }

    /// Drops the history: a watch or a list that resumes from an earlier revision gets 410.
    pub fn compact_history(&mut self) {
        for collection in &mut self.collections {
            collection.history.clear();
            collection.forgotten = self.revision;
        }
    }

    /// Breaks the watches of a user, or of all users, like a lost connection.
    pub fn cut_watches(&mut self, user: Option<&str>) {
        for collection in &mut self.collections {
            collection.watchers.cut_watchers(user);
        }
    }

    /// The revision before the last change of the collection that a request names.
    pub(crate) fn revision_before(&self, request: &ApiRequest) -> Option<u64> {
        let target = ResourcePath::parse(&request.path)?.resolve_target(&self.registry)?;
        let collection = self.collection_of_resource(&target.resource);
        let last = collection.history.back()?;
        Some(last.revision - 1).filter(|before| *before > collection.forgotten)
    }

    pub(crate) fn send_bookmark(&self, collection: usize, id: u64) {
        self.collections[collection]
            .watchers
            .send_bookmark(id, self.revision, false);
    }

    pub(crate) fn remove_watch(&mut self, collection: usize, id: u64) {
        if let Some(collection) = self.collections.get_mut(collection) {
            collection.watchers.remove_watcher(id);
        }
    }

    /// Whether a namespace is being deleted. None when it does not exist.
    pub(crate) fn namespace_is_terminating(&self, namespace: &str) -> Option<bool> {
        let resource = self.registry.expect_resource("v1", "namespaces");
        let stored = self.find_object(&resource, namespace)?;
        Some(!meta_text(&stored.value, "deletionTimestamp").is_empty())
    }
}

//! Everything that the server remembers: objects, their history, who follows, and the one revision
//! that counts every write.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::access::Denial;
use super::admission::EvictionPolicy;
use super::audit::Audit;
use super::kinds::{Registry, Resource};
use super::value::{meta, meta_mut, rfc3339, text};
use super::watch::{Event, Watchers};
use crate::clock::Clock;

/// One state of one object, without kind and apiVersion (the resource that shows it knows them).
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) value: Value,
    json: OnceLock<Bytes>,
}

impl Stored {
    pub(crate) fn new(value: Value) -> Self {
        Self {
            value,
            json: OnceLock::new(),
        }
    }

    /// The state as JSON, made once.
    pub(crate) fn json(&self) -> Bytes {
        self.json
            .get_or_init(|| Bytes::from(self.value.to_string()))
            .clone()
    }

    /// The same state under another revision.
    pub(crate) fn at_revision(&self, revision: u64) -> Self {
        let mut value = self.value.clone();
        value["metadata"]["resourceVersion"] = revision.to_string().into();
        Self::new(value)
    }
}

/// The objects of one kind.
#[derive(Debug, Default)]
pub(crate) struct Collection {
    pub(crate) objects: BTreeMap<String, Arc<Stored>>,
    /// Keys by `spec.nodeName`, so that a node's pods are found among all.
    by_node: BTreeMap<String, BTreeSet<String>>,
    history: VecDeque<Arc<Event>>,
    /// The last revision that the history no longer has.
    forgotten: u64,
    pub(crate) watchers: Watchers,
}

impl Collection {
    fn index(&mut self, key: &str, before: Option<&Stored>, after: Option<&Stored>) {
        let node = |stored: &Stored| text(&stored.value, &["spec", "nodeName"]).to_owned();
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

    /// The objects in one namespace, or everywhere when it is empty.
    pub(crate) fn in_namespace<'a>(
        &'a self,
        namespace: &str,
    ) -> Box<dyn Iterator<Item = (&'a String, &'a Arc<Stored>)> + 'a> {
        if namespace.is_empty() {
            return Box::new(self.objects.iter());
        }
        // '0' comes after '/': the range holds what begins with "NAMESPACE/".
        let range = format!("{namespace}/")..format!("{namespace}0");
        Box::new(self.objects.range(range))
    }

    /// The objects of one node.
    pub(crate) fn on_node<'a>(
        &'a self,
        node: &str,
    ) -> impl Iterator<Item = (&'a String, &'a Arc<Stored>)> {
        let keys = self.by_node.get(node).into_iter().flatten();
        keys.filter_map(|key| self.objects.get_key_value(key))
    }

    /// What happened after a revision. None when that is no longer known.
    pub(crate) fn since(&self, revision: u64) -> Option<impl Iterator<Item = &Arc<Event>>> {
        if revision < self.forgotten {
            return None;
        }
        let from = self
            .history
            .partition_point(|event| event.revision <= revision);
        Some(self.history.range(from..))
    }

    /// The objects as they were at a revision. None when that is no longer known.
    pub(crate) fn at(&self, revision: u64) -> Option<BTreeMap<String, Arc<Stored>>> {
        let later: Vec<&Arc<Event>> = self.since(revision)?.collect();
        let mut objects = self.objects.clone();
        for event in later.into_iter().rev() {
            match &event.before {
                Some(before) => drop(objects.insert(event.key.clone(), Arc::clone(before))),
                None => drop(objects.remove(&event.key)),
            }
        }
        Some(objects)
    }

    fn record(&mut self, event: Arc<Event>, keep: usize) {
        self.watchers.publish(&event);
        self.history.push_back(event);
        while self.history.len() > keep {
            if let Some(event) = self.history.pop_front() {
                self.forgotten = event.revision;
            }
        }
    }
}

/// How a server behaves where real ones differ by configuration.
#[derive(Debug, Clone)]
pub struct Options {
    /// Everything random comes from it.
    pub seed: u64,
    /// Changes remembered of each kind, for watches that resume.
    pub history: usize,
    /// Time between bookmarks of a watch. The real server: about a minute.
    pub bookmark_interval: std::time::Duration,
    /// Shortest lifetime of a watch that asks for none; the longest is twice that. The real server:
    /// half an hour.
    pub watch_timeout: std::time::Duration,
    /// Whether requests are written to the audit log.
    pub audit: bool,
}

impl Default for Options {
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

/// The server's memory and its synchronous heart: see [`Store::handle`].
pub struct Store {
    pub(crate) registry: Registry,
    pub(crate) collections: Vec<Collection>,
    pub(crate) revision: u64,
    pub(crate) options: Options,
    pub(crate) audit: Audit,
    pub(crate) denials: Vec<Denial>,
    pub(crate) eviction_policies: Vec<EvictionPolicy>,
    clock: Arc<dyn Clock>,
    random: ChaCha8Rng,
    last_watch: u64,
}

/// Letters of generated names: no vowels, nothing that reads as something else.
const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

impl Store {
    /// An empty cluster with its four namespaces.
    pub fn new(clock: Arc<dyn Clock>, options: Options) -> Self {
        let registry = Registry::built_in();
        let mut collections = Vec::new();
        collections.resize_with(registry.collections(), Collection::default);
        let mut store = Self {
            registry,
            collections,
            revision: 0,
            audit: Audit::new(options.audit),
            denials: Vec::new(),
            eviction_policies: Vec::new(),
            clock,
            random: ChaCha8Rng::seed_from_u64(options.seed),
            last_watch: 0,
            options,
        };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            store.found_namespace(name);
        }
        store
    }

    fn found_namespace(&mut self, name: &str) {
        let resource = self.registry.expect("v1", "namespaces");
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
        self.put(&resource, name, namespace);
    }

    /// The time, by the server's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time as objects carry it.
    pub(crate) fn now_text(&self) -> String {
        rfc3339(self.now())
    }

    /// The revision of the last write.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// A random UUID of version 4, from the seed.
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

    /// Five random letters for `generateName`.
    pub(crate) fn new_suffix(&mut self) -> String {
        let mut letter = || {
            let index = self.random.next_u32() as usize % NAME_LETTERS.len();
            char::from(NAME_LETTERS[index])
        };
        (0..5).map(|_| letter()).collect()
    }

    /// The lifetime of a watch that asks for none.
    pub(crate) fn new_watch_timeout(&mut self) -> std::time::Duration {
        let least = self.options.watch_timeout;
        let share = f64::from(self.random.next_u32()) / f64::from(u32::MAX);
        least + least.mul_f64(share)
    }

    pub(crate) fn new_watch_id(&mut self) -> u64 {
        self.last_watch += 1;
        self.last_watch
    }

    pub(crate) fn collection(&self, resource: &Resource) -> &Collection {
        &self.collections[resource.collection]
    }

    /// One object, if it is there.
    pub(crate) fn find(&self, resource: &Resource, key: &str) -> Option<&Arc<Stored>> {
        self.collection(resource).objects.get(key)
    }

    /// Writes an object under the next revision and tells everybody.
    pub(crate) fn put(&mut self, resource: &Resource, key: &str, mut value: Value) -> Arc<Stored> {
        self.revision += 1;
        meta_mut(&mut value).insert("resourceVersion".into(), self.revision.to_string().into());
        if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
            self.registry.define(&value);
            self.collections
                .resize_with(self.registry.collections(), Collection::default);
        }
        let stored = Arc::new(Stored::new(value));
        let collection = &mut self.collections[resource.collection];
        let before = collection
            .objects
            .insert(key.to_owned(), Arc::clone(&stored));
        collection.index(key, before.as_deref(), Some(&stored));
        let event = Event::new(
            self.revision,
            key.to_owned(),
            before,
            Some(Arc::clone(&stored)),
        );
        collection.record(Arc::new(event), self.options.history);
        stored
    }

    /// Takes an object away under the next revision and tells everybody. Gives back its last state.
    pub(crate) fn remove(&mut self, resource: &Resource, key: &str) -> Option<Arc<Stored>> {
        let collection = &mut self.collections[resource.collection];
        let before = collection.objects.remove(key)?;
        self.revision += 1;
        collection.index(key, Some(&before), None);
        let event = Event::new(
            self.revision,
            key.to_owned(),
            Some(Arc::clone(&before)),
            None,
        );
        collection.record(Arc::new(event), self.options.history);
        if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
            self.undefine(&before.value);
        }
        Some(before)
    }

    /// A definition that goes takes its objects along.
    fn undefine(&mut self, definition: &Value) {
        let versions = definition["spec"]["versions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let plural = text(definition, &["spec", "names", "plural"]).to_owned();
        let group = text(definition, &["spec", "group"]).to_owned();
        let name = |version: &Value| format!("{group}/{}", text(version, &["name"]));
        let resource = versions
            .iter()
            .find_map(|version| self.registry.get(&name(version), &plural).cloned());
        if let Some(resource) = resource {
            let keys: Vec<String> = self.collection(&resource).objects.keys().cloned().collect();
            for key in keys {
                self.remove(&resource, &key);
            }
        }
        self.registry.withdraw(definition);
    }

    /// Withholds rights, in place of those withheld before.
    pub fn set_denials(&mut self, denials: Vec<Denial>) {
        self.denials = denials;
    }

    /// Has a policy refuse evictions, in place of the one of its name.
    pub fn refuse_evictions(&mut self, policy: EvictionPolicy) {
        self.admit_evictions(&policy.name);
        self.eviction_policies.push(policy);
    }

    /// The policy of this name refuses no eviction any more.
    pub fn admit_evictions(&mut self, policy: &str) {
        self.eviction_policies.retain(|other| other.name != policy);
    }

    /// Forgets the history: a watch or a list that resumes from before now is told 410.
    pub fn compact(&mut self) {
        for collection in &mut self.collections {
            collection.history.clear();
            collection.forgotten = self.revision;
        }
    }

    /// Breaks off the watches of a user, or of everybody, as a lost connection does.
    pub fn cut_watches(&mut self, user: Option<&str>) {
        for collection in &mut self.collections {
            collection.watchers.cut(user);
        }
    }

    /// How many watches are open, of a user or in all.
    pub fn open_watches(&self, user: Option<&str>) -> usize {
        self.collections
            .iter()
            .map(|collection| collection.watchers.count(user))
            .sum()
    }

    /// Sends a bookmark to a watch.
    pub(crate) fn bookmark(&self, collection: usize, id: u64) {
        self.collections[collection]
            .watchers
            .bookmark(id, self.revision, false);
    }

    /// Forgets a watch.
    pub(crate) fn unwatch(&mut self, collection: usize, id: u64) {
        if let Some(collection) = self.collections.get_mut(collection) {
            collection.watchers.remove(id);
        }
    }

    /// Whether a namespace is on its way out. None when there is no such namespace.
    pub(crate) fn namespace_is_terminating(&self, namespace: &str) -> Option<bool> {
        let resource = self.registry.expect("v1", "namespaces");
        let stored = self.find(&resource, namespace)?;
        Some(!meta(&stored.value, "deletionTimestamp").is_empty())
    }
}

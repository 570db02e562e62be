//! What is served: the table of built-in resources, and the ones that CustomResourceDefinitions add.
//!
//! Everything that a verb has to know about a kind stands here as data; what a kind does *besides*
//! (defaults, what its strategy strips) is in `strategy`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::value::{at, flag, items, text};

/// A path below an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subresource {
    /// `status`.
    Status,
    /// `eviction`, of pods.
    Eviction,
    /// `binding`, of pods.
    Binding,
}

impl Subresource {
    /// As it is spelt in a path.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Eviction => "eviction",
            Self::Binding => "binding",
        }
    }
}

/// One resource of one group and version.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent traits of a kind, a row of a table"
)]
pub struct Resource {
    /// Empty for the core group.
    pub group: String,
    /// `v1`, mostly.
    pub version: String,
    /// As in a path: `nodes`.
    pub plural: String,
    /// As a person types it: `node`.
    pub singular: String,
    /// `Node`.
    pub kind: String,
    /// `NodeList`.
    pub list_kind: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// `no` for nodes.
    pub short_names: Vec<String>,
    /// Paths below its objects.
    pub subresources: Vec<Subresource>,
    /// Whether an update has to carry a resourceVersion.
    pub conditional_update: bool,
    /// Whether a PUT makes what is not there.
    pub create_on_update: bool,
    /// Whether DELETE answers with the object and not with a Status.
    pub returns_deleted: bool,
    /// Whether `metadata.generation` counts changes of what a user wants.
    pub generation: bool,
    /// Which collection of the store holds the objects; versions of one kind share it.
    pub(crate) collection: usize,
    /// The version's entry of its CustomResourceDefinition.
    pub(crate) custom: Option<Value>,
}

impl Resource {
    /// `GROUP/VERSION`, or the version alone in the core group.
    pub fn api_version(&self) -> String {
        group_version(&self.group, &self.version)
    }

    /// `plural.group`, as errors name it.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// Whether it has this subresource.
    pub fn has(&self, subresource: Subresource) -> bool {
        self.subresources.contains(&subresource)
    }

    /// Whether this is the built-in resource of that group and plural.
    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.custom.is_none() && self.group == group && self.plural == plural
    }
}

/// `GROUP/VERSION`, or the version alone in the core group.
pub(crate) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// The letters of a row of [`BUILT_IN`].
///
/// `n` namespaced, `s` status, `c` an update must carry a resourceVersion, `u` a PUT creates,
/// `r` DELETE answers with the object, `g` counts generations, `p` has eviction and binding.
type Traits = &'static str;

/// Group, version, plural, kind, short names, traits. Read in `pkg/registry` of Kubernetes 1.36.1.
const BUILT_IN: &[(&str, &str, &str, &str, &str, Traits)] = &[
    ("", "v1", "configmaps", "ConfigMap", "cm", "n"),
    ("", "v1", "events", "Event", "ev", "nu"),
    ("", "v1", "namespaces", "Namespace", "ns", "sr"),
    ("", "v1", "nodes", "Node", "no", "s"),
    (
        "",
        "v1",
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        "pvc",
        "nsr",
    ),
    (
        "",
        "v1",
        "persistentvolumes",
        "PersistentVolume",
        "pv",
        "sr",
    ),
    ("", "v1", "pods", "Pod", "po", "nsrgp"),
    ("", "v1", "secrets", "Secret", "", "n"),
    ("", "v1", "serviceaccounts", "ServiceAccount", "sa", "nr"),
    ("", "v1", "services", "Service", "svc", "nsur"),
    (
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        "crd,crds",
        "scg",
    ),
    ("apps", "v1", "daemonsets", "DaemonSet", "ds", "nsg"),
    ("apps", "v1", "deployments", "Deployment", "deploy", "nsg"),
    ("apps", "v1", "replicasets", "ReplicaSet", "rs", "nsg"),
    ("apps", "v1", "statefulsets", "StatefulSet", "sts", "nsg"),
    ("coordination.k8s.io", "v1", "leases", "Lease", "", "ncu"),
    ("events.k8s.io", "v1", "events", "Event", "ev", "nu"),
    (
        "policy",
        "v1",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        "pdb",
        "nscg",
    ),
    ("storage.k8s.io", "v1", "csinodes", "CSINode", "", "cr"),
    (
        "storage.k8s.io",
        "v1",
        "volumeattachments",
        "VolumeAttachment",
        "",
        "scr",
    ),
];

fn built_in(row: &(&str, &str, &str, &str, &str, Traits), collection: usize) -> Resource {
    let (group, version, plural, kind, short, traits) = *row;
    let has = |letter: char| traits.contains(letter);
    let mut subresources = Vec::new();
    if has('p') {
        subresources.extend([Subresource::Binding, Subresource::Eviction]);
    }
    if has('s') {
        subresources.push(Subresource::Status);
    }
    Resource {
        group: group.into(),
        version: version.into(),
        plural: plural.into(),
        singular: kind.to_lowercase(),
        kind: kind.into(),
        list_kind: format!("{kind}List"),
        namespaced: has('n'),
        short_names: short
            .split(',')
            .filter(|name| !name.is_empty())
            .map(Into::into)
            .collect(),
        subresources,
        conditional_update: has('c'),
        create_on_update: has('u'),
        returns_deleted: has('r'),
        generation: has('g'),
        collection,
        custom: None,
    }
}

/// All that is served, by group and version.
#[derive(Debug, Default)]
pub struct Registry {
    by_version: BTreeMap<String, BTreeMap<String, Arc<Resource>>>,
    /// Collection numbers by `plural.group`.
    collections: BTreeMap<String, usize>,
}

impl Registry {
    /// The built-in kinds.
    pub fn built_in() -> Self {
        let mut registry = Self::default();
        for row in BUILT_IN {
            // Both groups of events show the same objects.
            let collection = match (row.0, row.2) {
                ("events.k8s.io", "events") => registry.collection("", "events"),
                (group, plural) => registry.collection(group, plural),
            };
            registry.add(built_in(row, collection));
        }
        registry
    }

    /// How many collections there are.
    pub(crate) fn collections(&self) -> usize {
        self.collections.len()
    }

    fn collection(&mut self, group: &str, plural: &str) -> usize {
        let next = self.collections.len();
        *self
            .collections
            .entry(format!("{plural}.{group}"))
            .or_insert(next)
    }

    fn add(&mut self, resource: Resource) {
        self.by_version
            .entry(resource.api_version())
            .or_default()
            .insert(resource.plural.clone(), Arc::new(resource));
    }

    /// A resource by `GROUP/VERSION` and plural.
    pub fn get(&self, group_version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.by_version.get(group_version)?.get(plural)
    }

    /// A resource of the built-in table.
    pub(crate) fn expect(&self, group_version: &str, plural: &str) -> Arc<Resource> {
        let resource = self.get(group_version, plural);
        Arc::clone(resource.expect("the built-in table holds it"))
    }

    /// Every group and version with its resources.
    pub fn versions(&self) -> impl Iterator<Item = (&String, &BTreeMap<String, Arc<Resource>>)> {
        self.by_version.iter()
    }

    /// Whether there is such a kind.
    pub(crate) fn knows(&self, group_version: &str, kind: &str) -> bool {
        let resources = self.by_version.get(group_version);
        resources.is_some_and(|resources| resources.values().any(|resource| resource.kind == kind))
    }

    /// Whether anything is served under this group and version.
    pub(crate) fn serves(&self, group_version: &str) -> bool {
        self.by_version.contains_key(group_version)
    }

    /// Serves what a CustomResourceDefinition asks for, in place of what it asked for before.
    pub(crate) fn define(&mut self, definition: &Value) {
        let group = text(definition, &["spec", "group"]).to_owned();
        let plural = text(definition, &["spec", "names", "plural"]).to_owned();
        self.withdraw(definition);
        let collection = self.collection(&group, &plural);
        for version in items(definition, &["spec", "versions"]) {
            if flag(version, &["served"]) {
                self.add(custom(definition, version, collection));
            }
        }
    }

    /// Serves nothing of a CustomResourceDefinition any longer.
    pub(crate) fn withdraw(&mut self, definition: &Value) {
        let group = text(definition, &["spec", "group"]);
        let plural = text(definition, &["spec", "names", "plural"]);
        let prefix = format!("{group}/");
        for (version, resources) in &mut self.by_version {
            if version.starts_with(&prefix) {
                resources.remove(plural);
            }
        }
        self.by_version.retain(|_, resources| !resources.is_empty());
    }
}

fn custom(definition: &Value, version: &Value, collection: usize) -> Resource {
    let spec = |path: &[&str]| text(&definition["spec"], path).to_owned();
    let kind = spec(&["names", "kind"]);
    let singular = match spec(&["names", "singular"]) {
        name if name.is_empty() => kind.to_lowercase(),
        name => name,
    };
    let list_kind = match spec(&["names", "listKind"]) {
        name if name.is_empty() => format!("{kind}List"),
        name => name,
    };
    let short_names = items(definition, &["spec", "names", "shortNames"]);
    let status = at(version, &["subresources", "status"]).is_some();
    Resource {
        group: spec(&["group"]),
        version: text(version, &["name"]).to_owned(),
        plural: spec(&["names", "plural"]),
        singular,
        kind,
        list_kind,
        namespaced: spec(&["scope"]) == "Namespaced",
        short_names: short_names
            .iter()
            .filter_map(Value::as_str)
            .map(Into::into)
            .collect(),
        subresources: if status {
            vec![Subresource::Status]
        } else {
            Vec::new()
        },
        conditional_update: true,
        create_on_update: false,
        returns_deleted: false,
        generation: true,
        collection,
        custom: Some(version.clone()),
    }
}

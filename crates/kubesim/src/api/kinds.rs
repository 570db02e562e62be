//! The served resources: the table of built-in ones, and those that CustomResourceDefinitions add.
//!
//! What a verb needs to know about a kind is data here; defaults and which fields a write may
//! change are in `strategy`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::status::FieldError;
use super::structural::StructuralSchema;
use super::value::{bool_at, list_at, text_at, value_at};

/// A path below an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subresource {
    Status,
    /// Pods only.
    Eviction,
    /// Pods only.
    Binding,
}

impl Subresource {
    /// The subresource as paths spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Eviction => "eviction",
            Self::Binding => "binding",
        }
    }
}

#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent traits of a kind, a row of a table"
)]
pub struct ServedResource {
    /// Empty for the core group.
    pub group: String,
    /// For example `v1`.
    pub version: String,
    /// As in a path: `nodes`.
    pub plural: String,
    /// As kubectl users type it: `node`.
    pub singular: String,
    /// For example `Node`.
    pub kind: String,
    /// For example `NodeList`.
    pub list_kind: String,
    /// False for cluster-scoped objects.
    pub namespaced: bool,
    /// For example `no` for nodes.
    pub short_names: Vec<String>,
    /// Subresources of its objects.
    pub subresources: Vec<Subresource>,
    /// Whether an update must carry a resourceVersion.
    pub conditional_update: bool,
    /// Whether a PUT creates a missing object.
    pub create_on_update: bool,
    /// Whether DELETE answers with the object instead of a Status.
    pub returns_deleted: bool,
    /// Whether `metadata.generation` counts changes of the desired state.
    pub generation: bool,
    /// Index of the collection in the store; the versions of one kind share it.
    pub(crate) collection: usize,
    /// The entry of this version in its CustomResourceDefinition; None for a built-in kind.
    pub(crate) custom: Option<Value>,
    /// The compiled schema of a custom resource.
    pub(crate) schema: Option<Arc<StructuralSchema>>,
}

impl ServedResource {
    /// `GROUP/VERSION`, or the version alone in the core group.
    pub fn api_version(&self) -> String {
        group_version(&self.group, &self.version)
    }

    /// `plural.group`, as errors name the resource.
    pub fn qualified_name(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    pub fn has_subresource(&self, subresource: Subresource) -> bool {
        self.subresources.contains(&subresource)
    }

    /// Whether this is the built-in resource of this group and plural.
    pub(crate) fn is_built_in_kind(&self, group: &str, plural: &str) -> bool {
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

/// The letters of a row of [`BUILT_IN_RESOURCES`].
///
/// `n` namespaced, `s` status, `c` an update must carry a resourceVersion, `u` a PUT creates,
/// `r` DELETE answers with the object, `g` counts generations, `p` has eviction and binding.
type ResourceTraits = &'static str;

/// Group, version, plural, kind, short names, traits. From `pkg/registry` of Kubernetes 1.36.1.
const BUILT_IN_RESOURCES: &[(&str, &str, &str, &str, &str, ResourceTraits)] = &[
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

fn built_in_resource(
    row: &(&str, &str, &str, &str, &str, ResourceTraits),
    collection: usize,
) -> ServedResource {
    let (group, version, plural, kind, short, traits) = *row;
    let has = |letter: char| traits.contains(letter);
    let mut subresources = Vec::new();
    if has('p') {
        subresources.extend([Subresource::Binding, Subresource::Eviction]);
    }
    if has('s') {
        subresources.push(Subresource::Status);
    }
    ServedResource {
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
        schema: None,
    }
}

/// All served resources, by group and version.
#[derive(Debug, Default)]
pub struct ResourceRegistry {
    by_version: BTreeMap<String, BTreeMap<String, Arc<ServedResource>>>,
    /// Collection indexes by `plural.group`.
    collections: BTreeMap<String, usize>,
}

impl ResourceRegistry {
    pub fn with_built_in_kinds() -> Self {
        let mut registry = Self::default();
        for row in BUILT_IN_RESOURCES {
            // The core group and `events.k8s.io` share one collection of events.
            let collection = match (row.0, row.2) {
                ("events.k8s.io", "events") => registry.collection_index("", "events"),
                (group, plural) => registry.collection_index(group, plural),
            };
            registry.add_resource(built_in_resource(row, collection));
        }
        registry
    }

    pub(crate) fn count_collections(&self) -> usize {
        self.collections.len()
    }

    fn collection_index(&mut self, group: &str, plural: &str) -> usize {
        let next = self.collections.len();
        *self
            .collections
            .entry(format!("{plural}.{group}"))
            .or_insert(next)
    }

    fn add_resource(&mut self, resource: ServedResource) {
        self.by_version
            .entry(resource.api_version())
            .or_default()
            .insert(resource.plural.clone(), Arc::new(resource));
    }

    /// The resource of a `GROUP/VERSION` and plural.
    pub fn get(&self, group_version: &str, plural: &str) -> Option<&Arc<ServedResource>> {
        self.by_version.get(group_version)?.get(plural)
    }

    /// The built-in resource; panics when there is none.
    pub(crate) fn expect_resource(&self, group_version: &str, plural: &str) -> Arc<ServedResource> {
        let resource = self.get(group_version, plural);
        Arc::clone(resource.expect("the built-in table holds it"))
    }

    pub fn resources_by_version(
        &self,
    ) -> impl Iterator<Item = (&String, &BTreeMap<String, Arc<ServedResource>>)> {
        self.by_version.iter()
    }

    /// Whether the kind is served under this `GROUP/VERSION`.
    pub(crate) fn has_kind(&self, group_version: &str, kind: &str) -> bool {
        let resources = self.by_version.get(group_version);
        resources.is_some_and(|resources| resources.values().any(|resource| resource.kind == kind))
    }

    /// Whether this `GROUP/VERSION` is served.
    pub(crate) fn serves_version(&self, group_version: &str) -> bool {
        self.by_version.contains_key(group_version)
    }

    /// Serves the resources of a CustomResourceDefinition, in place of those of its previous
    /// version.
    pub(crate) fn add_definition(&mut self, definition: &Value) {
        let group = text_at(definition, &["spec", "group"]).to_owned();
        let plural = text_at(definition, &["spec", "names", "plural"]).to_owned();
        self.remove_definition(definition);
        let collection = self.collection_index(&group, &plural);
        for version in list_at(definition, &["spec", "versions"]) {
            if bool_at(version, &["served"]) {
                self.add_resource(custom_resource(definition, version, collection));
            }
        }
    }

    /// Stops serving the resources of a CustomResourceDefinition.
    pub(crate) fn remove_definition(&mut self, definition: &Value) {
        let group = text_at(definition, &["spec", "group"]);
        let plural = text_at(definition, &["spec", "names", "plural"]);
        let prefix = format!("{group}/");
        for (version, resources) in &mut self.by_version {
            if version.starts_with(&prefix) {
                resources.remove(plural);
            }
        }
        self.by_version.retain(|_, resources| !resources.is_empty());
    }
}

/// The compiled schema of a version in a CustomResourceDefinition; None for a version without one.
pub(crate) fn schema_of_version(
    version: &Value,
) -> Option<Result<Arc<StructuralSchema>, Vec<FieldError>>> {
    value_at(version, &["schema", "openAPIV3Schema"]).map(StructuralSchema::compile_once)
}

fn custom_resource(definition: &Value, version: &Value, collection: usize) -> ServedResource {
    let spec = |path: &[&str]| text_at(&definition["spec"], path).to_owned();
    let kind = spec(&["names", "kind"]);
    let singular = match spec(&["names", "singular"]) {
        name if name.is_empty() => kind.to_lowercase(),
        name => name,
    };
    let list_kind = match spec(&["names", "listKind"]) {
        name if name.is_empty() => format!("{kind}List"),
        name => name,
    };
    let short_names = list_at(definition, &["spec", "names", "shortNames"]);
    let status = value_at(version, &["subresources", "status"]).is_some();
    ServedResource {
        group: spec(&["group"]),
        version: text_at(version, &["name"]).to_owned(),
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
        // A definition that does not compile was refused before it came here.
        schema: schema_of_version(version).and_then(Result::ok),
    }
}

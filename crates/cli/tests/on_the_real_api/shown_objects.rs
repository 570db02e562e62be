//! A real API server takes every object that a page of the docs shows, by the definition of its
//! kind: Dogwatch's own, Cluster API's and Karpenter's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use dogwatch_testbed::{ControlPlane, fixtures};
use serde_json::{Value, json};

use super::{dogwatch, text};

/// The definitions of these kinds were not to be had as packages; `docs/limits.md` says so.
const NOT_SENT: [&str; 2] = [
    "machine.openshift.io/v1beta1 MachineHealthCheck",
    "remediation.medik8s.io/v1alpha1 NodeHealthCheck",
];

/// Its tasks show objects with mistakes.
const COURSE: &str = "learn.md";
/// Its spec keeps unknown fields, which are metal3's.
const TAKES_ANY_FIELD: &str = "metal3.io/v1alpha1 BareMetalHost";

struct ShownObject(Value);

impl ShownObject {
    /// API version and kind.
    fn kind(&self) -> String {
        let field = |name: &str| self.0[name].as_str().unwrap();
        format!("{} {}", field("apiVersion"), field("kind"))
    }

    fn namespace(&self) -> Option<&str> {
        self.0["metadata"]["namespace"].as_str()
    }
}

/// By page.
fn shown_objects() -> BTreeMap<String, Vec<ShownObject>> {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let files = fs::read_dir(docs).unwrap().map(|file| file.unwrap().path());
    let pages = files.filter(|file| file.extension().is_some_and(|ending| ending == "md"));
    let shown = pages.map(|file| {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let objects = objects_of(&fs::read_to_string(&file).unwrap());
        (name, objects)
    });
    let shown = shown.filter(|(name, objects)| name != COURSE && !objects.is_empty());
    shown.collect()
}

fn objects_of(page: &str) -> Vec<ShownObject> {
    let blocks = page.split("```yaml\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap());
    let documents = blocks.flat_map(|block| serde_saphyr::from_multiple(block).unwrap());
    documents
        .flat_map(objects_within)
        .map(ShownObject)
        .collect()
}

/// The value itself, or the templates of objects within it, filled in.
fn objects_within(value: Value) -> Vec<Value> {
    // A reference to an object has no metadata.
    if value["apiVersion"].is_string() && value["metadata"].is_object() {
        return vec![value];
    }
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .flat_map(|(_, it)| objects_within(it))
            .collect(),
        Value::Array(items) => items.into_iter().flat_map(objects_within).collect(),
        Value::String(text) if text.starts_with("apiVersion: ") => {
            objects_within(serde_saphyr::from_str(&filled_in(&text)).unwrap())
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// A Go template with a word in place of each value.
fn filled_in(template: &str) -> String {
    let mut parts = template.split("{{");
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        text.push_str("filled-in");
        text.push_str(part.split_once("}}").unwrap().1);
    }
    text
}

async fn start_with_definitions() -> ControlPlane {
    let builder = ControlPlane::builder().with_controllers([]);
    let plane = builder.start().await.unwrap();
    let ours = [&["crds"][..], &["crds", "--hosts"]].map(|words| text(&dogwatch(&plane, words)));
    let theirs = [
        fixtures::cluster_api_clusters(),
        fixtures::cluster_api_machines(),
        fixtures::machine_drain_rules(),
        fixtures::machine_health_checks(),
        fixtures::karpenter_node_pools(),
    ];
    let definitions = ours.into_iter().chain(theirs.map(|it| it.to_string()));
    let definitions = definitions.collect::<Vec<_>>().join("\n---\n");
    let kinds: Vec<Value> = serde_saphyr::from_multiple(&definitions).unwrap();
    let names = kinds.iter().map(|kind| kind["metadata"]["name"].as_str());
    let names: Vec<&str> = names.map(Option::unwrap).collect();
    plane.install_manifests(&definitions, &names).await.unwrap();
    plane
}

/// Asks whether the API server would create these objects.
async fn send(plane: &ControlPlane, objects: &[&Value]) -> Result<(), String> {
    let words = ["create", "--dry-run=server", "--validate=strict", "-f", "-"];
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    let sent = plane.run_kubectl(&words, &list.to_string()).await;
    sent.map(drop).map_err(|error| error.to_string())
}

fn misspelt(object: &Value) -> Value {
    let mut object = object.clone();
    let spec = match object.get_mut("spec") {
        Some(spec) => spec,
        None => &mut object,
    };
    spec["misspelt"] = json!(1);
    object
}

#[tokio::test]
async fn every_object_of_the_docs_is_taken_by_the_definition_of_its_kind() {
    let shown = shown_objects();
    let plane = start_with_definitions().await;
    let objects = shown.values().flatten();
    let namespaces: BTreeSet<&str> = objects.filter_map(ShownObject::namespace).collect();
    for namespace in namespaces {
        let create = ["create", "namespace", namespace];
        plane.run_kubectl(&create, "").await.unwrap();
    }
    let (mut sent, mut not_sent) = (BTreeMap::new(), BTreeSet::new());
    let mut failures = Vec::new();
    for (page, objects) in &shown {
        let (known, unknown): (Vec<_>, Vec<_>) = objects
            .iter()
            .partition(|one| !NOT_SENT.contains(&one.kind().as_str()));
        not_sent.extend(unknown.into_iter().map(ShownObject::kind));
        sent.extend(known.iter().map(|one| (one.kind(), one.0.clone())));
        let known: Vec<&Value> = known.into_iter().map(|one| &one.0).collect();
        if let Err(error) = send(&plane, &known).await {
            failures.push(format!("{page}: {error}"));
        }
    }
    assert_eq!(failures, [""; 0]);
    assert_eq!(not_sent, NOT_SENT.map(str::to_owned).into());
    unknown_fields_are_refused(&plane, sent).await;
}

/// A definition that takes everything shows nothing.
async fn unknown_fields_are_refused(
    plane: &ControlPlane,
    mut of_each_kind: BTreeMap<String, Value>,
) {
    of_each_kind.remove(TAKES_ANY_FIELD).unwrap();
    for kind in [
        "cluster.x-k8s.io/v1beta2 MachineDrainRule",
        "cluster.x-k8s.io/v1beta2 MachineHealthCheck",
        "dogwatch.dev/v1alpha1 NodeReboot",
        "dogwatch.dev/v1alpha1 PowerRemediation",
        "karpenter.sh/v1 NodePool",
    ] {
        assert!(of_each_kind.contains_key(kind), "{kind}: {of_each_kind:?}");
    }
    let wrong: Vec<Value> = of_each_kind.values().map(misspelt).collect();
    let wrong: Vec<&Value> = wrong.iter().collect();
    let refused = send(plane, &wrong).await.unwrap_err();
    let refusals = refused.matches("unknown field").count();
    assert_eq!(refusals, wrong.len(), "{refused}");
}

/// `docs/nvsentinel.md` has its object as a template within other YAML.
#[test]
fn an_object_in_a_template_is_found_too() {
    let shown = shown_objects();
    let mut reboots = shown["nvsentinel.md"]
        .iter()
        .filter(|one| one.kind().ends_with(" NodeReboot"));
    let name = &reboots.next().unwrap().0["metadata"]["name"];
    assert_eq!(name, "maintenance-filled-in-filled-in");
}

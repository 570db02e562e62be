//! MachineDrainRules of Cluster API: specification §10.2.

use dogwatch_core::drain::{DrainConfig, PodMark, PodRules};
use dogwatch_testbed::fixtures;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::core::DynamicObject;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::world::World;
use crate::support::objects::{self, CAPI, Kind};

const CLUSTER: Kind = ("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters");
const RULE: Kind = (
    "cluster.x-k8s.io",
    "v1beta2",
    "MachineDrainRule",
    "machinedrainrules",
);

pub fn honoring_cluster_api() -> DrainConfig {
    DrainConfig {
        rules: PodRules {
            honor: [PodMark::ClusterApiDrain].into(),
            ..PodRules::default()
        },
        ..DrainConfig::default()
    }
}

fn objects_of(world: &World, kind: Kind) -> Api<DynamicObject> {
    objects::objects(&world.client, &world.namespace, kind)
}

pub async fn install_cluster_api(client: &Client) {
    let kinds = [
        fixtures::cluster_api_machines(),
        fixtures::cluster_api_clusters(),
        fixtures::machine_drain_rules(),
    ];
    objects::install(client, kinds).await;
    for kind in [CAPI, CLUSTER, RULE] {
        objects::until_served(&objects::objects(client, "default", kind)).await;
    }
}

/// Annotates the node as Cluster API does.
pub async fn name_machine(world: &World, machine: &str) {
    let nodes: Api<Node> = Api::all(world.client.clone());
    let annotations = json!({
        "cluster.x-k8s.io/machine": machine,
        "cluster.x-k8s.io/cluster-namespace": world.namespace,
        "cluster.x-k8s.io/cluster-name": "c",
    });
    let body = json!({ "metadata": { "annotations": annotations } });
    objects::change(&nodes, &world.node, body).await;
}

/// A Machine with label `os=linux`, of Cluster `c` with label `stage=production`.
pub async fn make_machine(world: &World, name: &str, node: &str) {
    let labels = json!({ "stage": "production" });
    let cluster = json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": { "name": "c", "labels": labels }, "spec": { "paused": false } });
    objects::create(&objects_of(world, CLUSTER), cluster).await;
    let mut machine = fixtures::cluster_api_machine(name);
    machine["metadata"]["labels"] = json!({ "os": "linux" });
    let machines = objects_of(world, CAPI);
    objects::create(&machines, machine).await;
    objects::change_status(&machines, name, json!({ "nodeRef": { "name": node } })).await;
}

pub async fn make_rule(world: &World, name: &str, spec: Value) {
    let rule = json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDrainRule",
        "metadata": { "name": name }, "spec": spec });
    objects::create(&objects_of(world, RULE), rule).await;
}

pub fn with_app(app: &str) -> Value {
    json!({ "matchLabels": { "app": app } })
}

async fn pod_of(world: &World, app: &str) {
    let labels = json!({ "metadata": { "labels": { "app": app } } });
    world.pod(app, labels).await;
}

pub async fn machine_drain_rules_decide_as_in_cluster_api(world: &World) {
    install_cluster_api(&world.client).await;
    make_machine(world, "m", &world.node).await;
    name_machine(world, "m").await;
    let here = json!({ "matchLabels": { "kubernetes.io/metadata.name": world.namespace } });
    let selects = |labels: Value| json!({ "matchLabels": labels });
    for (name, spec) in [
        (
            "a-agents",
            json!({ "drain": { "behavior": "Skip" },
                "machines": [{ "selector": selects(json!({ "os": "linux" })) }],
                "pods": [{ "selector": with_app("agent") }] }),
        ),
        (
            "b-jobs",
            json!({ "drain": { "behavior": "WaitCompleted" },
                "machines": [{ "clusterSelector": selects(json!({ "stage": "production" })) }],
                "pods": [{ "selector": with_app("train"), "namespaceSelector": here }] }),
        ),
        (
            "c-databases",
            json!({ "drain": { "behavior": "Drain", "order": 10 },
                "pods": [{ "selector": with_app("database") }] }),
        ),
        (
            "d-windows",
            json!({ "drain": { "behavior": "Skip" },
                "machines": [{ "selector": selects(json!({ "os": "windows" })) }] }),
        ),
        (
            "e-databases",
            json!({ "drain": { "behavior": "Skip" },
                "pods": [{ "selector": with_app("database") }] }),
        ),
    ] {
        make_rule(world, name, spec).await;
    }
    for app in ["agent", "train", "database", "web"] {
        pod_of(world, app).await;
    }
    let drain = world.drain(honoring_cluster_api());
    let progress = world
        .until(&drain, |progress| {
            progress.gone == 1 && progress.held.len() == 2
        })
        .await;
    let held = progress.held.iter();
    let held: Vec<(&str, String)> = held
        .map(|held| (held.pod.name.as_str(), held.plan.why.to_string()))
        .collect();
    let rule = |name: &str| format!("MachineDrainRule {}/{name}", world.namespace);
    let expected = [("database", rule("c-databases")), ("train", rule("b-jobs"))];
    assert_eq!(held, expected);
    assert!(!world.is_deleting("train").await);
    let ended = json!({ "phase": "Succeeded" });
    objects::change_status(&world.api::<Pod>(), "train", ended).await;
    let progress = world.until_drained(&drain).await;
    assert_eq!(progress.gone, 3);
    assert_eq!(world.pods().await, ["agent"]);
}

pub async fn machine_drain_rules_of_another_clusters_machine_do_not_count(world: &World) {
    install_cluster_api(&world.client).await;
    let everything = json!({ "drain": { "behavior": "Skip" } });
    make_rule(world, "everything", everything).await;
    // Without annotations; then its Machine is in another cluster; then a Machine here has the name.
    pod_of(world, "one").await;
    let drain = world.drain(honoring_cluster_api());
    world.until_drained(&drain).await;
    assert_eq!(world.pods().await, [""; 0]);
    drop(drain);

    name_machine(world, "m").await;
    pod_of(world, "two").await;
    let drain = world.drain(honoring_cluster_api());
    world.until_drained(&drain).await;
    assert_eq!(world.pods().await, [""; 0]);
    drop(drain);

    make_machine(world, "m", "another-node").await;
    pod_of(world, "three").await;
    let drain = world.drain(honoring_cluster_api());
    world.until_drained(&drain).await;
    assert_eq!(world.pods().await, [""; 0]);
}

pub async fn a_machine_drain_rule_that_is_not_valid_holds_every_pod_and_is_named(world: &World) {
    install_cluster_api(&world.client).await;
    make_machine(world, "m", &world.node).await;
    name_machine(world, "m").await;
    let expressions = json!([{ "key": "app", "operator": "Near" }]);
    let broken = json!({ "drain": { "behavior": "Skip" },
        "pods": [{ "selector": { "matchExpressions": expressions } }] });
    make_rule(world, "broken", broken).await;
    pod_of(world, "web").await;
    let drain = world.drain(honoring_cluster_api());
    let progress = world
        .until(&drain, |progress| !progress.lookups_failed.is_empty())
        .await;
    let (lookup, why) = &progress.lookups_failed[0];
    assert_eq!(lookup.to_string(), "MachineDrainRules");
    let name = format!("MachineDrainRule {}/broken is not valid", world.namespace);
    assert!(why.starts_with(&name), "{why}");
    assert!(!world.is_deleting("web").await);

    let rules = objects_of(world, RULE);
    let corrected = json!({ "spec": { "pods": [{ "selector": with_app("agent") }] } });
    objects::change(&rules, "broken", corrected).await;
    world.until_drained(&drain).await;
    assert_eq!(world.pods().await, [""; 0]);
}

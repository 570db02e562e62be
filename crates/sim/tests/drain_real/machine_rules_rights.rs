//! MachineDrainRules with a coordinator's own account, without and with `deploy/machine-drain-rules`.

use dogwatch_testbed::ControlPlane;
use serde_json::json;

use crate::drain_cases::machine_rules::{
    honoring_cluster_api, install_cluster_api, make_machine, make_rule, name_machine, with_app,
};
use crate::drain_cases::world::World;
use crate::support::real::{NAMESPACE, client_that_asks_once};

const BASE: &str = include_str!("../../../../deploy/base/rbac.yaml");
const RIGHT: &str = include_str!("../../../../deploy/machine-drain-rules/rbac.yaml");

async fn apply(plane: &ControlPlane, manifests: &str) {
    let apply = ["apply", "-f", "-"];
    plane.run_kubectl(&apply, manifests).await.unwrap();
}

#[tokio::test]
async fn without_the_right_to_read_machine_drain_rules_no_pod_is_touched() {
    let plane = ControlPlane::start().await.unwrap();
    apply(&plane, NAMESPACE).await;
    apply(&plane, BASE).await;
    plane.wait_until_rights_are_in_force().await.unwrap();
    let account = plane
        .kubeconfig_of("dogwatch", "dogwatch-coordinator")
        .await;
    let coordinator = client_that_asks_once(&account.unwrap()).await;
    let world = World::on(client_that_asks_once(plane.admin_kubeconfig()).await).await;
    install_cluster_api(&world.client).await;
    make_machine(&world, "m", &world.node).await;
    name_machine(&world, "m").await;
    // Every object is read: the Cluster's labels decide, too.
    let selector = json!({ "matchLabels": { "stage": "production" } });
    let keeps = json!({ "drain": { "behavior": "Skip" },
        "machines": [{ "clusterSelector": selector }],
        "pods": [{ "selector": with_app("agent") }] });
    make_rule(&world, "agents", keeps).await;
    for app in ["agent", "web"] {
        let labels = json!({ "metadata": { "labels": { "app": app } } });
        world.pod(app, labels).await;
    }

    let drain = world.drain_as(coordinator, honoring_cluster_api());
    let progress = world
        .until(&drain, |progress| !progress.lookups_failed.is_empty())
        .await;
    let why = &progress.lookups_failed[0].1;
    assert!(why.contains("forbidden"), "{why}");
    assert_eq!(world.pods().await, ["agent", "web"]);

    apply(&plane, RIGHT).await;
    world.until_drained(&drain).await;
    assert_eq!(world.pods().await, ["agent"]);
}

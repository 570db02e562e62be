//! `do: RollFirst` with a coordinator's own account, without and with `deploy/roll-first`.

use std::time::Duration;

use dogwatch_testbed::ControlPlane;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::roll_first::{HOURS, roll_first, templates, web_on};
use crate::support::real::{NAMESPACE, client_that_asks_once};

const BASE: &str = include_str!("../../../../deploy/base/rbac.yaml");
const RIGHT: &str = include_str!("../../../../deploy/roll-first/rbac.yaml");
const LIMIT: &str = include_str!("../../../../deploy/roll-first/policy.yaml");

async fn apply(plane: &ControlPlane, manifests: &str) {
    let apply = ["apply", "-f", "-"];
    plane.run_kubectl(&apply, manifests).await.unwrap();
}

#[tokio::test]
async fn a_coordinator_needs_the_right_and_can_do_nothing_else_with_it() {
    let plane = ControlPlane::start().await.unwrap();
    apply(&plane, NAMESPACE).await;
    apply(&plane, BASE).await;
    plane.wait_until_rights_are_in_force().await.unwrap();
    let account = plane
        .kubeconfig_of("dogwatch", "dogwatch-coordinator")
        .await;
    let coordinator = client_that_asks_once(&account.unwrap()).await;

    let web = web_on(&plane, json!({})).await;
    let drain = web.world.drain_as(coordinator.clone(), roll_first(HOURS));
    let progress = web.world.until_drained(&drain).await;
    let said = progress.unrolled[0].to_string();
    assert!(said.contains("replicasets.apps"), "{said}");
    assert!(said.contains("forbidden"), "{said}");
    assert_eq!(templates(&web).await, 1);

    apply(&plane, RIGHT).await;
    apply(&plane, LIMIT).await;
    plane.wait_until_rights_are_in_force().await.unwrap();
    let web = web_on(&plane, json!({})).await;
    let deployments: Api<Deployment> = Api::namespaced(coordinator.clone(), &web.world.namespace);
    until_images_are_refused(&deployments).await;
    for (change, words) in [
        (json!({"spec": {"replicas": 5}}), "spec but its template"),
        (json!({"spec": {"paused": true}}), "spec but its template"),
        (
            json!({"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}),
            "template but an annotation",
        ),
        (
            json!({"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}),
            "no annotation but",
        ),
        (json!({"metadata": {"labels": {"a": "b"}}}), "metadata"),
    ] {
        let refused = try_patch(&deployments, &change).await.unwrap_err();
        assert!(refused.contains(words), "{change}: {refused}");
    }

    let drain = web.world.drain_as(coordinator, roll_first(HOURS));
    let progress = web.world.until_drained(&drain).await;
    assert_eq!(progress.unrolled, []);
    assert_eq!((templates(&web).await, web.fewest_ready()), (2, 1));
}

async fn try_patch(deployments: &Api<Deployment>, change: &Value) -> Result<(), String> {
    let params = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let answer = deployments
        .patch("web", &params, &Patch::Merge(change))
        .await;
    answer.map(|_| ()).map_err(|error| error.to_string())
}

/// Nothing reports when an API server applies a new policy.
async fn until_images_are_refused(deployments: &Api<Deployment>) {
    let containers = json!([{"name": "c", "image": "other"}]);
    let change = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let refused = async || {
        let answer = try_patch(deployments, &change).await;
        answer.is_err_and(|why| why.contains("template but an annotation"))
    };
    let wait = async {
        while !refused().await {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let patience = Duration::from_mins(1);
    tokio::time::timeout(patience, wait)
        .await
        .expect("the policy is in force");
}

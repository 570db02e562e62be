//! The owner of a coordinator's token cannot move Dogwatch's own pods to a node of their choice.

use serde_json::json;

use super::Who::{First, Unbound};
use super::{Call, FIRST, SECOND, Stage};
use crate::support::api::JSON;
use crate::support::objects;

fn eviction(path: &str, name: &str) -> Call {
    let eviction =
        json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name } });
    Call::new("POST", format!("{path}/{name}/eviction"), JSON, eviction)
}

#[tokio::test]
async fn a_coordinators_token_evicts_no_pod_of_dogwatchs_own_namespace() {
    const OWN: &str = "/api/v1/namespaces/dogwatch/pods";
    const REFUSED: &str = "evicts no pod of Dogwatch's own namespace";
    let stage = Stage::set().await;
    let api = &stage.cluster.api;
    for (name, node) in [("here", FIRST), ("elsewhere", SECOND)] {
        let pod = objects::pod(name, node, name);
        api.create(OWN, &pod).await;
    }
    stage
        .cluster
        .create("v1/pods", &objects::pod("tenant", FIRST, "tenant"))
        .await;
    for (who, name) in [
        (First, "here"),
        (First, "elsewhere"),
        (Unbound, "elsewhere"),
    ] {
        let what = format!("the pod {name}");
        let call = eviction(OWN, name);
        stage.attempt(&what, who, &call, Err(REFUSED)).await;
    }
    let pods = stage.cluster.path("v1/pods");
    let tenants = eviction(&pods, "tenant");
    stage
        .attempt("a tenant's pod", First, &tenants, Ok(()))
        .await;
    // The policy restricts coordinators only: an administrator can still drain.
    let own = eviction(OWN, "here");
    let evicted = api.attempt(own.verb, &own.path, own.kind, &own.body).await;
    evicted.expect("an administrator evicts it");
}

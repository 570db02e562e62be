//! A real API server accepts the other projects' definitions, and they are as strict as the
//! originals.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use dogwatch_testbed::{ControlPlane, fixtures};
use serde_json::{Value, json};

const APPLY: [&str; 5] = ["apply", "--server-side", "--validate=strict", "-f", "-"];

async fn kubectl(plane: &ControlPlane, words: &[&str], input: &Value) -> Result<String, String> {
    let input = input.to_string();
    let answer = plane.run_kubectl(words, &input).await;
    answer.map_err(|error| error.to_string())
}

async fn install(plane: &ControlPlane, kind: &Value) {
    kubectl(plane, &APPLY, kind).await.unwrap();
    let name = format!("crd/{}", kind["metadata"]["name"].as_str().unwrap());
    let wait = ["wait", "--for=condition=established", "--timeout=180s"];
    let words = [&wait[..], &[&name]].concat();
    kubectl(plane, &words, &Value::Null).await.unwrap();
    let get = ["get", &name, "-o", "jsonpath={.status.conditions[*].type}"];
    let conditions = kubectl(plane, &get, &Value::Null).await.unwrap();
    assert!(!conditions.contains("NonStructural"), "{conditions}");
}

#[tokio::test]
async fn others_kinds_are_taken_by_a_real_api_server_and_are_as_strict_as_theirs() {
    let plane = ControlPlane::start().await.unwrap();
    for kind in fixtures::all_definitions() {
        install(&plane, &kind).await;
    }
    machines_demand_their_links(&plane).await;
    metal3s_host_drops_what_is_ours(&plane).await;
}

async fn machines_demand_their_links(plane: &ControlPlane) {
    let mut machine = fixtures::cluster_api_machine("m");
    kubectl(plane, &APPLY, &machine).await.unwrap();
    machine["metadata"]["name"] = json!("n");
    let link = machine["spec"]["infrastructureRef"].as_object_mut();
    link.unwrap().remove("apiGroup");
    let create = ["create", "-f", "-"];
    let refused = kubectl(plane, &create, &machine).await.unwrap_err();
    assert!(refused.contains("infrastructureRef.apiGroup"), "{refused}");
    // Both versions show the same object.
    let get = ["get", "machines.v1beta1.cluster.x-k8s.io", "m"];
    kubectl(plane, &get, &Value::Null).await.unwrap();
    let openshift = fixtures::openshift_machine("m");
    kubectl(plane, &APPLY, &openshift).await.unwrap();
}

async fn metal3s_host_drops_what_is_ours(plane: &ControlPlane) {
    let host = fixtures::metal3_host("h");
    kubectl(plane, &APPLY, &host).await.unwrap();
    let status = |status: Value| json!({ "status": status }).to_string();
    let patch = [
        "patch",
        "bmh",
        "h",
        "--subresource=status",
        "--type=merge",
        "-p",
    ];
    let little = status(json!({ "poweredOn": true }));
    let refused = kubectl(plane, &[&patch[..], &[&little]].concat(), &Value::Null).await;
    let refused = refused.unwrap_err();
    assert!(refused.contains("status.operationalStatus"), "{refused}");
    let whole = status(json!({
        "errorMessage": "", "operationalStatus": "OK", "poweredOn": true, "power": { "state": "On" },
        "provisioning": { "ID": "", "state": "provisioned",
            "lastPoweredOn": "2026-01-01T00:00:00.000001Z" },
    }));
    kubectl(plane, &[&patch[..], &[&whole]].concat(), &Value::Null)
        .await
        .unwrap();
    let get = ["get", "bmh", "h", "-o", "json"];
    let host = kubectl(plane, &get, &Value::Null).await.unwrap();
    let host: Value = serde_json::from_str(&host).unwrap();
    assert_eq!(
        host["status"],
        json!({ "errorCount": 0, "errorMessage": "", "operationalStatus": "OK", "poweredOn": true,
            "provisioning": { "ID": "", "state": "provisioned" } })
    );
}

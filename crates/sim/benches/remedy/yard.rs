//! A Machine and a Node for each host, as large as they are elsewhere.

use std::ops::Range;

use dogwatch_testbed::fixtures;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};

use super::stage::{NAMESPACE, Stage, name};

/// How many are made at a time.
const MADE_AT_ONCE: usize = 32;
/// As many as a kubelet reports.
const IMAGES: usize = 50;
/// A provider's words on its machine.
const PROVIDER: usize = 2_000;
const NEED: &str = "host.metal3.io/external-remediation";

/// The kind of Machines.
pub async fn install(stage: &Stage) {
    let apply = ["apply", "--server-side", "-f", "-"];
    let kind = fixtures::openshift_machines().to_string();
    stage.plane.run_kubectl(&apply, &kind).await.unwrap();
    let kind = "crd/machines.machine.openshift.io";
    let established = ["wait", "--for=condition=established", "--timeout=60s", kind];
    stage.plane.run_kubectl(&established, "").await.unwrap();
}

/// So many hosts in all, with their Machines and Nodes.
pub async fn furnish(stage: &mut Stage, hosts: usize) {
    let begin = stage.bmcs.len();
    stage.add_hosts(hosts.saturating_sub(begin), 0).await;
    objects(stage, begin..hosts).await;
}

async fn objects(stage: &Stage, numbers: Range<usize>) {
    let (nodes, machines) = (&nodes(stage), &machines(stage));
    let made = numbers.map(|number| async move {
        let name = name(number).name;
        let params = PostParams::default();
        let uuid = stage.bmcs[number].machine().system_uuid().to_owned();
        nodes.create(&params, &node(&name, &uuid)).await.unwrap();
        machines.create(&params, &machine(&name)).await.unwrap();
        let status = json!({ "status": { "nodeRef": { "kind": "Node", "name": name } } });
        let (params, status) = (PatchParams::default(), Patch::Merge(status));
        let patched = machines.patch_status(&name, &params, &status).await;
        patched.unwrap();
    });
    futures::stream::iter(made)
        .buffer_unordered(MADE_AT_ONCE)
        .collect::<()>()
        .await;
}

/// What the node controller writes when a kubelet was silent for too long.
pub async fn give_up(stage: &Stage, number: usize) {
    let body = json!({ "status": { "conditions": [ready("Unknown")] } });
    let (params, body) = (PatchParams::default(), Patch::Strategic(body));
    let (nodes, name) = (nodes(stage), name(number).name);
    nodes.patch_status(&name, &params, &body).await.unwrap();
}

/// What a health check writes when it gives up on a machine.
pub async fn mark(stage: &Stage, number: usize) {
    let body = json!({ "metadata": { "annotations": { NEED: "" } } });
    let (params, body) = (PatchParams::default(), Patch::Merge(body));
    let (machines, name) = (machines(stage), name(number).name);
    machines.patch(&name, &params, &body).await.unwrap();
}

pub fn nodes(stage: &Stage) -> Api<Node> {
    Api::all(stage.client.clone())
}

fn machines(stage: &Stage) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("machine.openshift.io", "v1beta1", "Machine");
    let kind = ApiResource::from_gvk_with_plural(&kind, "machines");
    Api::namespaced_with(stage.client.clone(), NAMESPACE, &kind)
}

fn machine(name: &str) -> DynamicObject {
    let machine = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": { "name": name,
            "annotations": { "metal3.io/BareMetalHost": format!("{NAMESPACE}/{name}") } },
        "spec": { "providerSpec": { "value": { "userData": "x".repeat(PROVIDER) } } },
    });
    serde_json::from_value(machine).unwrap()
}

/// A Node whose kubelet has reported the machine's identity.
fn node(name: &str, uuid: &str) -> Node {
    let images: Vec<Value> = (0..IMAGES).map(image).collect();
    let ready = ready("True");
    let node = json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
        "status": { "conditions": [ready], "images": images, "nodeInfo": { "systemUUID": uuid } },
    });
    serde_json::from_value(node).unwrap()
}

fn ready(status: &str) -> Value {
    let at = "2026-01-01T00:00:00Z";
    json!({ "type": "Ready", "status": status, "reason": "Bench", "message": "",
        "lastHeartbeatTime": at, "lastTransitionTime": at })
}

fn image(number: usize) -> Value {
    let path = format!("registry.example/team/image-{number}");
    let digest = format!("{path}@sha256:{}", "a".repeat(64));
    json!({ "names": [digest, format!("{path}:v1.2.{number}")], "sizeBytes": 100_000_000 })
}

//! A coordinator's token gives rights over its own node only.

use serde_json::{Value, json};

use super::Who::{First, Person, Second, Unbound};
use super::{Call, Expected, FIRST, SECOND, Stage, Who, annotated};
use crate::support::api::{APPLY, JSON, MERGE, STRATEGIC};
use crate::support::objects;

const NODE: &str = "/api/v1/nodes/first";
const STATUS: &str = "/api/v1/nodes/first/status";
const NO_CLAIM: &str = "names no node";
const NOT_ITS_OWN: &str = "changes only its own Node";

fn merge(body: Value) -> Call {
    Call::new("PATCH", NODE, MERGE, body)
}

fn status(body: &Value) -> Call {
    let body = json!({ "status": body });
    Call::new("PATCH", STATUS, STRATEGIC, body)
}

fn condition(kind: &str) -> Call {
    let condition = json!({ "type": kind, "status": "True", "reason": "Test" });
    status(&json!({ "conditions": [condition] }))
}

type Row = (&'static str, Who, Call, Expected);

async fn each(rows: Vec<Row>) {
    let stage = Stage::set().await;
    let ready = json!({ "type": "Ready", "status": "True" });
    let ready = json!({ "status": { "conditions": [ready] } });
    let api = &stage.cluster.api;
    let written = api.attempt("PATCH", STATUS, STRATEGIC, &ready).await;
    written.expect("the administrator may");
    for (what, who, call, expected) in rows {
        stage.attempt(what, who, &call, expected).await;
    }
}

#[tokio::test]
async fn a_coordinator_writes_what_a_reboot_needs_onto_its_own_node() {
    let cordon = json!({ "spec": { "unschedulable": true } });
    let record = json!({
        "metadata": {
            "annotations": { "dogwatch.dev/reboot": "{}" },
            "labels": { "dogwatch.dev/reboot": "waiting" },
        },
        "spec": { "unschedulable": null },
    });
    each(vec![
        ("cordon", First, merge(cordon.clone()), Ok(())),
        ("record, label and uncordon", First, merge(record), Ok(())),
        ("an own condition", First, condition("Drained"), Ok(())),
    ])
    .await;
}

#[tokio::test]
async fn a_coordinators_token_changes_no_other_node_and_without_a_node_none_at_all() {
    let cordon = json!({ "spec": { "unschedulable": true } });
    let apply = json!({ "apiVersion": "v1", "kind": "Node", "spec": { "unschedulable": true } });
    let forced = format!("{NODE}?fieldManager=node/first&force=true");
    each(vec![
        ("cordon", Second, merge(cordon.clone()), Err(NOT_ITS_OWN)),
        ("cordon", Unbound, merge(cordon.clone()), Err(NO_CLAIM)),
        (
            "a forced apply",
            Second,
            Call::new("PATCH", forced, APPLY, apply),
            Err(NOT_ITS_OWN),
        ),
        (
            "a condition",
            Second,
            condition("Drained"),
            Err(NOT_ITS_OWN),
        ),
        ("a condition", Unbound, condition("Drained"), Err(NO_CLAIM)),
        (
            "another's annotation",
            Second,
            annotated(NODE, "dogwatch.dev/reboot", &json!("{}")),
            Err(NOT_ITS_OWN),
        ),
        (
            "who is no coordinator",
            Person,
            merge(cordon.clone()),
            Ok(()),
        ),
        (
            "who is no coordinator",
            Person,
            annotated(NODE, "other", &json!("x")),
            Ok(()),
        ),
    ])
    .await;
}

#[tokio::test]
async fn nothing_of_its_nodes_spec_but_unschedulable() {
    each(vec![
        (
            "a taint",
            First,
            merge(json!({ "spec": { "taints": [{ "key": "a", "effect": "NoSchedule" }] } })),
            Err("nothing of a Node's spec but unschedulable"),
        ),
        (
            "no taints",
            First,
            merge(json!({ "spec": { "taints": null } })),
            Err("nothing of a Node's spec but unschedulable"),
        ),
        (
            "a finalizer",
            First,
            merge(json!({ "metadata": { "finalizers": ["a.b/c"] } })),
            Err("no owner and no finalizer"),
        ),
        (
            "an owner",
            First,
            merge(json!({ "metadata": { "ownerReferences": [
                { "apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b" }] } })),
            Err("no owner and no finalizer"),
        ),
    ])
    .await;
}

#[tokio::test]
async fn no_label_and_no_annotation_of_its_node_that_is_not_dogwatchs() {
    each(vec![
        (
            "another label",
            First,
            merge(json!({ "metadata": { "labels": { "secrets": "here" } } })),
            Err("no label of a Node but"),
        ),
        (
            "no label",
            First,
            merge(json!({ "metadata": { "labels": { "kubernetes.io/hostname": null } } })),
            Err("no label of a Node but"),
        ),
        (
            "another annotation",
            First,
            annotated(NODE, "another", &json!("x")),
            Err("no annotation of a Node but"),
        ),
        (
            "a changed annotation",
            First,
            annotated(NODE, "other", &json!("x")),
            Err("no annotation of a Node but"),
        ),
        (
            "no annotation",
            First,
            annotated(NODE, "other", &Value::Null),
            Err("no annotation of a Node but"),
        ),
    ])
    .await;
}

#[tokio::test]
async fn nothing_of_its_nodes_status_but_its_own_conditions() {
    each(vec![
        (
            "readiness",
            First,
            condition("Ready"),
            Err("no condition of a Node but its own"),
        ),
        (
            "capacity",
            First,
            status(&json!({ "capacity": { "cpu": "64" } })),
            Err("nothing of a Node's status but conditions"),
        ),
        (
            "no readiness",
            First,
            status(&json!({ "conditions": [{ "type": "Ready", "$patch": "delete" }] })),
            Err("no condition of a Node but its own"),
        ),
        (
            "another label, changed through the status",
            First,
            Call::new(
                "PATCH",
                STATUS,
                MERGE,
                json!({ "metadata": { "labels": { "kubernetes.io/hostname": "x" } } }),
            ),
            Err("no label of a Node but"),
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_coordinators_token_deletes_only_pods_of_its_own_node() {
    let stage = Stage::set().await;
    let api = &stage.cluster.api;
    let pods = stage.cluster.path("v1/pods");
    for node in [FIRST, SECOND] {
        api.create(&pods, &objects::pod(&format!("on-{node}"), node, "web"))
            .await;
    }
    let mut unbound = objects::pod("on-none", "", "web");
    unbound["spec"]["nodeName"] = Value::Null;
    api.create(&pods, &unbound).await;
    let delete = |pod: &str| Call::new("DELETE", format!("{pods}/{pod}"), JSON, json!({}));
    let elsewhere = "deletes only pods that run there";
    let table: [(&str, Who, Expected); 5] = [
        ("on-second", First, Err(elsewhere)),
        ("on-none", First, Err(elsewhere)),
        ("on-first", Unbound, Err(NO_CLAIM)),
        ("on-first", First, Ok(())),
        ("on-second", Person, Ok(())),
    ];
    for (pod, who, expected) in table {
        stage.attempt(pod, who, &delete(pod), expected).await;
    }
}

/// NodeRestriction protects only Kubernetes' own labels.
#[tokio::test]
async fn a_nodes_own_credentials_do_not_take_it_out_of_every_budget() {
    let stage = Stage::set().await;
    let plane = &stage.cluster.plane;
    let bind = ["create", "clusterrolebinding", "kubelets-of-this-test"];
    let bind = [
        &bind[..],
        &["--clusterrole=system:node", "--group=system:nodes"],
    ]
    .concat();
    plane.run_kubectl(&bind, "").await.expect("a binding");
    let kubelet = ["--as=system:node:first", "--as-group=system:nodes"];
    let label = async |label: &str| {
        let label = [&["label", "node", FIRST, label][..], &kubelet].concat();
        plane
            .run_kubectl(&label, "")
            .await
            .map_err(|error| error.to_string())
    };
    // Retries until the API server has noticed that the right is gone.
    let deadline = tokio::time::Instant::now() + crate::support::PATIENCE;
    while let Err(refused) = label("rack=r1").await {
        assert!(tokio::time::Instant::now() < deadline, "{refused}");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let refused = label("dogwatch.dev/ignore=true")
        .await
        .expect_err("its own Node");
    assert!(refused.contains("out of every budget"), "{refused}");
    let ignored =
        |value: Value| merge(json!({ "metadata": { "labels": { "dogwatch.dev/ignore": value } } }));
    let coordinators = Err("denied request");
    let call = ignored(json!("true"));
    stage
        .attempt("its coordinator", First, &call, coordinators)
        .await;
    stage.attempt("a person", Person, &call, Ok(())).await;
    let refused = label("dogwatch.dev/ignore-")
        .await
        .expect_err("a person's label");
    assert!(refused.contains("out of every budget"), "{refused}");
    stage
        .attempt("a person", Person, &ignored(Value::Null), Ok(()))
        .await;
}

//! Kustomize can rename accounts. A policy that knows no account any more would restrict nobody,
//! without an error. Source: specification §6.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Call, FIRST, SECOND, Stage, Who, compare};
use crate::support::api::MERGE;
use crate::support::{Cluster, PATIENCE, Setting, token};

/// The coordinator's account and rights after `namePrefix: acme-`.
const PREFIXED: &str = "acme-dogwatch-coordinator";

async fn account(cluster: &Cluster, name: &str) {
    let account = json!({ "metadata": { "name": name } });
    let accounts = "/api/v1/namespaces/dogwatch/serviceaccounts";
    if cluster
        .api
        .get(&format!("{accounts}/{name}"))
        .await
        .is_some()
    {
        return;
    }
    cluster.api.create(accounts, &account).await;
    let subject = json!([{ "kind": "ServiceAccount", "name": name, "namespace": "dogwatch" }]);
    let binding = |kind: &str, role: &str| {
        json!({ "metadata": { "name": format!("{name}-{role}") }, "subjects": subject,
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role } })
    };
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    for (path, kind, role) in [
        (
            format!("{rbac}/clusterrolebindings"),
            "ClusterRole",
            "dogwatch-coordinator",
        ),
        (
            format!("{rbac}/clusterrolebindings"),
            "ClusterRole",
            "dogwatch-coordinator-node",
        ),
        (
            format!("{rbac}/namespaces/dogwatch/rolebindings"),
            "Role",
            "dogwatch-coordinator",
        ),
        (
            format!("{rbac}/namespaces/default/rolebindings"),
            "Role",
            "dogwatch-coordinator-events",
        ),
    ] {
        cluster.api.create(&path, &binding(kind, role)).await;
    }
    let rights = cluster.plane.wait_until_rights_are_in_force().await;
    rights.expect("the API server goes by its roles");
}

#[tokio::test]
async fn a_coordinator_whose_account_kustomize_has_renamed_is_limited_like_any_other() {
    let stage = Stage::set().await;
    account(&stage.cluster, PREFIXED).await;
    let token = token::on_node(&stage.cluster.api, PREFIXED, FIRST).await;
    let hand = super::hand(&stage.cluster, &token).await;
    let cordon = json!({ "spec": { "unschedulable": true } });
    let rows: [(&str, Call, super::Expected); 2] = [
        (
            FIRST,
            Call::new(
                "PATCH",
                format!("/api/v1/nodes/{FIRST}"),
                MERGE,
                cordon.clone(),
            ),
            Ok(()),
        ),
        (
            SECOND,
            Call::new("PATCH", format!("/api/v1/nodes/{SECOND}"), MERGE, cordon),
            Err("changes only its own Node"),
        ),
    ];
    let deadline = tokio::time::Instant::now() + PATIENCE;
    for (what, call, expected) in rows {
        // The API server does not report when a new right takes effect.
        let answer = loop {
            let answer = hand
                .attempt(call.verb, &call.path, call.kind, &call.body)
                .await;
            match &answer {
                Err(words) if words.contains("cannot patch resource") => {
                    assert!(tokio::time::Instant::now() < deadline, "{words}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Ok(_) | Err(_) => break answer,
            }
        };
        compare(what, Who::First, answer, expected);
    }
}

#[tokio::test]
async fn a_coordinator_that_the_policies_do_not_know_says_so_at_its_start() {
    let mut cluster = Cluster::new().await;
    cluster.plane.expect_refusals();
    account(&cluster, "reboots").await;
    let token = token::unbound(&cluster.api, "dogwatch", "reboots").await;
    let kubeconfig = cluster.plane.kubeconfig_for(&token);
    cluster.kubeconfig = kubeconfig.expect("a folder to write to");
    let machine = cluster.machine(Setting::default()).await;
    let words = [
        "the admission policies do not know ServiceAccount dogwatch/reboots",
        "dogwatch-coordinator",
    ];
    machine.until_event("AccountUnknown", &words).await;
    let node = cluster
        .api
        .get(&format!("/api/v1/nodes/{}", machine.name()))
        .await;
    assert_ne!(node, Some(Value::Null));
}

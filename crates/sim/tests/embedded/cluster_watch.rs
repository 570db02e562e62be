//! The controller's one watch of the cluster, on the embedded API server.

use std::time::Duration;

use dogwatch_core::name::NodeName;
use dogwatch_core::policy::ClusterPolicies;
use dogwatch_k8s::cluster::{ClusterView, ClusterWatch};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::policy_cases::world::World;
use crate::support::embedded::server;

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

async fn until(watch: &mut ClusterWatch, is_so: impl Fn(&ClusterView) -> bool) {
    let wait = async {
        while !is_so(watch.current_view()) {
            watch.wait_for_change().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_mins(10), wait).await;
    assert!(waited.is_ok(), "{:#?}", watch.current_view());
}

fn known(view: &ClusterView) -> Option<usize> {
    match &view.policies {
        ClusterPolicies::Known(policies) => Some(policies.len()),
        ClusterPolicies::NotYetRead | ClusterPolicies::Unreadable { .. } => None,
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_and_leases_of_any_use_come_and_go() {
    let server = server();
    let client = server.client_for_user("test");
    let nodes: Api<Node> = Api::all(client.clone());
    let leases: Api<Lease> = Api::namespaced(client.clone(), "default");
    let n1: Node = object(json!({ "metadata": { "name": "n1" } }));
    nodes.create(&PostParams::default(), &n1).await.unwrap();
    let mut watch = ClusterWatch::new(client.clone(), "default", || 0.5);
    until(&mut watch, |view| view.synced).await;
    let name = NodeName::new("n1").unwrap();
    assert!(watch.current_view().nodes.contains_key(&name));
    for (name, holder) in [
        ("dogwatch-default-0", "node/n1"),
        ("api.dogwatch.dev-x", "x"),
        ("controller.dogwatch.dev", ""),
    ] {
        let lease =
            object(json!({ "metadata": { "name": name }, "spec": { "holderIdentity": holder } }));
        leases.create(&PostParams::default(), &lease).await.unwrap();
    }
    until(&mut watch, |view| view.leases.len() == 3).await;
    let leases_seen = &watch.current_view().leases;
    let slot = leases_seen["dogwatch-default-0"].slot.as_ref().unwrap();
    assert_eq!(slot.lease.holder.as_ref().unwrap().as_str(), "node/n1");
    assert_eq!(leases_seen["api.dogwatch.dev-x"].slot, None);
    assert_eq!(leases_seen["controller.dogwatch.dev"].holder, None);
    nodes.delete("n1", &DeleteParams::default()).await.unwrap();
    leases
        .delete("api.dogwatch.dev-x", &DeleteParams::default())
        .await
        .unwrap();
    until(&mut watch, |view| {
        view.nodes.is_empty() && view.leases.len() == 2
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_installed_is_no_policies_and_is_found_when_it_comes() {
    let server = server();
    let world = World::without_the_kind(server.client_for_user("test")).await;
    let mut watch = ClusterWatch::new(server.client_for_user("controller"), "default", || 0.5);
    until(&mut watch, |view| view.synced).await;
    assert_eq!(known(watch.current_view()), Some(0));
    world.install_the_kind().await;
    world.create("workers", &json!({ "priority": 3 })).await;
    until(&mut watch, |view| known(view) == Some(1)).await;
    let standing = watch.current_view().policy_objects["workers"].clone();
    assert_eq!(standing.status, None);
    world.write_status("workers", &json!({ "nodes": 4 })).await;
    until(&mut watch, |view| {
        let status = view.policy_objects["workers"].status.as_ref();
        status.is_some_and(|status| status.nodes == 4)
    })
    .await;
    world.take_the_kind_out().await;
    until(&mut watch, |view| known(view) == Some(0)).await;
    assert!(watch.current_view().policy_objects.is_empty());
    // The kind was removed and installed again: its objects are seen, whatever their
    // resourceVersions.
    world.install_the_kind().await;
    world.create("again", &json!({})).await;
    until(&mut watch, |view| view.policy_objects.contains_key("again")).await;
    assert!(watch.current_view().synced);
}

/// An API server accepts a watch from the future of its store, and sends nothing.
#[tokio::test(start_paused = true)]
async fn a_store_that_was_restored_from_a_backup_is_seen_as_it_is() {
    let server = server();
    let nodes: Api<Node> = Api::all(server.client_for_user("test"));
    let create = async |name: &str| {
        let node: Node = object(json!({ "metadata": { "name": name } }));
        nodes.create(&PostParams::default(), &node).await.unwrap();
    };
    create("n1").await;
    let mut watch = ClusterWatch::new(server.client_for_user("controller"), "default", || 0.5);
    until(&mut watch, |view| view.synced).await;
    let backup = server.lock_store().make_backup();
    for name in ["n2", "n3", "n4", "n5"] {
        create(name).await;
    }
    until(&mut watch, |view| view.nodes.len() == 5).await;
    server.lock_store().restore_backup(&backup);
    create("n6").await;
    let names = |view: &ClusterView| view.nodes.keys().map(ToString::to_string).collect();
    until(&mut watch, |view| {
        let names: Vec<String> = names(view);
        names == ["n1", "n6"]
    })
    .await;
    assert!(watch.current_view().synced);
}

#[tokio::test(start_paused = true)]
async fn a_date_that_nobody_can_read_hides_no_object_from_a_list_or_a_watch() {
    let server = server();
    let client = server.client_for_user("test");
    let leases: Api<Lease> = Api::namespaced(client.clone(), "default");
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let create = async |name: &str| {
        let lease = json!({ "metadata": { "name": name }, "spec": {
            "holderIdentity": "node/n1", "acquireTime": "9999-12-31T23:59:59.000000Z" } });
        let request = http::Request::post(path).body(lease.to_string().into_bytes());
        client.request_text(request.unwrap()).await.unwrap();
    };
    create("dogwatch-default-0").await;
    let mut watch = ClusterWatch::new(server.client_for_user("controller"), "default", || 0.5);
    until(&mut watch, |view| view.synced).await;
    create("dogwatch-default-1").await;
    let readable = object(json!({ "metadata": { "name": "dogwatch-default-2" } }));
    let created = leases.create(&PostParams::default(), &readable).await;
    created.unwrap();
    until(&mut watch, |view| view.leases.len() == 3).await;
    let seen = &watch.current_view().leases;
    for name in ["dogwatch-default-0", "dogwatch-default-1"] {
        let holder = seen[name].slot.as_ref().unwrap().lease.holder.as_ref();
        assert_eq!(holder.unwrap().as_str(), "node/n1", "it counts as held");
    }
}

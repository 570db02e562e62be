//! `--identity=kubelet`: the node's own certificate in place of rights over the whole cluster.
//! Source: specification §6.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use dogwatch_testbed::ControlPlane;
use serde_json::{Value, json};

use crate::support::plane::USER;
use crate::support::{Cluster, Machine, Setting, objects};

const BASE: &str = include_str!("../../../../deploy/base/rbac.yaml");
const PKI: &str = "var/lib/kubelet/pki";
const CURRENT: &str = "kubelet-client-current.pem";
const FLAGS: [&str; 2] = [
    "--identity=kubelet",
    "--kubelet-certificate={host}/var/lib/kubelet/pki/kubelet-client-current.pem",
];

/// With `deploy/kubelet-identity`, the ServiceAccount can neither evict nor write a Node.
async fn without_rights_over_nodes(cluster: &Cluster) {
    cluster.plane.expect_refusals();
    let role = "clusterrole/dogwatch-coordinator-node";
    let binding = "clusterrolebinding/dogwatch-coordinator-node";
    let plane = &cluster.plane;
    let deleted = plane.run_kubectl(&["delete", role, binding], "").await;
    deleted.expect("deploy/base has them");
    let rights = plane.wait_until_rights_are_in_force().await;
    rights.expect("the API server goes by its roles");
}

async fn apply(cluster: &Cluster, manifests: &str) {
    let applied = cluster.plane.run_kubectl(&["apply", "-f", "-"], manifests);
    applied.await.expect("manifests that are accepted");
    let rights = cluster.plane.wait_until_rights_are_in_force().await;
    rights.expect("the API server goes by its roles");
}

/// Renews the certificate as the kubelet does: a new file, and a symbolic link to it.
fn renew(machine: &Machine, name: &str, pem: &str) {
    let folder = machine.file(PKI);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(name), pem).expect("a file");
    let new = folder.join("new-link");
    symlink(folder.join(name), &new).expect("a link");
    fs::rename(new, folder.join(CURRENT)).expect("a link");
}

#[tokio::test]
async fn a_certificate_of_another_node_is_refused_at_the_start() {
    let cluster = Cluster::new().await;
    let machine = cluster
        .machine_without_coordinator(Setting::flags(FLAGS))
        .await;
    renew(&machine, "1.pem", &certificate_of(&cluster, "another"));
    machine.start_coordinator().await;
    let words = ["system:node:another", "set --kubelet-certificate"];
    machine.log().until(&words).await;
    let mut coordinator = machine.take_coordinator().await;
    assert!(!coordinator.ended().await.success());
}

fn certificate_of(cluster: &Cluster, node: &str) -> String {
    let user = format!("system:node:{node}");
    let certificate = cluster.plane.client_certificate(&user, &["system:nodes"]);
    certificate.expect("the control plane has an authority")
}

/// A kubeconfig with this certificate.
fn kubeconfig(cluster: &Cluster, pem: &str) -> PathBuf {
    let admin = fs::read_to_string(cluster.plane.admin_kubeconfig()).expect("a kubeconfig");
    let folder = cluster.plane.folder();
    let path = folder.join("kubelet.pem");
    fs::write(&path, pem).expect("a file");
    let mut config: Value = serde_json::from_str(&admin).expect("kubeconfigs here are JSON");
    let path_text = path.display().to_string();
    config["users"][0]["user"] =
        json!({ "client-certificate": path_text, "client-key": path_text });
    let kubeconfig = folder.join("kubelet.kubeconfig");
    fs::write(&kubeconfig, config.to_string()).expect("a file");
    kubeconfig
}

#[tokio::test]
async fn by_the_kubelets_certificate_a_node_is_drained_and_rebooted_without_a_right_over_others() {
    let cluster = Cluster::new().await;
    without_rights_over_nodes(&cluster).await;
    let machine = cluster
        .machine_without_coordinator(Setting::flags(FLAGS))
        .await;
    // A certificate of another CA: 401, until the kubelet has a good one.
    let user = format!("system:node:{}", machine.name());
    let foreign = ControlPlane::foreign_certificate(&user, &["system:nodes"]);
    renew(&machine, "1.pem", &foreign.expect("a certificate"));
    machine.start_coordinator().await;
    cluster
        .pod(&objects::pod("web", machine.name(), "web"))
        .await;
    machine.touch("new kernel");
    machine.log().until(&["failed to patch the Node"]).await;
    let mark = cluster.plane.audit_mark().await.expect("an audit log");
    renew(&machine, "2.pem", &certificate_of(&cluster, machine.name()));
    machine.until_back().await;
    // The kubelet's account removes the request's annotation, which the policies allow.
    let request = json!({ "reason": "test", "requester": "admin" }).to_string();
    let annotations = json!({ "dogwatch.dev/reboot-requested": request });
    let path = format!("/api/v1/nodes/{}", machine.name());
    let asked_for = json!({ "metadata": { "annotations": annotations } });
    cluster.api.merge(&path, &asked_for).await;
    machine.until_commands(2).await;
    machine.until_back().await;

    let kubelet = format!("system:node:{}", machine.name());
    let asked = cluster
        .plane
        .audit_entries_since(mark)
        .await
        .expect("an audit log");
    let done = |verb: &str, resource: &str, subresource: &str, user: &str| {
        asked.iter().any(|entry| {
            entry.verb == verb
                && entry.resource == resource
                && entry.subresource == subresource
                && entry.user == user
                && entry.code < 300
        })
    };
    for (verb, resource, subresource) in [
        ("create", "pods", "eviction"),
        ("patch", "nodes", ""),
        ("patch", "nodes", "status"),
    ] {
        let what = format!("{verb} {resource}/{subresource}");
        assert!(done(verb, resource, subresource, &kubelet), "{what}");
        assert!(!done(verb, resource, subresource, USER), "{what}");
    }
    apply(&cluster, BASE).await;
}

#[tokio::test]
async fn the_kubelets_certificate_evicts_its_own_nodes_pods_and_no_others() {
    let cluster = Cluster::new().await;
    let machine = cluster
        .machine_without_coordinator(Setting::default())
        .await;
    let other = cluster
        .machine_without_coordinator(Setting::default())
        .await;
    for (name, node) in [("own", machine.name()), ("foreign", other.name())] {
        cluster.pod(&objects::pod(name, node, name)).await;
    }
    let pem = certificate_of(&cluster, machine.name());
    let api = cluster.api_of(&kubeconfig(&cluster, &pem)).await;
    let evict = async |name: &str| {
        let path = cluster.path(&format!("v1/pods/{name}/eviction"));
        let metadata = json!({ "name": name, "namespace": cluster.namespace });
        let eviction =
            json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata });
        api.attempt("POST", &path, crate::support::api::JSON, &eviction)
            .await
    };
    let refused = evict("foreign").await.expect_err("another node's pod");
    assert!(
        refused.contains("can only evict pods with spec.nodeName set to itself"),
        "{refused}"
    );
    evict("own").await.expect("its own pod");
    let path = format!("/api/v1/nodes/{}", other.name());
    let cordon = json!({ "spec": { "unschedulable": true } });
    let merge = crate::support::api::MERGE;
    let refused = api.attempt("PATCH", &path, merge, &cordon).await;
    refused.expect_err("another Node");
}

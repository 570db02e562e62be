//! An error at the start ends the process with advice; a later error is reported on the cluster.
//! Source: issue 3, "Bad input".

use std::net::TcpListener;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Cluster, Machine, PATIENCE, Setting, coordinator};

/// Runs it to its end: exit code and output.
async fn refused(kubeconfig: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let run = coordinator::command(kubeconfig).args(arguments).output();
    let output = tokio::time::timeout(PATIENCE, run)
        .await
        .expect("it ends")
        .expect("cargo has built it");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

fn says(output: &(Option<i32>, String), code: i32, words: &[&str]) {
    assert_eq!(output.0, Some(code), "{}", output.1);
    for word in words {
        assert!(output.1.contains(word), "no {word:?} in: {}", output.1);
    }
}

const NOWHERE: &str = "/nonexistent/kubeconfig";

#[tokio::test]
async fn wrong_flags_end_it_with_code_2_and_name_the_flag() {
    let kubeconfig = Path::new(NOWHERE);
    says(
        &refused(kubeconfig, &["--node-nam", "a"]).await,
        2,
        &["--node-nam", "--node-name"],
    );
    says(&refused(kubeconfig, &[]).await, 2, &["--node-name"]);
    says(
        &refused(kubeconfig, &["--node-name=A_B"]).await,
        2,
        &["--node-name"],
    );
    says(
        &refused(kubeconfig, &["--node-name=a", "--listen=9420"]).await,
        2,
        &["--listen", ":9420"],
    );
    says(
        &refused(kubeconfig, &["--node-name=a", "--settle=30"]).await,
        2,
        &["--settle", "90s"],
    );
}

#[tokio::test]
async fn a_missing_boot_id_file_or_kubeconfig_ends_it_with_code_1_and_names_it() {
    let kubeconfig = Path::new(NOWHERE);
    let missing = refused(
        kubeconfig,
        &["--node-name=a", "--boot-id-file=/nonexistent/id"],
    )
    .await;
    says(&missing, 1, &["/nonexistent/id", "--boot-id-file"]);
    says(
        &refused(kubeconfig, &["--node-name=a", "--listen=off"]).await,
        1,
        &["kubeconfig", NOWHERE],
    );
}

#[tokio::test]
async fn a_port_in_use_ends_it_with_code_1_and_names_the_flag() {
    let cluster = Cluster::new().await;
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let listen = format!("--listen={}", taken.local_addr().expect("bound"));
    let output = refused(&cluster.kubeconfig, &["--node-name=a", &listen]).await;
    says(&output, 1, &["in use", "--listen"]);
}

#[tokio::test]
async fn a_node_that_does_not_exist_ends_it_with_code_1_and_says_where_to_look() {
    let cluster = Cluster::new().await;
    let output = refused(
        &cluster.kubeconfig,
        &["--node-name=no-such-node", "--listen=off"],
    )
    .await;
    says(
        &output,
        1,
        &["no-such-node", "--node-name", "kubectl get nodes"],
    );
}

#[tokio::test]
async fn a_token_without_rights_ends_it_with_code_1_and_names_the_role() {
    let cluster = Cluster::new().await;
    let kubeconfig = cluster.plane.stranger();
    let output = refused(&kubeconfig, &["--node-name=a", "--listen=off"]).await;
    says(&output, 1, &["not allowed to read Node a", "deploy/base"]);
}

#[tokio::test]
async fn a_namespace_that_does_not_exist_is_said_on_the_node_until_it_does() {
    // The policies let nobody else write the coordinator's Events.
    let mut cluster = Cluster::without_policies().await;
    // With the shipped rights, the read would be refused before the Node is found missing.
    cluster.kubeconfig = cluster.plane.admin_kubeconfig().to_owned();
    let namespace = format!("{}-missing", cluster.namespace);
    let machine = cluster
        .machine(Setting::flags([&format!("--namespace={namespace}")]))
        .await;
    machine.touch("new kernel");
    let message = machine
        .until_condition("MaintenancePlanned", "False", "CannotLook")
        .await;
    assert!(
        message.contains(&namespace) && message.contains("not found"),
        "{message}"
    );
    machine.until_event("CannotLook", &[&namespace]).await;
    machine.log().until(&[&namespace]).await;
    cluster
        .api
        .create(
            "/api/v1/namespaces",
            &json!({ "metadata": { "name": namespace } }),
        )
        .await;
    machine.until_back().await;
}

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Gives the stranger these rights under this name.
async fn allow(cluster: &Cluster, name: &str, rules: Value) {
    let role = json!({ "metadata": { "name": name }, "rules": rules });
    cluster
        .api
        .create(&format!("{RBAC}/clusterroles"), &role)
        .await;
    bind(cluster, name).await;
}

async fn bind(cluster: &Cluster, name: &str) {
    let binding = json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "stranger" }],
    });
    cluster
        .api
        .create(&format!("{RBAC}/clusterrolebindings"), &binding)
        .await;
}

async fn forget(cluster: &Cluster, names: [&str; 2]) {
    for name in names {
        for kind in ["clusterrolebindings", "clusterroles"] {
            cluster.api.delete(&format!("{RBAC}/{kind}/{name}")).await;
        }
    }
}

#[tokio::test]
async fn rights_that_are_lost_later_are_said_on_the_node_and_missed_until_they_are_back() {
    let mut cluster = Cluster::without_policies().await;
    cluster.kubeconfig = cluster.plane.stranger();
    let rule = |groups: &[&str], resources: &[&str]| json!({ "apiGroups": groups, "resources": resources, "verbs": ["*"] });
    allow(
        &cluster,
        "stranger-nodes",
        json!([
            rule(&[""], &["nodes", "nodes/status", "events"]),
            rule(&["dogwatch.dev"], &["rebootpolicies"])
        ]),
    )
    .await;
    allow(
        &cluster,
        "stranger-rest",
        json!([rule(
            &["*"],
            &[
                "leases",
                "pods",
                "pods/eviction",
                "daemonsets",
                "poddisruptionbudgets",
                "volumeattachments"
            ]
        )]),
    )
    .await;
    let machine = cluster.machine(Setting::default()).await;
    cluster.block_drain_of(&machine).await;
    machine.log().until(&["started"]).await;
    cluster
        .api
        .delete(&format!("{RBAC}/clusterrolebindings/stranger-rest"))
        .await;

    machine.touch("new kernel");
    let message = machine
        .until_condition("MaintenancePlanned", "False", "CannotLook")
        .await;
    assert!(
        message.contains("leases") && message.contains("forbidden"),
        "{message}"
    );
    machine.until_event("CannotLook", &["forbidden"]).await;
    untouched(&machine).await;
    bind(&cluster, "stranger-rest").await;
    machine
        .until_condition("DrainInProgress", "True", "DrainBlocked")
        .await;
    cluster.unblock().await;
    machine.until_back().await;
    forget(&cluster, ["stranger-nodes", "stranger-rest"]).await;
}

async fn untouched(machine: &Machine) {
    assert_ne!(machine.node().await["spec"]["unschedulable"], true);
}

//! The shipped rights are sufficient, and none is superfluous. Source: specification §6.
//!
//! That nothing is refused is checked when a test returns its control plane.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Cluster, Machine, PATIENCE, Setting, objects};

#[tokio::test]
async fn no_shipped_right_is_unused() {
    let cluster = Cluster::new().await;
    let machine = cluster.machine(Setting::default()).await;
    news_that_a_former_run_has_told(&cluster).await;
    a_reboot_with_everything_in_it(&cluster, &machine).await;
    a_drain_that_ends_in_deleting(&cluster).await;
    a_lock_to_mend(&cluster, &machine).await;
    a_drain_by_a_rule_about_namespaces(&cluster).await;

    let used: BTreeSet<String> = cluster
        .asked()
        .await
        .into_iter()
        .map(|entry| right(&entry.resource, &entry.subresource, &entry.verb))
        .collect();
    let shipped = shipped(&cluster).await;
    let unused: Vec<&String> = shipped.difference(&used).collect();
    assert!(unused.is_empty(), "unused: {unused:?}");
}

/// A DaemonSet's pod, a PodDisruptionBudget that blocks for a while, a volume that detaches.
async fn a_reboot_with_everything_in_it(cluster: &Cluster, machine: &Machine) {
    cluster
        .daemon_pod(&objects::daemon_set("agent", "100ms"), machine)
        .await;
    let volume = format!("volume-of-{}", machine.name());
    cluster.attach(&volume, "data", machine).await;
    let mut pod = objects::pod("stateful", machine.name(), "stateful");
    pod["spec"]["volumes"] =
        json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
    cluster.pod(&pod).await;
    cluster.block_drain_of(machine).await;
    machine.touch("new kernel");
    machine
        .until_condition("DrainInProgress", "True", "DrainBlocked")
        .await;
    cluster.relax().await;
    let message = machine
        .until_condition("DrainInProgress", "True", "DetachingVolumes")
        .await;
    assert!(message.contains("1 volumes"), "{message}");
    cluster.detach(&volume).await;
    machine.until_back().await;
}

/// The next run finds the names of its Events taken, and reads who wrote them.
async fn news_that_a_former_run_has_told(cluster: &Cluster) {
    let machine = cluster.machine(Setting::default()).await;
    cluster.hold_lock().await;
    machine.touch("new kernel");
    machine.until_event("RebootPlanned", &[]).await;
    machine.kill_coordinator().await;
    machine.start_coordinator().await;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let looked = async || {
        let asked = cluster.asked().await;
        asked
            .iter()
            .any(|it| it.verb == "get" && it.resource == "events")
    };
    while !looked().await {
        assert!(tokio::time::Instant::now() < deadline, "nobody looked");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    cluster.free_lock().await;
    machine.until_back().await;
}

async fn a_drain_that_ends_in_deleting(cluster: &Cluster) {
    let setting = Setting::flags(["--drain-timeout=1s", "--on-drain-timeout=delete"]);
    let machine = cluster.machine(setting).await;
    cluster.unblock().await;
    cluster.block_drain_of(&machine).await;
    machine.touch("new kernel");
    machine
        .until_condition("MaintenanceInProgress", "True", "ReturnGatesShut")
        .await;
    cluster.unblock().await;
    machine.until_back().await;
}

/// A slot that lost its label.
async fn a_lock_to_mend(cluster: &Cluster, machine: &Machine) {
    cluster.delete_lease("dogwatch-default-0").await;
    let mut lease = objects::held_lease("node/ghost");
    lease["metadata"]["labels"] = json!({});
    lease["spec"] = json!({});
    cluster.lease(&lease).await;
    machine.touch("another kernel");
    machine.until_commands(2).await;
    machine.until_back().await;
}

/// Last, because the policy puts every node into another group.
async fn a_drain_by_a_rule_about_namespaces(cluster: &Cluster) {
    let named = json!({ "kubernetes.io/metadata.name": "default" });
    let pods = json!({ "namespaceSelector": { "matchLabels": named } });
    let policy = json!({
        "apiVersion": "dogwatch.dev/v1alpha1", "kind": "RebootPolicy",
        "metadata": { "name": "ruled" },
        "spec": { "drain": { "rules": [{ "pods": pods, "do": "Evict" }] } },
    });
    let policies = "/apis/dogwatch.dev/v1alpha1/rebootpolicies";
    cluster.api.create(policies, &policy).await;
    let machine = cluster.machine(Setting::default()).await;
    cluster
        .pod(&objects::pod("ruled", machine.name(), "ruled"))
        .await;
    machine.touch("new kernel");
    machine.until_back().await;
}

fn right(resource: &str, subresource: &str, verb: &str) -> String {
    let slash = if subresource.is_empty() { "" } else { "/" };
    format!("{verb} {resource}{slash}{subresource}")
}

/// Each right of the applied roles.
async fn shipped(cluster: &Cluster) -> BTreeSet<String> {
    let mut rights = BTreeSet::new();
    for role in [
        "clusterroles/dogwatch-coordinator",
        "clusterroles/dogwatch-coordinator-node",
        "clusterroles/dogwatch-delete-pods",
        "namespaces/dogwatch/roles/dogwatch-coordinator",
        "namespaces/default/roles/dogwatch-coordinator-events",
    ] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{role}");
        let role = cluster.api.get(&path).await.expect("it was applied");
        for rule in role["rules"].as_array().expect("rules") {
            for (resource, verb) in pairs(&rule["resources"], &rule["verbs"]) {
                rights.insert(format!("{verb} {resource}"));
            }
        }
    }
    rights
}

fn pairs<'a>(resources: &'a Value, verbs: &'a Value) -> impl Iterator<Item = (&'a str, &'a str)> {
    let texts = |list: &'a Value| {
        list.as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    };
    texts(resources).flat_map(move |resource| texts(verbs).map(move |verb| (resource, verb)))
}

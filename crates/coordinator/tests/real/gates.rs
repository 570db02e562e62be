//! The gates of a policy. Source: specification §2.6; promises S6, S7, S8.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dogwatch_core::policy::{BlockingAlerts, PrometheusGate, PrometheusQuery};
use dogwatch_testbed::prometheus::{TestAlert, TestPrometheus};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::read::{is_free, record};
use crate::support::{Cluster, Machine, PATIENCE, Setting, objects};

const POLICIES: &str = "/apis/dogwatch.dev/v1alpha1/rebootpolicies";
const LEASE: &str = "dogwatch-gated-0";

/// A policy for every node, with this gate.
async fn gated(cluster: &Cluster, gate: &Value) {
    let policy = json!({
        "apiVersion": "dogwatch.dev/v1alpha1", "kind": "RebootPolicy",
        "metadata": { "name": "gated" },
        "spec": { "gates": [gate] },
    });
    cluster.api.create(POLICIES, &policy).await;
}

fn alerts(server: &TestPrometheus) -> Value {
    json!({ "prometheus": { "url": server.base_url(), "alerts": {} } })
}

async fn shut(machine: &Machine) -> String {
    let kind = "MaintenancePlanned";
    machine.until_condition(kind, "False", "GateShut").await
}

/// A reboot that may not begin takes nothing: no cordon, and no lock that others need.
async fn untouched(cluster: &Cluster, machine: &Machine) {
    assert_ne!(machine.node().await["spec"]["unschedulable"], true);
    cluster.world.now(|seen| {
        let leases = seen.history.iter().filter(|change| change.name == LEASE);
        let mut held = leases.filter_map(|change| change.object.as_ref());
        assert!(held.all(is_free), "held while a gate was shut");
    });
    assert_eq!(machine.commands(), 0);
}

#[tokio::test]
async fn an_alert_is_named_while_it_keeps_the_node_waiting_and_its_end_lets_it_go() {
    let alert = [TestAlert::Firing("DiskFull")];
    let server = TestPrometheus::start_with_tls(&alert)
        .await
        .expect("it starts");
    until_alerts(&server, 1).await;
    let cluster = Cluster::new().await;
    gated(&cluster, &alerts(&server)).await;
    let ca_file = format!("--prometheus-ca-file={}", server.ca_file().display());
    let machine = cluster.machine(Setting::flags([&ca_file])).await;
    machine.touch("new kernel");
    let message = shut(&machine).await;
    let expected = format!("alert DiskFull at {}", server.base_url());
    assert!(message.contains(&expected), "{message}");
    untouched(&cluster, &machine).await;
    server.set_alerts(&[]).expect("it runs");
    machine.until_back().await;
    assert_eq!(machine.commands(), 1);
}

#[tokio::test]
async fn a_prometheus_that_cannot_be_reached_blocks_and_is_said() {
    let server = TestPrometheus::start(&[]).await.expect("it starts");
    let gate = alerts(&server);
    drop(server);
    let cluster = Cluster::new().await;
    gated(&cluster, &gate).await;
    let machine = cluster.machine(Setting::default()).await;
    machine.touch("new kernel");
    let message = shut(&machine).await;
    assert!(
        message.contains("cannot be queried: no connection"),
        "{message}"
    );
    untouched(&cluster, &machine).await;
    let open = json!({ "spec": { "gates": null } });
    cluster.api.merge(&format!("{POLICIES}/gated"), &open).await;
    machine.until_back().await;
}

#[tokio::test]
async fn a_gate_that_shuts_during_the_drain_stops_the_reboot_right_before_it() {
    let server = TestPrometheus::start(&[]).await.expect("it starts");
    let cluster = Cluster::new().await;
    gated(&cluster, &alerts(&server)).await;
    let machine = cluster.machine(Setting::default()).await;
    cluster.block_drain_of(&machine).await;
    machine.touch("new kernel");
    machine
        .until_condition("DrainInProgress", "True", "DrainBlocked")
        .await;
    server
        .set_alerts(&[TestAlert::Firing("TooFewReplicas")])
        .expect("it runs");
    until_alerts(&server, 1).await;
    cluster.unblock().await;
    let words = [
        "TooFewReplicas",
        "right before the reboot; undoing the drain",
    ];
    machine.until_event("GateShut", &words).await;
    let record = machine.until("it queues again later", waits).await;
    assert_eq!(record["failures"], 1, "{record}");
    cluster
        .world
        .until("the Lease is free", |seen| {
            is_free(seen.lease(LEASE)?).then_some(())
        })
        .await;
    assert_eq!(machine.commands(), 0);
}

/// The record, if the Node is uncordoned and waits for its retry time.
fn waits(node: &Value) -> Option<Value> {
    let record = record(node)?;
    let waits = record["phase"] == "waiting" && record["retryAfter"].is_string();
    (waits && node["spec"]["unschedulable"] != true).then_some(record)
}

#[tokio::test]
async fn a_pod_that_must_not_be_disturbed_is_named_until_it_is_gone() {
    let cluster = Cluster::new().await;
    let selector = json!({ "matchLabels": { "app": "batch" } });
    gated(&cluster, &json!({ "pods": { "selector": selector } })).await;
    let machine = cluster.machine(Setting::default()).await;
    let batch = |name: &str, node: &str| objects::pod(name, node, "batch");
    cluster.pod(&batch("night-run", machine.name())).await;
    // These two pods do not block: one has finished, one is on another node.
    cluster.pod(&batch("yesterdays", machine.name())).await;
    let over = json!({ "status": { "phase": "Succeeded" } });
    let status = cluster.path("v1/pods/yesterdays/status");
    cluster.api.merge(&status, &over).await;
    let elsewhere = batch("elsewhere", "another-node");
    cluster.create("v1/pods", &elsewhere).await;
    machine.touch("new kernel");
    let message = shut(&machine).await;
    let pod = format!("{}/night-run", cluster.namespace);
    assert!(message.contains(&pod), "{message}");
    for open in ["yesterdays", "elsewhere"] {
        assert!(!message.contains(open), "{message}");
    }
    untouched(&cluster, &machine).await;
    cluster.api.delete(&cluster.path("v1/pods/night-run")).await;
    machine.until_back().await;
}

#[tokio::test]
async fn the_token_goes_to_no_server_that_only_a_policy_names() {
    let (url, asked) = nosy().await;
    let cluster = Cluster::new().await;
    let gate = json!({ "prometheus": { "url": url, "query": "up == 0" } });
    gated(&cluster, &gate).await;
    let token = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(token.path(), "secret-token").expect("a file");
    let file = format!("--prometheus-token-file={}", token.path().display());
    let origin = "--prometheus-token-origin=https://prometheus.example:9090";
    let machine = cluster.machine(Setting::flags([&file, origin])).await;
    machine.touch("new kernel");
    let message = shut(&machine).await;
    let words = "401 Unauthorized; no token was sent, because --prometheus-token-origin is another";
    assert!(message.contains(words), "{message}");
    let asked = asked.lock().expect("nobody panics with it locked").clone();
    assert!(
        asked.starts_with("GET /api/v1/query?query=up%20%3D%3D%200 "),
        "{asked}"
    );
    assert!(!asked.contains("secret-token"), "{asked}");
    assert!(!machine.log().text().contains("secret-token"));
    untouched(&cluster, &machine).await;
}

/// A server that demands a token from every client; returns its address and all requests.
async fn nosy() -> (String, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let asked = Arc::new(Mutex::new(String::new()));
    let told = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).await.unwrap_or(0);
            let text = String::from_utf8_lossy(&bytes[..read]);
            told.lock()
                .expect("nobody panics with it locked")
                .push_str(&text);
            let answer = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n";
            // Fails only if the client has gone.
            let _ = stream.write_all(answer).await;
        }
    });
    (url, asked)
}

/// Waits until the server itself reports this number of active alerts.
async fn until_alerts(server: &TestPrometheus, count: usize) {
    let asks =
        dogwatch_prometheus::PrometheusClient::new(dogwatch_prometheus::PrometheusSettings {
            ca_file: Some(server.ca_file()),
            ..dogwatch_prometheus::PrometheusSettings::default()
        });
    let gate = PrometheusGate {
        url: server.base_url().to_owned(),
        ask: PrometheusQuery::Alerts(BlockingAlerts::default()),
    };
    let active = async {
        while asks.shut_reasons_of(&gate).await.len() != count {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, active).await;
    waited.expect("its rules are evaluated once a second");
}

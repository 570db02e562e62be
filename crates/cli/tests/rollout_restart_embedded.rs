//! `dogwatch rollout-restart` on the embedded cluster, whose own controllers and kubelets do the
//! work.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

use std::sync::Arc;
use std::time::Duration;

use dogwatch_kubesim::api::{ApiServer, ApiServerOptions};
use dogwatch_kubesim::clock::TokioClock;
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_kubesim::world::cluster::{
    ClusterClients, ClusterSpec, SimulatedCluster, SimulatedWorkload, WorkloadKind,
};
use serde_json::json;

const SHORT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn new_pods_are_waited_for_on_the_embedded_cluster_too() {
    let mut spec = ClusterSpec::new(2, SimulationSeed(3));
    spec.ready_after = SHORT;
    spec.starts_after = SHORT;
    spec.stops_after = SHORT;
    spec.settles_within = Duration::from_mins(3);
    spec.workloads = vec![
        SimulatedWorkload::new(WorkloadKind::Deployment { replicas: 3 }, "web"),
        SimulatedWorkload::new(WorkloadKind::ReplicaSet { replicas: 1 }, "queue"),
    ];
    let clock = Arc::new(TokioClock::starting_at(jiff::Timestamp::now()));
    let server = ApiServer::new(Arc::clone(&clock) as Arc<_>, ApiServerOptions::default());
    let cluster = SimulatedCluster::build_and_settle(
        spec,
        ClusterClients::for_embedded_server(&server),
        clock,
    );
    let cluster = cluster.await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());

    let output = tokio::select! {
        () = server.serve_http(listener) => unreachable!("it serves for ever"),
        output = restart(&address, &["deploy/web"]) => output,
    };
    assert!(
        output.contains("deployment/web: restarted: 3 pods are ready"),
        "{output}"
    );
    drop(cluster);
}

async fn restart(address: &str, args: &[&str]) -> String {
    let home = tempfile::tempdir().unwrap();
    let kubeconfig = home.path().join("kubeconfig");
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "stage",
        "clusters": [{ "name": "stage", "cluster": { "server": address } }],
        "contexts": [{ "name": "stage", "context": { "cluster": "stage", "user": "tester" } }],
        "users": [{ "name": "tester", "user": { "token": "tester" } }],
    });
    std::fs::write(&kubeconfig, text.to_string()).unwrap();
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_dogwatch"))
        .env_clear()
        .env("KUBECONFIG", kubeconfig)
        .args(["rollout-restart", "--timeout", "180s"])
        .args(args)
        .output()
        .await
        .unwrap();
    let both = [output.stdout, output.stderr].concat();
    String::from_utf8(both).unwrap()
}

//! The controller serves the lock API, and callers that wait get an answer when it ends.

use std::process::Output;

use rustix::process::Signal;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::metal::apply;
use crate::support::{Controller, eventually, get, plane};

pub async fn call(path: &str, address: &str, host: &str) -> Output {
    let url = format!("http://{address}/api/v1/{path}");
    let form = format!("hostname={host}");
    let words = ["-sS", "-w", "%{http_code}", "-d", &form, &url];
    Command::new("curl").args(words).output().await.unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[tokio::test]
async fn a_host_locks_and_unlocks_and_who_waits_is_told_when_the_controller_ends() {
    let plane = plane().await;
    let flags = [
        "--components=lock",
        "--lock-auth=none",
        "--lock-listen=127.0.0.1:0",
        "--listen=127.0.0.1:0",
    ];
    let mut controller = Controller::with(plane.admin_kubeconfig(), &flags);
    let address = controller.field("serves the lock API", "address").await;
    let first = text(&call("lock", &address, "a.example").await);
    assert!(first.ends_with("\n200"), "{first}");
    let lease = get(&plane, &["lease", "dogwatch-default-0", "-n", "dogwatch"]).await;
    assert_eq!(lease["spec"]["holderIdentity"], "api/a.example");
    let waits = tokio::spawn({
        let address = address.clone();
        async move { call("lock", &address, "b.example").await }
    });
    let metrics = controller
        .field("serves /metrics, /healthz and /readyz", "address")
        .await;
    eventually(|| async {
        let url = format!("http://{metrics}/metrics");
        let page = text(
            &Command::new("curl")
                .args(["-sS", &url])
                .output()
                .await
                .unwrap(),
        );
        let waiting = page.contains("\ndogwatch_lock_requests_waiting 1\n");
        waiting.then_some(()).ok_or(page)
    })
    .await;
    controller.signal(Signal::TERM);
    let answer = text(&waits.await.unwrap());
    assert!(answer.ends_with("\n503"), "{answer}");
    assert!(controller.ended().await.success());
    let lease = get(&plane, &["lease", "dogwatch-default-0", "-n", "dogwatch"]).await;
    assert_eq!(
        lease["spec"]["holderIdentity"], "api/a.example",
        "what was answered stays"
    );

    // A second process serves the same lock.
    let other = Controller::with(plane.admin_kubeconfig(), &flags);
    let address = other.field("serves the lock API", "address").await;
    let freed = text(&call("unlock", &address, "a.example").await);
    assert!(freed.ends_with("\n200"), "{freed}");
    let next = text(&call("lock", &address, "b.example").await);
    assert!(next.ends_with("\n200"), "{next}");
}

/// Nobody who reaches the metrics port may cause the kubelet to restart the controller.
#[tokio::test]
async fn idle_sockets_on_the_metrics_port_do_not_keep_the_probes_from_their_answer() {
    let plane = plane().await;
    let flags = [
        "--components=healer",
        "--listen=127.0.0.1:0",
        "--probe-listen=127.0.0.1:0",
    ];
    let controller = Controller::with(plane.admin_kubeconfig(), &flags);
    let said = "serves /metrics, /healthz and /readyz";
    let metrics = controller.field(said, "address").await;
    let probes = controller
        .field("serves the kubelet's probes", "address")
        .await;
    let mut idle = Vec::new();
    for _ in 0..300 {
        idle.push(TcpStream::connect(&metrics).await.unwrap());
    }
    for url in [
        format!("http://{probes}/healthz"),
        format!("http://{metrics}/metrics"),
    ] {
        // The kubelet waits as long.
        let words = ["-sS", "--max-time", "5", "-w", "%{http_code}", &url];
        let answer = Command::new("curl").args(words).output().await.unwrap();
        let answer = text(&answer);
        assert!(answer.ends_with("\n200"), "{url}: {answer}");
    }
}

#[tokio::test]
async fn a_call_that_a_pause_forbids_is_told_why_and_one_that_waits_is_in_status_and_explain() {
    let plane = plane().await;
    let policy = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "RebootPolicy",
        "metadata": { "name": "frozen" },
        "spec": { "nodeSelector": { "matchLabels": { "pool": "frozen" } },
            "paused": { "reason": "freeze until Monday" } } });
    let node = json!({ "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": "frozen-1", "labels": { "pool": "frozen" } } });
    for object in [&policy, &node] {
        apply(&plane, &object.to_string()).await;
    }
    let flags = [
        "--components=lock",
        "--lock-auth=none",
        "--lock-listen=127.0.0.1:0",
        "--listen=off",
    ];
    let controller = Controller::with(plane.admin_kubeconfig(), &flags);
    let address = controller.field("serves the lock API", "address").await;
    for form in ["hostname=frozen-1", "hostname=frozen-1&wait=false"] {
        let url = format!("http://{address}/api/v1/lock");
        let words = ["-sSi", "-d", form, &url];
        let answer = Command::new("curl").args(words).output().await.unwrap();
        let answer = text(&answer);
        assert!(answer.starts_with("HTTP/1.1 409 "), "{form}: {answer}");
        assert!(answer.contains("freeze until Monday"), "{form}: {answer}");
        assert!(answer.contains("\nretry-after: 600\r"), "{form}: {answer}");
    }
    let url = format!("http://{address}/api/v1/lock");
    let words = ["-sS", "-d", "hostname=frozen-1&wait=true", &url];
    let _waits = Command::new("curl")
        .args(words)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    for words in [["status", "locks"], ["explain", "node/frozen-1"]] {
        eventually(|| async {
            let shown = Command::new(env!("CARGO_BIN_EXE_dogwatch"))
                .env("KUBECONFIG", plane.admin_kubeconfig())
                .args(words)
                .output()
                .await
                .unwrap();
            let shown = String::from_utf8(shown.stdout).unwrap();
            let is_told = shown.contains("api/frozen-1") && shown.contains("freeze until Monday");
            is_told.then_some(()).ok_or(shown)
        })
        .await;
    }
}

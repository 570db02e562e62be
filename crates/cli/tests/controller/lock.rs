//! The lock is served by the program, and given back when it ends.

use std::process::Output;

use rustix::process::Signal;
use tokio::process::Command;

use crate::support::{Controller, eventually, get, plane};

async fn call(path: &str, address: &str, host: &str) -> Output {
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
    let mut controller = Controller::with(plane.kubeconfig(), &flags);
    let address = controller.field("the lock is served", "address").await;
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

    // Another process serves the same lock.
    let other = Controller::with(plane.kubeconfig(), &flags);
    let address = other.field("the lock is served", "address").await;
    let freed = text(&call("unlock", &address, "a.example").await);
    assert!(freed.ends_with("\n200"), "{freed}");
    let next = text(&call("lock", &address, "b.example").await);
    assert!(next.ends_with("\n200"), "{next}");
}

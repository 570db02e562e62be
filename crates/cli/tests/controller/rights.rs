//! The rights that are shipped for the controller: enough for what the program does, and not one too
//! many. Source: specification §6. Those that only the healer needs are looked at in
//! `crates/sim/tests/heal_on_real.rs`; those for hosts' power (`power:`), schedules (`schedule:`) and other
//! health checks (`handshake:`) in their own tests.

use std::collections::BTreeSet;
use std::process::Output;

use dogwatch_testbed::{AuditEntry, ControlPlane, rights_in};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{Controller, eventually, get, installed};

const ACCOUNT: &str = "system:serviceaccount:dogwatch:dogwatch-controller";
const ROLES: &str = include_str!("../../../../deploy/base/controller-rbac.yaml");
/// What stands in the cluster: a Node with pods of every kind, a policy that deletes in the end, and
/// somebody who may lock.
const STAGE: &str = include_str!("rights.yaml");

#[tokio::test]
async fn a_locked_node_and_a_policy_use_every_right_that_is_not_the_healers_and_no_other() {
    let plane = installed(&["--with-policies=deny"]).await;
    stage(&plane).await;
    let token = plane.service_account_token("dogwatch", "dogwatch-controller", None);
    let kubeconfig = plane.kubeconfig_for(&token.await.unwrap()).unwrap();
    let flags = ["--lock-listen=127.0.0.1:0", "--listen=off"];
    let mut controller = Controller::with(&kubeconfig, &flags);
    let address = controller.field("the lock is served", "address").await;
    let token = plane.service_account_token("default", "host", None).await;
    let token = token.unwrap();
    let locks = tokio::spawn({
        let (address, token) = (address.clone(), token.clone());
        async move { call("lock", &address, &token).await }
    });
    // The volume is attached until it is watched, so that its end is seen.
    eventually(|| async {
        let asked = asked(&plane).await;
        let watched = asked.contains("watch volumeattachments");
        watched.then_some(()).ok_or_else(|| format!("{asked:?}"))
    })
    .await;
    kubectl(&plane, &["delete", "volumeattachment", "volume"]).await;
    let locked = locks.await.unwrap();
    assert!(locked.ends_with("\n200"), "{locked}");
    let node = get(&plane, &["node", "n1"]).await;
    assert_eq!(node["spec"]["unschedulable"], true);
    let unlocked = call("unlock", &address, &token).await;
    assert!(unlocked.ends_with("\n200"), "{unlocked}");
    eventually(|| async {
        let asked = asked(&plane).await;
        let written = asked.contains("patch rebootpolicies/status");
        written.then_some(()).ok_or_else(|| format!("{asked:?}"))
    })
    .await;
    controller.signal(Signal::TERM);
    assert!(controller.ended().await.success());

    let used = asked(&plane).await;
    let shipped = rights_in(&[ROLES], |why| {
        !ELSEWHERE.iter().any(|it| why.starts_with(it))
    });
    assert!(shipped.len() > 20, "{shipped:?}");
    let unused: Vec<&String> = shipped.difference(&used).collect();
    assert!(unused.is_empty(), "unused: {unused:?}");
}

async fn call(path: &str, address: &str, token: &str) -> String {
    let url = format!("http://{address}/api/v1/{path}");
    let bearer = format!("authorization: Bearer {token}");
    let words = [
        "-sS",
        "-w",
        "%{http_code}",
        "-H",
        &bearer,
        "-d",
        "hostname=n1",
        &url,
    ];
    let output: Output = Command::new("curl").args(words).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

async fn kubectl(plane: &ControlPlane, words: &[&str]) {
    plane.run_kubectl(words, "").await.unwrap();
}

/// There is no kubelet, and no controller of budgets: their words are written here.
async fn stage(plane: &ControlPlane) {
    let apply = ["apply", "--server-side", "-f", "-"];
    plane.run_kubectl(&apply, STAGE).await.unwrap();
    let status = |kind: &str, name: &str, status: Value| {
        let words = [
            "patch",
            kind,
            name,
            "--subresource=status",
            "--type=merge",
            "-p",
        ];
        let mut words = words.map(str::to_owned).to_vec();
        words.push(json!({ "status": status }).to_string());
        words
    };
    let ready = json!([{ "type": "Ready", "status": "True" }]);
    let running = json!({ "phase": "Running", "conditions": ready });
    let full = json!({ "observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1,
        "desiredHealthy": 1, "expectedPods": 1 });
    for words in [
        status("node", "n1", json!({ "conditions": ready })),
        status("pod", "guarded", running),
        status("pdb", "guarded", full),
    ] {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        kubectl(plane, &words).await;
    }
    let set = get(plane, &["daemonset", "agent"]).await;
    let owner = json!([{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent",
        "uid": set["metadata"]["uid"], "controller": true }]);
    let owned = json!({ "metadata": { "ownerReferences": owner } }).to_string();
    kubectl(
        plane,
        &["patch", "pod", "agent", "--type=merge", "-p", &owned],
    )
    .await;
}

/// What the controller has asked so far; nothing was refused.
async fn asked(plane: &ControlPlane) -> BTreeSet<String> {
    let mut entries = plane.audit().await.unwrap();
    entries.retain(|entry| entry.user == ACCOUNT);
    let refused: Vec<&AuditEntry> = entries.iter().filter(|entry| entry.code == 403).collect();
    assert!(
        refused.is_empty(),
        "what is shipped does not let it work: {refused:#?}"
    );
    entries.iter().map(AuditEntry::right).collect()
}

/// Whose rights are looked at in tests of their own, by how the comment begins.
const ELSEWHERE: [&str; 4] = ["healer", "power:", "schedule:", "handshake:"];

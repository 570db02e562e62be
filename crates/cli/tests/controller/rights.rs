//! The shipped rights of the controller and of the lock API are sufficient, and none is
//! superfluous. Source: specification §6. `crates/sim/tests/heal_on_real.rs` tests the rights that
//! only the healer needs; those for power (`power:`), schedules (`schedule:`), `NodeReboots:` and
//! other health checks (`handshake:`) have tests of their own: `power_on_real.rs` (power cycles of
//! NodeReboots too), `schedule_on_real.rs`, `node_reboot_on_real.rs` and `handshake_on_real.rs`
//! there.

use std::collections::BTreeSet;
use std::process::Output;

use dogwatch_testbed::{AuditEntry, ControlPlane, rights_in_manifests};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{Controller, eventually, get, installed};

const CONTROLLER: &str = "dogwatch-controller";
const LOCK: &str = "dogwatch-lock";
const ROLES: &str = include_str!("../../../../deploy/base/controller-rbac.yaml");
/// For the policy that deletes pods after the deadline.
const DELETE_PODS: &str = include_str!("../../../../deploy/delete-pods/rbac.yaml");
const LOCK_ROLES: &str = include_str!("../../../../deploy/lock/rbac.yaml");
/// A Node with pods of every kind, a policy that deletes pods after the deadline, and an account
/// that may lock.
const STAGE: &str = include_str!("rights.yaml");

#[tokio::test]
async fn the_lock_api_uses_every_right_that_is_shipped_for_it_and_no_other() {
    let plane = installed(&["--with-policies=deny"]).await;
    stage(&plane).await;
    for roles in [LOCK_ROLES, DELETE_PODS] {
        let apply = ["apply", "--server-side", "-f", "-"];
        plane.run_kubectl(&apply, roles).await.unwrap();
    }
    let kubeconfig = plane.kubeconfig_of("dogwatch", LOCK).await.unwrap();
    let flags = [
        "--components=lock",
        "--lock-listen=127.0.0.1:0",
        "--listen=off",
    ];
    let mut lock = Controller::with(&kubeconfig, &flags);
    let address = lock.field("serves the lock API", "address").await;
    let token = host_token(&plane).await;
    let locks = tokio::spawn({
        let (address, token) = (address.clone(), token.clone());
        async move { call("lock", &address, &token, "n1").await }
    });
    // The volume stays attached until the lock API watches it, so that its detachment is observed.
    until_asked(&plane, LOCK, "watch volumeattachments").await;
    kubectl(&plane, &["delete", "volumeattachment", "volume"]).await;
    let locked = locks.await.unwrap();
    assert!(locked.ends_with("\n200"), "{locked}");
    let node = get(&plane, &["node", "n1"]).await;
    assert_eq!(node["spec"]["unschedulable"], true);
    let unlocked = call("unlock", &address, &token, "n1").await;
    assert!(unlocked.ends_with("\n200"), "{unlocked}");
    for path in ["lock", "unlock"] {
        let answer = call(path, &address, &token, "storage-1").await;
        assert!(answer.ends_with("\n200"), "{answer}");
    }
    lock.signal(Signal::TERM);
    assert!(lock.ended().await.success());

    let used = asked(&plane, LOCK).await;
    let shipped = rights_in_manifests(&[LOCK_ROLES, DELETE_PODS], |_| true);
    assert!(shipped.len() > 15, "{shipped:?}");
    let unused: Vec<&String> = shipped.difference(&used).collect();
    assert!(unused.is_empty(), "unused: {unused:?}");
    for right in &shipped {
        let fences = right.contains("secrets") || right.contains("delete nodes");
        assert!(!fences, "{right}");
    }
}

#[tokio::test]
async fn the_controller_uses_every_right_that_is_not_looked_at_elsewhere_and_reviews_no_token() {
    let plane = installed(&["--with-policies=deny"]).await;
    stage(&plane).await;
    let kubeconfig = plane.kubeconfig_of("dogwatch", CONTROLLER).await.unwrap();
    let mut controller = Controller::with(&kubeconfig, &["--listen=off"]);
    until_asked(&plane, CONTROLLER, "patch rebootpolicies/status").await;
    controller.signal(Signal::TERM);
    assert!(controller.ended().await.success());

    let used = asked(&plane, CONTROLLER).await;
    let shipped = rights_in_manifests(&[ROLES], |why| {
        !ELSEWHERE.iter().any(|it| why.starts_with(it))
    });
    assert!(shipped.len() > 5, "{shipped:?}");
    let unused: Vec<&String> = shipped.difference(&used).collect();
    assert!(unused.is_empty(), "unused: {unused:?}");
    let reviews = rights_in_manifests(&[ROLES], |_| true)
        .into_iter()
        .filter(|right| right.contains("reviews"));
    assert_eq!(reviews.collect::<Vec<_>>(), [""; 0]);
}

async fn host_token(plane: &ControlPlane) -> String {
    let create = ["create", "token", "host", "--audience", "dogwatch"];
    let token = plane.run_kubectl(&create, "").await.unwrap();
    token.trim().to_owned()
}

async fn until_asked(plane: &ControlPlane, account: &str, right: &str) {
    eventually(|| async {
        let asked = asked(plane, account).await;
        let is_asked = asked.contains(right);
        is_asked.then_some(()).ok_or_else(|| format!("{asked:?}"))
    })
    .await;
}

async fn call(path: &str, address: &str, token: &str, host: &str) -> String {
    let url = format!("http://{address}/api/v1/{path}");
    let bearer = format!("authorization: Bearer {token}");
    let form = format!("hostname={host}");
    let words = [
        "-sS",
        "-w",
        "%{http_code}",
        "-H",
        &bearer,
        "-d",
        &form,
        &url,
    ];
    let output: Output = Command::new("curl").args(words).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

async fn kubectl(plane: &ControlPlane, words: &[&str]) {
    plane.run_kubectl(words, "").await.unwrap();
}

/// No kubelet and no controller of PodDisruptionBudgets run here, so the test writes their status.
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

/// The calls of this account so far; fails if any was refused.
async fn asked(plane: &ControlPlane, account: &str) -> BTreeSet<String> {
    let account = format!("system:serviceaccount:dogwatch:{account}");
    let mut entries = plane.audit_entries().await.unwrap();
    entries.retain(|entry| entry.user == account);
    let refused: Vec<&AuditEntry> = entries.iter().filter(|entry| entry.code == 403).collect();
    assert!(
        refused.is_empty(),
        "the shipped rights do not cover these requests: {refused:#?}"
    );
    entries.iter().map(AuditEntry::used_right).collect()
}

/// Beginnings of the comments of rights that other tests cover.
const ELSEWHERE: [&str; 5] = [
    "healer",
    "power:",
    "schedule:",
    "NodeReboots:",
    "handshake:",
];

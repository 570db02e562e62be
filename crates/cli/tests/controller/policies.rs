//! The status of policies on the real API server.

use std::time::Instant;

use dogwatch_testbed::{AuditEntry, ControlPlane};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::recount::RecountedPlane;
use crate::support::{Controller, eventually, get, plane};

const ACCOUNT: &str = "system:serviceaccount:dogwatch:dogwatch-controller";

async fn apply(plane: &ControlPlane, object: &Value) {
    let words = ["apply", "-f", "-"];
    plane
        .run_kubectl(&words, &object.to_string())
        .await
        .unwrap();
}

pub fn policy(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "RebootPolicy",
        "metadata": { "name": name }, "spec": spec })
}

fn node(name: &str, record: Option<Value>) -> Value {
    let annotations = record.map_or(
        json!({}),
        |record| json!({ "dogwatch.dev/reboot": record.to_string() }),
    );
    json!({ "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": { "pool": "a" }, "annotations": annotations } })
}

fn record(phase: &str) -> Value {
    json!({ "phase": phase, "run": "coordinator/x", "since": "2026-11-21T04:00:00Z",
        "planned": "2026-11-21T04:00:00Z", "bootId": "00000000-0000-0000-0000-000000000000",
        "trigger": { "source": "request", "reason": "kernel 6.18" },
        "cordonedByUs": phase != "waiting" })
}

async fn status(plane: &ControlPlane, name: &str, is: impl Fn(&Value) -> bool) -> Value {
    eventually(|| async {
        let object = get(plane, &["rebootpolicy", name]).await;
        let status = object["status"].clone();
        if is(&status) {
            Ok(status)
        } else {
            Err(object.to_string())
        }
    })
    .await
}

fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let conditions = status["conditions"].as_array().unwrap();
    conditions
        .iter()
        .find(|there| there["type"] == kind)
        .unwrap()
}

/// Three nodes, three policies, and a controller with the shipped rights.
async fn stage() -> (RecountedPlane, Controller) {
    let plane = plane().await;
    let token = plane.service_account_token("dogwatch", "dogwatch-controller", None);
    let token = token.await.unwrap();
    let ruling = json!({ "nodeSelector": { "matchLabels": { "pool": "a" } } });
    let mut losing = ruling.clone();
    losing["priority"] = json!(-1);
    let window = json!({ "start": "22:00", "end": "04:00", "timeZone": "Mars/Olympus" });
    let unclear = json!({ "windows": [window] });
    apply(&plane, &policy("ruling", &ruling)).await;
    apply(&plane, &policy("losing", &losing)).await;
    apply(&plane, &policy("unclear", &unclear)).await;
    apply(&plane, &node("n1", Some(record("draining")))).await;
    apply(&plane, &node("n2", Some(record("waiting")))).await;
    apply(&plane, &node("n3", None)).await;
    let controller = Controller::start(&plane.kubeconfig_for(&token).unwrap());
    (plane, controller)
}

async fn ours(plane: &ControlPlane) -> Vec<AuditEntry> {
    let mut entries = plane.audit_entries().await.unwrap();
    entries.retain(|entry| entry.user == ACCOUNT);
    entries
}

#[tokio::test]
async fn each_policy_tells_its_nodes_with_the_rights_that_are_shipped() {
    let (plane, mut controller) = stage().await;
    let ruling = status(&plane, "ruling", |status| status["waitingTotal"] == 1).await;
    assert_eq!(
        (&ruling["nodes"], &ruling["outTotal"]),
        (&json!(3), &json!(1)),
        "{ruling}"
    );
    assert_eq!(ruling["out"][0]["node"], "n1");
    assert_eq!(ruling["out"][0]["reason"], "kernel 6.18");
    assert_eq!(ruling["waiting"][0]["node"], "n2");
    assert_eq!(ruling["observedGeneration"], 1);
    assert_eq!(condition(&ruling, "Progressing")["status"], "True");
    let losing = status(&plane, "losing", |status| {
        status["conflicts"][0]["nodes"] == 3
    })
    .await;
    assert_eq!(losing["conflicts"][0]["policy"], "ruling");
    assert_eq!(losing["conflicts"][0]["example"], "n1");
    let unclear = status(&plane, "unclear", |status| status["conditions"].is_array()).await;
    let accepted = condition(&unclear, "Accepted");
    assert_eq!(accepted["status"], "False");
    assert!(
        accepted["message"]
            .as_str()
            .unwrap()
            .contains("Mars/Olympus"),
        "{accepted}"
    );
    controller.signal(Signal::TERM);
    assert!(controller.ended().await.success());
    let refused = ours(&plane)
        .await
        .into_iter()
        .filter(|entry| entry.code == 403);
    let refused: Vec<AuditEntry> = refused.collect();
    assert!(
        refused.is_empty(),
        "the shipped rights are not enough: {refused:#?}"
    );
}

#[tokio::test]
async fn a_status_is_written_seldom_and_its_last_state_always() {
    let (plane, _controller) = stage().await;
    status(&plane, "ruling", |status| status["waitingTotal"] == 1).await;
    let writes = || async {
        let entries = ours(&plane).await;
        let writes = entries
            .iter()
            .filter(|entry| entry.subresource == "status" && entry.name == "ruling");
        u64::try_from(writes.count()).unwrap()
    };
    let before = writes().await;
    let began = Instant::now();
    for round in 0..20 {
        let phase = if round % 2 == 0 {
            "rebooting"
        } else {
            "returning"
        };
        apply(&plane, &node("n1", Some(record(phase)))).await;
    }
    apply(&plane, &node("n1", None)).await;
    let gone = status(&plane, "ruling", |status| status["outTotal"] == 0).await;
    assert_eq!(gone["out"], Value::Null, "{gone}");
    let (made, took) = (writes().await - before, began.elapsed().as_secs());
    assert!(
        (1..=2 + took / 5).contains(&made),
        "{made} writes in {took} s"
    );
}

/// The failure that a coordinator leaves on its Node: a reboot that did not happen.
async fn failed_reboot(plane: &ControlPlane, name: &str) {
    apply(plane, &node(name, Some(record("rebooting")))).await;
    let failed = json!({ "type": "MaintenanceInProgress", "status": "True",
        "reason": "RebootFailed", "message": "no new boot" });
    let status = json!({ "status": { "conditions": [failed] } }).to_string();
    let words = ["patch", "node", name, "--subresource=status"];
    let words = [&words[..], &["--type=strategic", "-p", &status]].concat();
    plane.run_kubectl(&words, "").await.unwrap();
}

fn halt_of(status: &Value) -> &Value {
    &status["rollout"]["halted"]
}

fn run_resume(plane: &ControlPlane, policy: &str) -> (bool, String) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_dogwatch"))
        .env_clear()
        .env("KUBECONFIG", plane.admin_kubeconfig())
        .args(["resume", policy])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.success(), text)
}

#[tokio::test]
async fn a_failed_reboot_halts_the_rollout_and_resume_ends_the_halt_once() {
    let plane = plane().await;
    let token = plane.service_account_token("dogwatch", "dogwatch-controller", None);
    let token = token.await.unwrap();
    let rollout = json!({ "rollout": { "ramp": [1], "haltAfterFailures": 1 } });
    apply(&plane, &policy("ruling", &rollout)).await;
    let _controller = Controller::start(&plane.kubeconfig_for(&token).unwrap());
    // A failure that is older than the rollout does not count.
    status(&plane, "ruling", |status| status["rollout"]["limit"] == 1).await;
    failed_reboot(&plane, "n1").await;
    let halted = status(&plane, "ruling", |status| halt_of(status).is_object()).await;
    assert_eq!(halt_of(&halted)["reason"], "1 failure: n1 RebootFailed");
    assert_eq!(condition(&halted, "Halted")["status"], "True");

    let (resumed, text) = run_resume(&plane, "ruling");
    let since = halt_of(&halted)["since"].as_str().unwrap();
    assert!(resumed && text.contains(since), "{text}");
    let ended = status(&plane, "ruling", |status| halt_of(status).is_null()).await;
    assert_eq!(condition(&ended, "Halted")["status"], "False");
    // The same failure does not halt it again, and the next one does.
    failed_reboot(&plane, "n2").await;
    let again = status(&plane, "ruling", |status| halt_of(status).is_object()).await;
    assert_eq!(halt_of(&again)["reason"], "1 failure: n2 RebootFailed");
}

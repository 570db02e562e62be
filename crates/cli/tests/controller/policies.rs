//! What a policy tells of itself on the real API server.

use dogwatch_testbed::ControlPlane;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Controller, eventually, get, plane};

const ACCOUNT: &str = "system:serviceaccount:dogwatch:dogwatch-controller";

async fn apply(plane: &ControlPlane, object: &Value) {
    let words = ["apply", "-f", "-"];
    plane
        .run_kubectl(&words, &object.to_string())
        .await
        .unwrap();
}

fn policy(name: &str, spec: Value) -> Value {
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

#[tokio::test]
async fn each_policy_tells_its_nodes_with_the_rights_that_are_shipped_and_is_written_seldom() {
    let plane = plane().await;
    let token = plane
        .service_account_token("dogwatch", "dogwatch-controller", None)
        .await
        .unwrap();
    let a = json!({ "nodeSelector": { "matchLabels": { "pool": "a" } } });
    apply(&plane, &policy("ruling", a.clone())).await;
    let mut loses = a.clone();
    loses["priority"] = json!(-1);
    apply(&plane, &policy("losing", loses)).await;
    let nowhere =
        json!({ "windows": [{ "start": "22:00", "end": "04:00", "timeZone": "Mars/Olympus" }] });
    apply(&plane, &policy("unclear", nowhere)).await;
    apply(&plane, &node("n1", Some(record("draining")))).await;
    apply(&plane, &node("n2", Some(record("waiting")))).await;
    apply(&plane, &node("n3", None)).await;
    let mut controller = Controller::start(&plane.kubeconfig_for(&token).unwrap());

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

    // Something changes many times a second; the last state is written all the same.
    let mark = plane.audit_mark().await.unwrap();
    let began = std::time::Instant::now();
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
    let took = began.elapsed().as_secs();
    let entries = plane.audit_since(mark).await.unwrap();
    let writes = entries.iter().filter(|entry| {
        entry.user == ACCOUNT && entry.subresource == "status" && entry.name == "ruling"
    });
    let writes = u64::try_from(writes.count()).unwrap();
    assert!(writes <= 2 + took / 5, "{writes} writes in {took} s");
    let all = plane.audit().await.unwrap();
    let refused: Vec<_> = all
        .iter()
        .filter(|entry| entry.user == ACCOUNT && entry.code == 403)
        .collect();
    assert!(
        refused.is_empty(),
        "the shipped rights are not enough: {refused:#?}"
    );
    controller.signal(Signal::TERM);
    assert!(controller.ended().await.success());
}

//! Tests `dogwatch unlock`.

use std::process::Stdio;

use serde_json::{Value, json};

use super::stage::{Stage, ended};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/dogwatch/leases";

fn lease(stage: &Stage) -> Value {
    stage.get(&format!("{LEASES}/dogwatch-default-0"))
}

fn is_free(stage: &Stage) -> bool {
    let lease = lease(stage);
    lease["spec"]["holderIdentity"].is_null()
        && lease["metadata"]["annotations"]["dogwatch.dev/holder"].is_null()
}

/// One slot, held for this node in its present state.
fn held(phase: Option<&str>) -> Stage {
    let stage = Stage::new();
    stage.node("n1", phase, 20);
    stage.lease("dogwatch-default-0", None);
    let uid = stage.get("/api/v1/nodes/n1")["metadata"]["uid"].clone();
    hold(&stage, "node/n1", &json!({ "node": "n1", "nodeUid": uid }));
    stage
}

fn hold(stage: &Stage, holder: &str, who: &Value) {
    let mut record = json!({ "bootId": null, "group": "default", "max": 1,
        "since": "1970-01-01T00:00:20Z", "runs": ["coordinator/x"] });
    for (key, value) in who.as_object().unwrap() {
        record[key] = value.clone();
    }
    let body = json!({
        "metadata": { "annotations": { "dogwatch.dev/holder": record.to_string() } },
        "spec": { "holderIdentity": holder },
    });
    stage.merge(&format!("{LEASES}/dogwatch-default-0"), &body);
}

/// The messages of the Events about broken locks, by the object they are about.
fn told(stage: &Stage, namespace: &str) -> Vec<String> {
    let events = stage.get(&format!("/api/v1/namespaces/{namespace}/events"));
    let events = events["items"].as_array().unwrap().clone();
    events
        .iter()
        .filter(|event| event["reason"] == "LockBrokenByPerson")
        .map(|event| {
            format!(
                "{}: {}",
                event["involvedObject"]["kind"].as_str().unwrap(),
                event["message"].as_str().unwrap()
            )
        })
        .collect()
}

#[test]
fn a_lock_with_somebody_behind_it_is_kept_and_says_what_to_do() {
    let stage = held(Some("draining"));
    for target in [
        "dogwatch-default-0",
        "lease/dogwatch-default-0",
        "n1",
        "node/n1",
    ] {
        let (code, text, errors) = ended(stage.dogwatch(&["unlock", target]));
        assert_eq!(code, 1, "{target}: {text}");
        assert!(
            text.contains("is held by node/n1 since 1970-01-01 00:00:20Z")
                && text.contains("Node n1 is draining"),
            "{text}"
        );
        assert!(
            errors.contains("dogwatch abort n1") && errors.contains("--force --reason"),
            "{errors}"
        );
    }
    assert!(!is_free(&stage));
}

#[test]
fn a_lock_that_is_provably_nobodys_is_freed_and_told() {
    let idle = held(None);
    let other = held(Some("draining"));
    hold(
        &other,
        "node/n1",
        &json!({ "node": "n1", "nodeUid": "before" }),
    );
    let gone = held(None);
    hold(&gone, "node/n9", &json!({ "node": "n9", "nodeUid": "u" }));
    for (stage, evidence) in [
        (idle, "Node n1 has no reboot under way (two reads)"),
        (other, "the lock was taken for before (two reads)"),
        (gone, "Node n9 does not exist (two reads)"),
    ] {
        let (code, text, errors) =
            ended(stage.dogwatch(&["unlock", "dogwatch-default-0", "--requester", "ann"]));
        assert_eq!(code, 0, "{evidence}: {errors}");
        assert!(
            text.contains(evidence) && text.contains("lease/dogwatch-default-0 is free"),
            "{text}"
        );
        assert!(is_free(&stage));
        let told = told(&stage, "dogwatch");
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].starts_with("Lease: ann") && told[0].contains(evidence),
            "{told:?}"
        );
    }
}

#[test]
fn force_needs_a_reason_and_a_clear_word_and_is_told_on_lease_and_node() {
    let stage = held(Some("rebooting"));
    let (code, ..) = ended(stage.dogwatch(&["unlock", "n1", "--force"]));
    assert_eq!(code, 2);
    let (code, ..) = ended(stage.dogwatch(&["unlock", "n1", "--force", "--reason", " ", "--yes"]));
    assert_eq!(code, 2);
    let args = [
        "unlock",
        "n1",
        "--force",
        "--reason",
        "scrapped",
        "--requester",
        "ann",
    ];
    let (code, _, errors) = ended(stage.dogwatch(&args).stdin(Stdio::null()));
    assert_eq!(code, 2, "{errors}");
    assert!(
        errors.contains("one node more than the budget allows"),
        "{errors}"
    );
    assert!(!is_free(&stage) && told(&stage, "dogwatch").is_empty());
    let (code, text, errors) = ended(stage.dogwatch(&[&args[..], &["--yes"]].concat()));
    assert_eq!(code, 0, "{text} {errors}");
    assert!(is_free(&stage));
    for (namespace, kind) in [("dogwatch", "Lease"), ("default", "Node")] {
        let told = told(&stage, namespace);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with(&format!("{kind}: ann")), "{told:?}");
        assert!(
            told[0].contains("held by node/n1: forced: scrapped"),
            "{told:?}"
        );
    }
}

#[test]
fn what_cannot_be_told_is_not_done() {
    use dogwatch_kubesim::api::ApiVerb;
    let stage = held(None);
    stage.deny(ApiVerb::Create, "events");
    let (code, _, errors) = ended(stage.dogwatch(&["unlock", "n1"]));
    assert_eq!(code, 5, "{errors}");
    assert!(errors.contains("so the lock was not broken"), "{errors}");
    assert!(!is_free(&stage));
}

#[test]
fn a_holder_that_is_no_node_is_never_judged_by_nodes() {
    let stage = held(None);
    hold(&stage, "api/host-7", &json!({ "runs": ["answered/p/1"] }));
    let (code, text, errors) = ended(stage.dogwatch(&["unlock", "host-7"]));
    assert_eq!(code, 1, "{text}");
    assert!(
        errors.contains("POST /api/v1/unlock with hostname=host-7"),
        "{errors}"
    );
    assert!(!is_free(&stage));
}

#[test]
fn nothing_held_is_said_with_what_is() {
    let stage = held(None);
    let (code, _, errors) = ended(stage.dogwatch(&["unlock", "dogwatch-default-1"]));
    assert_eq!(code, 3);
    assert!(
        errors.contains("did you mean dogwatch-default-0?"),
        "{errors}"
    );
    stage.lease("dogwatch-default-1", None);
    let (code, text, _) = ended(stage.dogwatch(&["unlock", "dogwatch-default-1"]));
    assert_eq!(
        (code, text.as_str()),
        (0, "lease/dogwatch-default-1 is free already\n")
    );
}

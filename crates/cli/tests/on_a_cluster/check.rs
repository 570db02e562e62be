//! Tests `dogwatch check`.

use dogwatch_kubesim::api::ApiVerb;
use serde_json::{Value, json};

use super::rebooting_cluster;
use super::stage::{Stage, ended};

/// Two idle nodes with coordinators.
fn quiet() -> Stage {
    let stage = Stage::new();
    stage.node("n1", None, 0);
    stage.node("n2", None, 0);
    stage.coordinators(&["n1", "n2"]);
    stage
}

#[test]
fn a_clear_node_ends_with_0_and_a_blocked_one_with_6_and_says_by_what() {
    let stage = quiet();
    let (code, text, errors) = ended(stage.dogwatch(&["check", "n1"]));
    assert_eq!(code, 0, "{text} {errors}");
    assert_eq!(
        text,
        "n1: nothing blocks a reboot now\n  plan of the drain:\n    \
         -: stay: dogwatch/coordinator-n1 (pod of a DaemonSet)\n"
    );
    stage.blocked_pod("n1");
    stage.merge(
        "/api/v1/namespaces/shop/pods/db-0/status",
        &json!({ "status": { "phase": "Running" } }),
    );
    let (code, text, errors) = ended(stage.dogwatch(&["check", "--all"]));
    assert_eq!(code, 6, "{text}");
    assert!(
        errors.contains("1 of 2 nodes would be blocked now"),
        "{errors}"
    );
    for line in [
        "n1: 1 thing blocks a reboot now",
        "blocks   PodDisruptionBudget shop/db: allows no disruption (1 healthy of 1 desired); pods on this node: shop/db-0",
        "→ it requires all pods to be healthy, so it never allows an eviction",
        "warns    pod shop/db-0: has no controller: the pod is evicted, and no controller creates it again",
        "n2: nothing blocks a reboot now",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn policies_gates_and_budgets_are_checked_as_the_coordinator_would() {
    let stage = quiet();
    stage.policies(&[(
        "workers",
        json!({
            "paused": { "reason": "holidays" },
            "gates": [{ "pods": { "selector": { "matchLabels": { "app": "db" } } } }],
        }),
    )]);
    stage.blocked_pod("n1");
    stage.merge(
        "/api/v1/nodes/n2",
        &json!({ "spec": { "unschedulable": true } }),
    );
    let (code, json, _) = ended(stage.dogwatch(&["check", "n1", "-o", "json"]));
    assert_eq!(code, 6);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json[0]["node"], &json[0]["blocked"]),
        (&json!("n1"), &json!(true))
    );
    let what = |subject: &str| {
        let findings = json[0]["findings"].as_array().unwrap();
        let found = findings
            .iter()
            .find(|found| found["subject"].as_str().unwrap().starts_with(subject));
        found.unwrap_or_else(|| panic!("{subject}: {json:#}"))["what"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(
        what("RebootPolicy workers").starts_with("Paused: "),
        "{json:#}"
    );
    assert_eq!(what("gate"), "pod shop/db-0 runs on this node");
    assert!(
        what("group workers").contains("unavailable now: n2 (unschedulable)"),
        "{json:#}"
    );
}

#[test]
fn a_right_that_is_missing_costs_its_own_part_and_is_never_clear() {
    let stage = quiet();
    stage.deny(ApiVerb::List, "poddisruptionbudgets");
    let (code, text, errors) = ended(stage.dogwatch(&["check", "n1"]));
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("unknown  PodDisruptionBudgets: could not be read: not allowed:")
            && text.contains("cannot list resource \"poddisruptionbudgets\""),
        "{text}"
    );
    assert!(errors.contains("some checks were not possible"), "{errors}");
}

#[test]
fn a_node_that_does_not_exist_and_a_label_that_nobody_has_end_with_3() {
    let stage = quiet();
    let (code, text, errors) = ended(stage.dogwatch(&["check", "n1", "n3"]));
    assert_eq!(code, 3);
    assert!(text.contains("n1: nothing blocks"), "{text}");
    assert!(errors.contains("did you mean n1 or n2?"), "{errors}");
    let (code, _, errors) = ended(stage.dogwatch(&["check", "-l", "gpu=yes"]));
    assert_eq!(code, 3);
    assert!(
        errors.contains("no Node of this cluster has the labels gpu=yes"),
        "{errors}"
    );
    let (code, ..) = ended(stage.dogwatch(&["check"]));
    assert_eq!(code, 2);
}

#[test]
fn after_a_restore_every_record_that_the_world_contradicts_is_listed() {
    let (code, text, _) = ended(quiet().dogwatch(&["check", "--after-restore"]));
    assert_eq!(
        (code, text.as_str()),
        (0, "no record contradicts another record or a Node\n")
    );
    // Its records name UIDs and Leases that do not exist.
    let (code, text, errors) = ended(rebooting_cluster().dogwatch(&["check", "--after-restore"]));
    assert_eq!(code, 6, "{text}");
    assert!(
        text.contains(
            "Lease dogwatch-default-0: held for a Node n1 with UID u; the current one has UID"
        ) && text.contains("→ dogwatch unlock dogwatch-default-0"),
        "{text}"
    );
    assert!(
        text.contains("Node n1: is draining without a Lease"),
        "{text}"
    );
    assert!(errors.contains("dogwatch pause --all"), "{errors}");
}

#[test]
fn after_a_restore_a_remediation_of_a_healthy_node_is_listed() {
    let stage = super::hosts::with_hosts();
    stage.node("n1", None, 0);
    let over = json!({ "metadata": { "annotations": { "dogwatch.dev/node": "n1" } } });
    super::hosts::host(&stage, "metal", "h1", &over);
    let (code, text, errors) = ended(stage.dogwatch(&["check", "--after-restore"]));
    assert_eq!(code, 0, "{text} {errors}");
    let mark = json!({ "metadata": { "annotations": {
        "host.metal3.io/external-remediation": "" } } });
    stage.merge("/api/v1/nodes/n1", &mark);
    let (code, text, _) = ended(stage.dogwatch(&["check", "--after-restore"]));
    assert!(
        code == 6
            && text.contains("warns    node/n1: a remediation is under way (")
            && text.contains("but Node n1 is Ready"),
        "{code} {text}"
    );
    stage.deny(ApiVerb::List, "baremetalhosts");
    let (code, text, errors) = ended(stage.dogwatch(&["check", "--after-restore"]));
    assert!(
        code == 1
            && text.contains("unknown  remediations: could not be read: not allowed:")
            && errors.contains("not everything could be read"),
        "{code} {text} {errors}"
    );
}

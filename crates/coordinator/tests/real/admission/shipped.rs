//! Tests the manifests themselves.

use std::collections::BTreeSet;
use std::time::Duration;

use dogwatch_api::condition;
use dogwatch_testbed::ControlPlane;
use serde_json::Value;

use crate::support::PATIENCE;

const COORDINATORS: &str = include_str!("../../../../../deploy/policies/coordinators.yaml");
const LOCKS: &str = include_str!("../../../../../deploy/policies/locks.yaml");
const REQUESTS: &str = include_str!("../../../../../deploy/policies/requests.yaml");
const REMEDIATION: &str = include_str!("../../../../../deploy/policies/remediation.yaml");
const BMCS: &str = include_str!("../../../../../deploy/policies/bmcs.yaml");
const EVENTS: &str = include_str!("../../../../../deploy/policies/events.yaml");
const OTHERS: &str = include_str!("../../../../../deploy/policies/others.yaml");
const NAMESPACE: &str = include_str!("../../../../../deploy/base/namespace.yaml");
const PEOPLE: &str = include_str!("people.yaml");

#[test]
fn the_conditions_that_a_coordinator_may_write_are_those_that_it_writes() {
    let own = [
        condition::MAINTENANCE_PLANNED,
        condition::DRAIN_IN_PROGRESS,
        condition::DRAINED,
        condition::MAINTENANCE_IN_PROGRESS,
        condition::SENTINEL_SURVIVED_REBOOT,
        condition::REBOOT_TRIGGER_UNKNOWN,
    ];
    let mut lists = COORDINATORS.split("condition.type in [").skip(1);
    for _ in 0..2 {
        let list = lists.next().and_then(|rest| rest.split_once(']'));
        let (list, _) = list.expect("before and after are filtered alike");
        let listed: BTreeSet<&str> = list
            .split(',')
            .map(|name| name.trim().trim_matches('\''))
            .collect();
        assert_eq!(listed, BTreeSet::from(own));
    }
    assert!(lists.next().is_none());
}

#[test]
fn the_shipped_namespace_has_the_label_that_the_policies_go_by() {
    let label = "app.kubernetes.io/part-of: dogwatch";
    assert!(
        NAMESPACE.contains(&format!("  labels:\n    {label}\n")),
        "{NAMESPACE}"
    );
    let selector = format!("namespaceSelector:\n      matchLabels:\n        {label}\n");
    assert_eq!(LOCKS.matches(&selector).count(), 2);
}

#[test]
fn what_the_policies_say_fails_closed() {
    for file in [COORDINATORS, LOCKS, REQUESTS, REMEDIATION, BMCS, EVENTS] {
        let policies = file.matches("kind: ValidatingAdmissionPolicy\n").count();
        assert_eq!(file.matches("failurePolicy: Fail\n").count(), policies);
        let bindings = file
            .matches("kind: ValidatingAdmissionPolicyBinding\n")
            .count();
        assert_eq!(bindings, policies, "each has one binding");
    }
    for denied in [COORDINATORS, LOCKS, REMEDIATION, BMCS, EVENTS] {
        assert!(!denied.contains("Warn"), "these refuse from the start");
    }
}

/// With `deploy/policies`, the API server type-checks every expression, and a caller without the
/// right is warned and audited, not refused.
#[tokio::test]
async fn every_expression_is_typed_without_a_warning_and_requests_are_only_audited_at_first() {
    let builder =
        ControlPlane::builder().with_controllers(["validatingadmissionpolicy-status-controller"]);
    let plane = builder
        .start()
        .await
        .expect("the real control plane starts");
    let manifests = [
        NAMESPACE,
        PEOPLE,
        OTHERS,
        COORDINATORS,
        LOCKS,
        REQUESTS,
        REMEDIATION,
        BMCS,
        EVENTS,
    ];
    let manifests = manifests.join("---\n");
    let applied = plane.run_kubectl(&["apply", "-f", "-"], &manifests).await;
    applied.expect("manifests that are accepted");
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let list = ["get", "validatingadmissionpolicies", "-o", "json"];
    let policies = loop {
        let policies = plane.run_kubectl(&list, "").await.expect("a list");
        let policies: Value = serde_json::from_str(&policies).expect("JSON");
        let policies = policies["items"].as_array().expect("a list").clone();
        if policies.iter().all(is_typed) {
            break policies;
        }
        assert!(tokio::time::Instant::now() < deadline, "{policies:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert_eq!(
        policies.len(),
        dogwatch_core::admission::SHIPPED_ADMISSION_POLICIES.len()
    );
    for policy in &policies {
        let warnings = &policy["status"]["typeChecking"]["expressionWarnings"];
        assert!(
            warnings.is_null(),
            "{}: {warnings}",
            policy["metadata"]["name"]
        );
    }
    requests_are_audited(&plane).await;
}

fn is_typed(policy: &Value) -> bool {
    policy["status"]["observedGeneration"] == policy["metadata"]["generation"]
}

async fn requests_are_audited(plane: &ControlPlane) {
    let node = r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "first"}}"#;
    let created = plane.run_kubectl(&["create", "-f", "-"], node).await;
    created.expect("a Node");
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut number = 0;
    loop {
        number += 1;
        let request = format!("dogwatch.dev/reboot-requested={number}");
        let person = "--as=system:serviceaccount:default:person";
        let annotate = ["annotate", "--overwrite", "node", "first", &request, person];
        plane
            .run_kubectl(&annotate, "")
            .await
            .expect("a warning, and no refusal");
        plane
            .audit_entries()
            .await
            .expect("an audit log that is written");
        let log = std::fs::read_to_string(plane.folder().join("audit.log"));
        let log = log.expect("an audit log");
        let failure = "validation.policy.admission.k8s.io/validation_failure";
        if log
            .lines()
            .any(|line| line.contains(failure) && line.contains("nodes/reboot"))
        {
            return;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "not in the audit log"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

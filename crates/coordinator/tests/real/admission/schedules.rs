//! The author of a schedule needs the right to request the reboots of its targets: the controller
//! uses its own rights, and would do it for anybody. Source: specification §5, §6.

use serde_json::{Value, json};

use super::Who::{Breaker, Controller, Person};
use super::{Call, Expected, Stage, Who, annotated};
use crate::support::api::{JSON, MERGE};

const NODES: &str = "spec.nodes of a RebootSchedule needs verb update on nodes/reboot";
const HOSTS: &str = "spec.hosts of a RebootSchedule needs verb update on baremetalhosts/reboot";

/// Gives the person the right to request reboots of the hosts of one namespace.
const ASKS_HOSTS: &str = r"
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: asks-hosts }
rules:
  - { apiGroups: [metal3.io], resources: [baremetalhosts/reboot], verbs: [update] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: asks-hosts }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: asks-hosts }
subjects:
  - { kind: ServiceAccount, name: person, namespace: default }
";

/// A stage with the kind; returns the path of its namespace's schedules.
async fn stage() -> (Stage, String) {
    let stage = Stage::set().await;
    let schedules = stage
        .install(&dogwatch_api::reboot_schedule::schedule_crd())
        .await;
    (stage, schedules)
}

fn made(path: &str, name: &str, spec: &Value) -> Call {
    let object = json!({
        "apiVersion": "dogwatch.dev/v1alpha1", "kind": "RebootSchedule",
        "metadata": { "name": name }, "spec": spec,
    });
    Call::new("POST", path, JSON, object)
}

fn asking(whom: &Value) -> Value {
    let mut spec = json!({ "at": "2030-01-01T03:00:00Z" });
    let fields = spec.as_object_mut().expect("an object");
    fields.extend(whom.as_object().expect("an object").clone());
    spec
}

#[tokio::test]
async fn a_schedule_is_made_by_whoever_may_ask_all_whom_it_asks() {
    let (stage, path) = stage().await;
    let named = json!({ "names": ["a"] });
    let all = json!({ "selector": {} });
    let table: [(Who, Value, Expected); 8] = [
        (Person, json!({ "nodes": named }), Err(NODES)),
        (Person, json!({ "nodes": all }), Err(NODES)),
        (Person, json!({ "hosts": named }), Err(HOSTS)),
        (Person, json!({ "hosts": all }), Err(HOSTS)),
        (
            Person,
            json!({ "nodes": named, "hosts": named, "suspend": true }),
            Err(NODES),
        ),
        (Breaker, json!({ "nodes": named }), Ok(())),
        (Breaker, json!({ "hosts": all }), Ok(())),
        (Breaker, json!({ "nodes": all, "hosts": all }), Ok(())),
    ];
    for (index, (who, whom, expected)) in table.into_iter().enumerate() {
        let call = made(&path, &format!("s{index}"), &asking(&whom));
        stage.attempt(&whom.to_string(), who, &call, expected).await;
    }
}

#[tokio::test]
async fn the_right_to_ask_one_namespaces_hosts_is_for_those_and_for_no_node() {
    let (stage, path) = stage().await;
    let elsewhere = "/apis/dogwatch.dev/v1alpha1/namespaces/default/rebootschedules";
    let namespace = &stage.cluster.namespace;
    let apply = ["apply", "-n", namespace, "-f", "-"];
    let applied = stage.cluster.plane.run_kubectl(&apply, ASKS_HOSTS).await;
    applied.expect("rights that are accepted");
    let named = asking(&json!({ "hosts": { "names": ["a"] } }));
    let dry = made(&format!("{path}?dryRun=All"), "dry", &named);
    stage.until_allowed(Person, &dry).await;
    let hosts = asking(&json!({ "hosts": { "selector": {} } }));
    let both = asking(&json!({ "hosts": { "selector": {} }, "nodes": { "selector": {} } }));
    let table: [(&str, &Value, Expected); 3] = [
        (&path, &hosts, Ok(())),
        (&path, &both, Err(NODES)),
        (elsewhere, &hosts, Err(HOSTS)),
    ];
    for (index, (path, spec, expected)) in table.into_iter().enumerate() {
        let call = made(path, &format!("s{index}"), spec);
        stage.attempt(path, Person, &call, expected).await;
    }
}

#[tokio::test]
async fn what_a_schedule_asks_is_changed_by_whoever_may_ask_it_and_anybody_may_take_it_away() {
    let (stage, path) = stage().await;
    let there = format!("{path}/a");
    let spec = asking(&json!({ "nodes": { "names": ["a"] } }));
    stage
        .attempt("made", Breaker, &made(&path, "a", &spec), Ok(()))
        .await;
    let spec = |change: Value| Call::new("PATCH", &there, MERGE, json!({ "spec": change }));
    let sooner = json!({ "at": "2029-01-01T03:00:00Z" });
    let more = json!({ "hosts": { "names": ["h"] } });
    let other = json!({ "nodes": null, "hosts": { "names": ["h"] } });
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    let status = json!({ "status": { "observedGeneration": 1 } });
    let status = Call::new("PATCH", format!("{there}/status"), MERGE, status);
    let gone = Call::new("DELETE", &there, JSON, json!({}));
    let table: [(&str, Who, Call, Expected); 9] = [
        ("sooner", Person, spec(sooner.clone()), Err(NODES)),
        ("more", Person, spec(more), Err(NODES)),
        ("other", Person, spec(other.clone()), Err(HOSTS)),
        (
            "a label",
            Person,
            Call::new("PATCH", &there, MERGE, label),
            Ok(()),
        ),
        ("sooner", Breaker, spec(sooner), Ok(())),
        ("other", Breaker, spec(other), Ok(())),
        // What the controller writes to a schedule.
        ("its status", Controller, status, Ok(())),
        (
            "a node's request",
            Controller,
            annotated(
                "/api/v1/nodes/first",
                "dogwatch.dev/reboot-requested",
                &json!("{}"),
            ),
            Ok(()),
        ),
        ("gone", Person, gone, Ok(())),
    ];
    for (what, who, call, expected) in table {
        stage.attempt(what, who, &call, expected).await;
    }
}

//! Who may decide that a machine is fenced, which one, and that it is off. Source: specification
//! §4.1, §4.2, §6.

use dogwatch_testbed::fixtures;
use serde_json::{Value, json};

use super::Who::{Breaker, Controller, First, Person};
use super::{Call, Expected, Stage, Who, annotated};
use crate::support::api::JSON;

const NEED: &str = "host.metal3.io/external-remediation";
const CONFIRMED: &str = "dogwatch.dev/confirmed-off";
const NODE: &str = "/api/v1/nodes/first";
const STATUS: &str = "/api/v1/nodes/first/status";

const CONFIRM: &str = "needs verb update on baremetalhosts/confirm-off";
const NAME: &str = "in the name of who writes it";
const RECORDS: &str = "need verb update on baremetalhosts/remediation";
const LINK: &str = "needs verb update on baremetalhosts/node";
const MARK: &str = "on a Node needs verb update on nodes/remediation";
const BREAKER: &str = "system:serviceaccount:default:breaker";
/// The controller's rights for remediation.
const ROLES: &str = include_str!("../../../../../deploy/remediation/rbac.yaml");

/// A stage with a host; returns the path of hosts.
async fn stage() -> (Stage, String) {
    let stage = Stage::set().await;
    let hosts = stage.install(&fixtures::metal3_hosts()).await;
    stage
        .cluster
        .api
        .create(&hosts, &host("a", &json!({})))
        .await;
    (stage, hosts)
}

fn host(name: &str, annotations: &Value) -> Value {
    let mut host = fixtures::metal3_host(name);
    host["metadata"]["annotations"] = annotations.clone();
    host
}

fn word(by: &str) -> Value {
    let word =
        format!(r#"{{"by":"{by}","at":"2026-01-01T00:00:00Z","reason":"plug","for":["k"]}}"#);
    json!(word)
}

#[tokio::test]
async fn a_host_is_said_to_be_off_by_whoever_may_confirm_it_and_in_their_own_name() {
    let (stage, hosts) = stage().await;
    let there = format!("{hosts}/a");
    let (person, own) = ("system:serviceaccount:default:person", word(BREAKER));
    let later =
        format!(r#"{{"at":"2026-01-01T00:00:00Z","by":"{BREAKER}","reason":"x","for":["k"]}}"#);
    let twice = format!(r#"{{"at":"x","x":{{"by":"{BREAKER}"}},"by":"{person}"}}"#);
    let gone = Value::Null;
    let table: [(Who, Value, Expected); 14] = [
        (Person, word(person), Err(CONFIRM)),
        (Person, own.clone(), Err(CONFIRM)),
        (
            Controller,
            word("system:serviceaccount:dogwatch:dogwatch-controller"),
            Err(CONFIRM),
        ),
        (Breaker, word(person), Err(NAME)),
        (Breaker, word(&format!("{BREAKER}2")), Err(NAME)),
        (Breaker, word(&BREAKER[1..]), Err(NAME)),
        (Breaker, json!(later), Err(NAME)),
        (Breaker, json!(twice), Err(NAME)),
        (Breaker, json!(""), Err(NAME)),
        (Breaker, own.clone(), Ok(())),
        // Nobody else may change or remove it, except the remediator together with its key.
        (Person, word(person), Err(CONFIRM)),
        (Person, gone.clone(), Err(CONFIRM)),
        (Breaker, word(person), Err(NAME)),
        (Controller, gone.clone(), Ok(())),
    ];
    for (who, value, expected) in table {
        let call = annotated(&there, CONFIRMED, &value);
        stage
            .attempt(&value.to_string(), who, &call, expected)
            .await;
    }
    let table: [(Who, &str, Expected); 3] = [
        (Person, person, Err(CONFIRM)),
        (Breaker, person, Err(NAME)),
        (Breaker, BREAKER, Ok(())),
    ];
    for (index, (who, by, expected)) in table.into_iter().enumerate() {
        let made = host(&format!("b{index}"), &json!({ CONFIRMED: word(by) }));
        let call = Call::new("POST", &hosts, JSON, made);
        stage.attempt("made so", who, &call, expected).await;
    }
    let back = annotated(&format!("{hosts}/b2"), CONFIRMED, &gone);
    stage.attempt("taken back", Breaker, &back, Ok(())).await;
}

#[tokio::test]
async fn what_the_remediator_keeps_on_a_host_is_written_by_it_alone() {
    let (stage, hosts) = stage().await;
    let there = format!("{hosts}/a");
    let (text, gone) = (json!(r#"{"node":"first","labels":{"a":"b"}}"#), Value::Null);
    let (backup, record) = ("dogwatch.dev/node-backup", "dogwatch.dev/remediation");
    let table: [(Who, &str, &Value, Expected); 10] = [
        (Person, backup, &text, Err(RECORDS)),
        (Breaker, backup, &text, Err(RECORDS)),
        (Breaker, record, &text, Err(RECORDS)),
        (First, record, &text, Err("forbidden")),
        (Person, "dogwatch.dev/remediations", &text, Ok(())),
        (Controller, backup, &text, Ok(())),
        (Controller, record, &text, Ok(())),
        (Breaker, backup, &gone, Err(RECORDS)),
        (Person, record, &json!("{}"), Err(RECORDS)),
        (Controller, backup, &gone, Ok(())),
    ];
    for (who, key, value, expected) in table {
        let call = annotated(&there, key, value);
        stage.attempt(key, who, &call, expected).await;
    }
    let made = host("b", &json!({ backup: text }));
    let made = Call::new("POST", &hosts, JSON, made);
    stage.attempt("made so", Breaker, &made, Err(RECORDS)).await;
}

#[tokio::test]
async fn which_host_carries_a_node_is_said_by_whoever_may_update_that_and_not_by_the_node() {
    let (stage, hosts) = stage().await;
    let there = format!("{hosts}/a");
    let link = "dogwatch.dev/node";
    let (first, second, gone) = (json!("first"), json!("second"), Value::Null);
    let table: [(Who, &Value, Expected); 7] = [
        (Person, &first, Err(LINK)),
        (Controller, &first, Err(LINK)),
        (First, &first, Err("forbidden")),
        (Breaker, &first, Ok(())),
        (Person, &second, Err(LINK)),
        (Person, &gone, Err(LINK)),
        (Breaker, &gone, Ok(())),
    ];
    for (who, value, expected) in table {
        let call = annotated(&there, link, value);
        stage.attempt(link, who, &call, expected).await;
    }
}

#[tokio::test]
async fn a_node_is_said_to_need_remediation_by_whoever_may_update_that_and_not_by_its_kubelet() {
    let (stage, _) = stage().await;
    let (set, gone) = (json!(""), Value::Null);
    let table: [(Who, &str, &Value, Expected); 9] = [
        (Person, NODE, &set, Err(MARK)),
        (Person, STATUS, &set, Err(MARK)),
        // Two policies refuse this, and either may answer.
        (First, NODE, &set, Err("ValidatingAdmissionPolicy")),
        (Breaker, NODE, &set, Ok(())),
        (Person, NODE, &gone, Err(MARK)),
        // The request is removed once it is served.
        (Controller, NODE, &gone, Ok(())),
        (Breaker, STATUS, &set, Ok(())),
        (Person, STATUS, &gone, Err(MARK)),
        (Breaker, STATUS, &gone, Ok(())),
    ];
    for (who, path, value, expected) in table {
        let call = annotated(path, NEED, value);
        stage.attempt(path, who, &call, expected).await;
    }
    let by_its_kubelet = |annotation: &'static str| {
        let kubelet = ["--as=system:node:first", "--as-group=system:nodes"];
        let words = [&["annotate", "node", "first", annotation][..], &kubelet].concat();
        let plane = &stage.cluster.plane;
        async move { plane.run_kubectl(&words, "").await }
    };
    // A kubelet may annotate its own Node.
    by_its_kubelet("another=value").await.expect("its own Node");
    let refused = by_its_kubelet("host.metal3.io/external-remediation=").await;
    let refused = refused.expect_err("no right to it").to_string();
    assert!(refused.contains(MARK), "{refused}");
}

#[tokio::test]
async fn a_need_that_was_served_is_taken_off_a_machine_of_either_api_by_the_controller() {
    let (stage, _) = stage().await;
    let applied = stage
        .cluster
        .plane
        .run_kubectl(&["apply", "-f", "-"], ROLES);
    applied.await.expect("rights that are accepted");
    for (definition, mut machine) in [
        (
            fixtures::openshift_machines(),
            fixtures::openshift_machine("a"),
        ),
        (
            fixtures::cluster_api_machines(),
            fixtures::cluster_api_machine("a"),
        ),
    ] {
        let machines = stage.install(&definition).await;
        machine["metadata"]["annotations"] = json!({ NEED: "" });
        stage.cluster.api.create(&machines, &machine).await;
        let there = format!("{machines}/a");
        let served = annotated(&there, NEED, &Value::Null);
        let needs = "needs verb update on machines/remediation";
        stage.attempt(&there, Person, &served, Err(needs)).await;
        stage.until_allowed(Controller, &served).await;
    }
}

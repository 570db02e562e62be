//! Who may write Events in Dogwatch's name. Source: specification §1, S6, and §6.

use serde_json::{Value, json};

use super::Who::{Controller, First, Person, Unbound};
use super::{Call, Expected, FIRST, SECOND, Stage, Who};
use crate::support::api::{JSON, MERGE};

const EVENTS: &str = "/api/v1/namespaces/default/events";
const NEWER: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const OWN_NODE: &str = "writes Events only about its own Node";
const OWN_NAME: &str = "written by its own ServiceAccount";
const COORDINATOR: &str = "dogwatch-coordinator";
const CONTROLLER: &str = "dogwatch-controller";

/// An Event about `node` as the coordinator on `reporter` writes it.
fn event(name: &str, component: &str, reporter: &str, node: &str) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "default" },
        "involvedObject": { "kind": "Node", "apiVersion": "v1", "name": node, "uid": "u" },
        "reason": "RebootFailed", "message": "no new boot", "type": "Warning",
        "source": { "component": component, "host": reporter },
        "reportingComponent": component, "reportingInstance": reporter,
    })
}

fn made(event: Value) -> Call {
    Call::new("POST", EVENTS, JSON, event)
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table of attempts")]
async fn a_coordinators_token_writes_events_about_its_own_node_and_nobody_else_in_dogwatchs_name() {
    let stage = Stage::set().await;
    let about = |kind: &str| {
        let mut event = event("pod", COORDINATOR, FIRST, FIRST);
        event["involvedObject"]["kind"] = json!(kind);
        event
    };
    let rows: [(&str, Who, Value, Expected); 10] = [
        (
            "own",
            First,
            event("own", COORDINATOR, FIRST, FIRST),
            Ok(()),
        ),
        (
            "another Node",
            First,
            event("a", COORDINATOR, FIRST, SECOND),
            Err(OWN_NODE),
        ),
        (
            "another reporter",
            First,
            event("b", COORDINATOR, SECOND, FIRST),
            Err(OWN_NODE),
        ),
        (
            "the controller's name",
            First,
            event("c", CONTROLLER, FIRST, FIRST),
            Err(OWN_NODE),
        ),
        (
            "a stranger's name",
            First,
            event("d", "kubelet", FIRST, FIRST),
            Err(OWN_NODE),
        ),
        ("no Node", First, about("Pod"), Err(OWN_NODE)),
        (
            "no node in the token",
            Unbound,
            event("e", COORDINATOR, FIRST, FIRST),
            Err(OWN_NODE),
        ),
        (
            "the coordinator's name",
            Person,
            event("f", COORDINATOR, FIRST, FIRST),
            Err(OWN_NAME),
        ),
        (
            "own name",
            Person,
            event("g", "somebody", "x", FIRST),
            Ok(()),
        ),
        (
            "the controller",
            Controller,
            event("h", CONTROLLER, CONTROLLER, SECOND),
            Ok(()),
        ),
    ];
    for (what, who, event, expected) in rows {
        stage.attempt(what, who, &made(event), expected).await;
    }
    let newer = json!({
        "metadata": { "name": "newer", "namespace": "default" }, "eventTime": "2026-01-01T00:00:00.000000Z",
        "regarding": { "kind": "Node", "apiVersion": "v1", "name": FIRST }, "action": "Reboot",
        "reason": "RebootFailed", "note": "no new boot", "type": "Warning",
        "reportingController": COORDINATOR, "reportingInstance": FIRST,
    });
    let newer = Call::new("POST", NEWER, JSON, newer);
    stage
        .attempt("by the newer API", Person, &newer, Err(OWN_NAME))
        .await;
    let changed = Call::new(
        "PATCH",
        format!("{EVENTS}/own"),
        MERGE,
        json!({ "message": "all is well" }),
    );
    stage
        .attempt("changing ours", Person, &changed, Err(OWN_NAME))
        .await;
    let taken = Call::new(
        "PATCH",
        format!("{EVENTS}/g"),
        MERGE,
        json!({ "reportingComponent": CONTROLLER }),
    );
    stage
        .attempt("making it ours", Person, &taken, Err(OWN_NAME))
        .await;
}

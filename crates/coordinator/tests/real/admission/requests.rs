//! RBAC decides who may request a reboot or its abort. Source: specification §6.

use serde_json::{Value, json};

use super::Who::{Breaker, Controller, First, Person, Second};
use super::{Call, Expected, Stage, Who, annotated};
use crate::support::api::JSON;

const NODE: &str = "/api/v1/nodes/first";
const STATUS: &str = "/api/v1/nodes/first/status";
const NEEDS: &str = "need verb update on nodes/reboot";

#[tokio::test]
async fn a_node_is_asked_to_reboot_or_to_stop_by_whoever_may_update_its_reboot() {
    let stage = Stage::set().await;
    let (ask, stop) = (
        "dogwatch.dev/reboot-requested",
        "dogwatch.dev/abort-requested",
    );
    let (text, empty, gone) = (json!(r#"{"reason":"test"}"#), json!(""), Value::Null);
    let table: [(Who, &str, &str, &Value, Expected); 12] = [
        (Person, NODE, ask, &text, Err(NEEDS)),
        (Person, STATUS, ask, &text, Err(NEEDS)),
        (Person, NODE, stop, &text, Err(NEEDS)),
        (Person, NODE, ask, &empty, Err(NEEDS)),
        (Person, NODE, "dogwatch.dev/keep-cordoned", &text, Ok(())),
        (Breaker, NODE, ask, &text, Ok(())),
        (Breaker, NODE, stop, &text, Ok(())),
        (Person, NODE, ask, &empty, Err(NEEDS)),
        (Person, NODE, ask, &gone, Err(NEEDS)),
        // The request is removed once it is served.
        (First, NODE, ask, &gone, Ok(())),
        (Second, NODE, stop, &gone, Err("only its own Node")),
        (Controller, NODE, stop, &gone, Ok(())),
    ];
    for (who, path, key, value, expected) in table {
        let call = annotated(path, key, value);
        stage.attempt(key, who, &call, expected).await;
    }
    let made = json!({ "metadata": { "name": "third", "annotations": { ask: "{}" } } });
    let made = Call::new("POST", "/api/v1/nodes", JSON, made);
    stage
        .attempt("a Node made with a request", Person, &made, Err(NEEDS))
        .await;
}

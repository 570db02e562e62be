//! PowerRemediation and its template: bad input is refused with the field's name, and an empty
//! template gives a health check a complete object. Source: specification §4.2.

use dogwatch_api::{power_remediation, power_remediation_template};
use dogwatch_testbed::KubernetesRelease;
use serde_json::{Value, json};

use super::Who::Person;
use super::{Call, Stage};
use crate::support::api::{JSON, MERGE};

const VERSION: &str = "dogwatch.dev/v1alpha1";

/// A stage with both kinds; returns the paths of requests and templates.
async fn stage() -> (Stage, String, String) {
    let stage = Stage::set().await;
    let requests = stage.install(&power_remediation::remediation_crd()).await;
    let templates = stage
        .install(&power_remediation_template::template_crd())
        .await;
    (stage, requests, templates)
}

fn request(name: &str, strategy: &Value) -> Value {
    json!({ "apiVersion": VERSION, "kind": power_remediation::KIND, "metadata": { "name": name },
        "spec": { "strategy": strategy } })
}

fn template(name: &str, strategy: &Value) -> Value {
    json!({ "apiVersion": VERSION, "kind": power_remediation_template::KIND,
        "metadata": { "name": name }, "spec": { "template": { "spec": { "strategy": strategy } } } })
}

/// Strategy, the field below it that the error names, and the error's text.
const REFUSED: [(&str, &str, &str); 13] = [
    (
        r#"{"type": "Reboot"}"#,
        "type",
        r#"supported values: "DeleteNode", "OutOfServiceTaint""#,
    ),
    (r#"{"type": "deletenode"}"#, "type", "supported values"),
    (r#"{"type": ""}"#, "type", "supported values"),
    (
        r#"{"retryLimit": -1}"#,
        "retryLimit",
        "greater than or equal to 0",
    ),
    (
        r#"{"retryLimit": 11}"#,
        "retryLimit",
        "less than or equal to 10",
    ),
    (r#"{"retryLimit": "1"}"#, "retryLimit", "integer"),
    (r#"{"retryLimit": 1.5}"#, "retryLimit", "integer"),
    (
        r#"{"timeout": "59s"}"#,
        "timeout",
        "write at least 1m: off is confirmed by two readings, and a machine has to boot",
    ),
    (
        r#"{"timeout": "0"}"#,
        "timeout",
        "write a duration longer than zero",
    ),
    (
        r#"{"timeout": "10 minutes"}"#,
        "timeout",
        "write a duration like 90s, 10m or 1h30m (a day is 24h)",
    ),
    (
        r#"{"timeout": "-5m"}"#,
        "timeout",
        "write a duration like 90s",
    ),
    (r#"{"timeout": 600}"#, "timeout", "string"),
    (
        r#"{"timeoutSeconds": 600}"#,
        "timeoutSeconds",
        "unknown field",
    ),
];

#[tokio::test]
async fn bad_input_is_refused_with_the_field_named_and_what_to_write() {
    let (stage, requests, templates) = stage().await;
    for (strategy, field, says) in REFUSED {
        let strategy: Value = serde_json::from_str(strategy).expect("JSON");
        for (path, made, prefix) in [
            (&requests, request("a", &strategy), "spec.strategy"),
            (
                &templates,
                template("a", &strategy),
                "spec.template.spec.strategy",
            ),
        ] {
            let path = format!("{path}?dryRun=All&fieldValidation=Strict");
            let answer = stage.cluster.api.attempt("POST", &path, JSON, &made).await;
            let refused = answer.expect_err(&strategy.to_string());
            assert!(refused.contains(&format!("{prefix}.{field}")), "{refused}");
            assert!(refused.contains(says), "{strategy}: {refused}");
        }
    }
}

#[tokio::test]
async fn what_is_not_said_is_filled_in_and_every_good_strategy_is_taken() {
    let (stage, requests, templates) = stage().await;
    let api = &stage.cluster.api;
    let whole = json!({ "type": "DeleteNode", "retryLimit": 1, "timeout": "10m" });
    // Cluster API omits the spec of a template that has none.
    for (name, spec) in [("none", None), ("empty", Some(json!({})))] {
        let mut made = request(name, &Value::Null);
        made["spec"] = spec.unwrap_or_default();
        if made["spec"].is_null() {
            made.as_object_mut().expect("an object").remove("spec");
        }
        let made = api.create(&requests, &made).await;
        assert_eq!(made["spec"]["strategy"], whole, "{name}");
    }
    let mut made = template("empty", &Value::Null);
    made["spec"] = json!({ "template": {} });
    let made = api.create(&templates, &made).await;
    assert_eq!(made["spec"]["template"]["spec"]["strategy"], whole);
    for (index, strategy) in [
        json!({ "type": "OutOfServiceTaint", "retryLimit": 0, "timeout": "1m" }),
        json!({ "type": "DeleteNode", "retryLimit": 10, "timeout": "1.5h" }),
        json!({ "type": "DeleteNode", "retryLimit": 2, "timeout": "1h30m" }),
    ]
    .into_iter()
    .enumerate()
    {
        let made = api
            .create(&requests, &request(&format!("r{index}"), &strategy))
            .await;
        assert_eq!(made["spec"]["strategy"], strategy);
    }
}

#[tokio::test]
async fn a_request_keeps_its_strategy_and_may_change_how_long_and_how_often_it_tries() {
    let (stage, requests, templates) = stage().await;
    let api = &stage.cluster.api;
    for (name, strategy) in [
        ("said", json!({ "type": "OutOfServiceTaint" })),
        ("unsaid", json!({})),
    ] {
        api.create(&requests, &request(name, &strategy)).await;
        api.create(&templates, &template(name, &strategy)).await;
    }
    let change = |path: &str, strategy: Value| {
        Call::new(
            "PATCH",
            path,
            MERGE,
            json!({ "spec": { "strategy": strategy } }),
        )
    };
    let is_1_32 = KubernetesRelease::selected().unwrap().minor() == "1.32";
    let (kept, taint) = if is_1_32 {
        // It prints the type of the refused value.
        let kept = "spec.strategy.type: Invalid value: \"string\": this field cannot be changed";
        (kept, kept)
    } else {
        (
            "spec.strategy.type: Invalid value: \"DeleteNode\": this field cannot be changed",
            "spec.strategy.type: Invalid value: \"OutOfServiceTaint\": this field cannot be changed",
        )
    };
    let (said, unsaid) = (format!("{requests}/said"), format!("{requests}/unsaid"));
    for (path, strategy, expected) in [
        (&said, json!({ "type": "DeleteNode" }), Err(kept)),
        (&said, json!({ "type": null }), Err(kept)),
        (&said, Value::Null, Err(kept)),
        (&unsaid, json!({ "type": "OutOfServiceTaint" }), Err(taint)),
        (&unsaid, json!({ "type": "DeleteNode" }), Ok(())),
        (&unsaid, Value::Null, Ok(())),
        (&said, json!({ "retryLimit": 0, "timeout": "20m" }), Ok(())),
    ] {
        let what = strategy.to_string();
        stage
            .attempt(&what, Person, &change(path, strategy), expected)
            .await;
    }
    let other =
        json!({ "spec": { "template": { "spec": { "strategy": { "type": "DeleteNode" } } } } });
    let other = Call::new("PATCH", format!("{templates}/said"), MERGE, other);
    stage.attempt("a template", Person, &other, Ok(())).await;
}

#[tokio::test]
async fn a_table_of_requests_says_where_each_stands() {
    let (stage, requests, _) = stage().await;
    let api = &stage.cluster.api;
    api.create(&requests, &request("worker-1", &json!({})))
        .await;
    let at = "2026-01-01T00:00:00.000001Z";
    let status = json!({ "status": {
        "phase": "PoweringOff", "node": { "name": "node-1" },
        "host": { "namespace": "metal", "name": "host-1", "uid": "u" },
        "attempt": { "number": 2, "startedAt": at },
        "conditions": [{ "type": "Remediation", "status": "True", "reason": "ProvingOff",
            "message": "", "lastTransitionTime": at }],
    } });
    api.merge(&format!("{requests}/worker-1/status"), &status)
        .await;
    let namespace = format!("--namespace={}", stage.cluster.namespace);
    let table = |words: &'static [&'static str]| {
        let words = [&["get", "prem", &namespace][..], words].concat();
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let plane = &stage.cluster.plane;
        async move {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            plane.run_kubectl(&words, "").await.expect("a table")
        }
    };
    let short = table(&[]).await;
    let cells = |line: Option<&str>| -> Vec<String> {
        let line = line.unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect()
    };
    let mut lines = short.lines();
    let heads = ["NAME", "PHASE", "NODE", "HOST", "ATTEMPT", "AGE"];
    assert_eq!(cells(lines.next()), heads, "{short}");
    let row = ["worker-1", "PoweringOff", "node-1", "host-1", "2"];
    assert_eq!(cells(lines.next())[..5], row, "{short}");
    let wide = table(&["-o", "wide"]).await;
    assert!(
        wide.contains("REASON") && wide.contains("ProvingOff"),
        "{wide}"
    );
}

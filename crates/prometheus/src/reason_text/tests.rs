//! Results in, sentences out.

use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::*;
use crate::answer::{self, TokenSent};

fn address() -> PrometheusAddress {
    PrometheusAddress::parse("http://prom:9090/x").unwrap()
}

fn found(series: &[Value]) -> QueryResults {
    let body = json!({ "status": "success", "data": { "resultType": "vector", "result": series } });
    let body = body.to_string();
    answer::parse_answer(
        StatusCode::OK,
        &HeaderMap::new(),
        body.as_bytes(),
        TokenSent::Yes,
    )
    .unwrap()
}

fn series(metric: &Value, value: &str) -> Value {
    json!({ "metric": metric, "value": [1, value] })
}

#[test]
fn alerts_are_named_up_to_five() {
    let say = |names: &[&str]| format_alerts(&names.iter().copied().collect(), &address());
    assert_eq!(say(&[]), None);
    assert_eq!(say(&["B"]).unwrap(), "alert B at http://prom:9090/x");
    assert_eq!(
        say(&["B", "A"]).unwrap(),
        "alerts A and B at http://prom:9090/x"
    );
    assert_eq!(
        say(&["E", "D", "C", "B", "A"]).unwrap(),
        "alerts A, B, C, D and E at http://prom:9090/x"
    );
    let seven = say(&["G", "F", "E", "D", "C", "B", "A"]);
    assert_eq!(
        seven.unwrap(),
        "alerts A, B, C, D, E and 2 more at http://prom:9090/x"
    );
}

#[test]
fn results_are_shown_as_promql_writes_them_in_one_order() {
    let a = series(&json!({ "__name__": "up", "job": "a" }), "1");
    let b = series(&json!({}), "2");
    let c = series(&json!({ "x": "say \"y\"" }), "3");
    let one = format_results(&found(&[a.clone(), b.clone(), c.clone()]), &address()).unwrap();
    let other = format_results(&found(&[c, a, b]), &address()).unwrap();
    assert_eq!(
        one,
        r#"the query has results at http://prom:9090/x: up{job="a"}, {x="say \"y\""} and {}"#
    );
    assert_eq!(one, other);
    assert_eq!(format_results(&found(&[]), &address()), None);
}

#[test]
fn a_value_that_changes_changes_no_sentence() {
    let say =
        |value: &str| format_results(&found(&[series(&json!({ "a": "b" }), value)]), &address());
    assert_eq!(say("1"), say("1.5"));
}

#[test]
fn a_comparison_with_bool_is_explained() {
    let zero = format_results(&found(&[series(&json!({}), "0")]), &address()).unwrap();
    assert!(zero.contains("without `bool`"), "{zero}");
}

#[test]
fn what_others_wrote_stays_short_and_on_one_line() {
    let long = "ä\n".repeat(150);
    let clipped = clip_text(&long);
    assert_eq!(clipped.chars().count(), MAX_TEXT_CHARS + 1);
    assert!(clipped.ends_with('…') && !clipped.contains('\n'));
    let name = "A".repeat(10_000);
    let said = format_alerts(&[name.as_str()].into(), &address()).unwrap();
    assert!(said.len() < 300, "{}", said.len());
}

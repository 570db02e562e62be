//! Bodies in, results or reasons out.

use http::HeaderValue;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn body(kind: &str, result: &Value) -> String {
    json!({ "status": "success", "data": { "resultType": kind, "result": result } }).to_string()
}

fn with(status: u16, content_type: &'static str, body: &str) -> Result<QueryResults, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    let status = StatusCode::from_u16(status).unwrap();
    parse_answer(status, &headers, body.as_bytes(), TokenSent::NoneThere)
        .map_err(|trouble| trouble.error_chain())
}

fn ok(body: &str) -> Result<QueryResults, String> {
    with(200, "application/json", body)
}

#[test]
fn an_empty_vector_or_matrix_is_the_only_thing_that_is_empty() {
    assert_eq!(
        ok(&body("vector", &json!([])))
            .unwrap()
            .iter_labels()
            .count(),
        0
    );
    assert_eq!(
        ok(&body("matrix", &json!([])))
            .unwrap()
            .iter_labels()
            .count(),
        0
    );
    let sample = json!([{ "metric": {}, "value": [1.5, "NaN"] }]);
    assert_eq!(
        ok(&body("vector", &sample)).unwrap().iter_labels().count(),
        1
    );
    let histogram = json!([{ "metric": { "a": "b" }, "histogram": [1.5, { "count": "1" }] }]);
    assert_eq!(
        ok(&body("vector", &histogram))
            .unwrap()
            .iter_labels()
            .count(),
        1
    );
    let series = json!([{ "metric": { "a": "b" }, "values": [[1, "2"]] }]);
    assert_eq!(
        ok(&body("matrix", &series)).unwrap().iter_labels().count(),
        1
    );
}

#[test]
fn values_that_are_all_0_are_results_all_the_same() {
    let zero = json!({ "metric": {}, "value": [1, "0"] });
    let one = json!({ "metric": {}, "value": [1, "1"] });
    assert!(ok(&body("vector", &json!([zero]))).unwrap().all_zero);
    assert!(!ok(&body("vector", &json!([zero, one]))).unwrap().all_zero);
    assert!(!ok(&body("vector", &json!([]))).unwrap().all_zero);
}

/// Status, content type, body, and the expected reason, which quotes nothing of a body that is not
/// Prometheus'.
fn refused(status: u16, content_type: &'static str, body: &str, says: &str) {
    let why = with(status, content_type, body).unwrap_err();
    assert!(why.contains(says), "{status} {body}: {why}");
    assert!(!why.contains("secret") && !why.contains('\n'), "{why}");
}

#[test]
fn a_success_that_is_no_whole_list_is_no_answer() {
    let of = |data: Value| json!({ "status": "success", "data": data }).to_string();
    let with = |field: &str, value: Value| {
        let data = json!({ "resultType": "vector", "result": [] });
        json!({ "status": "success", field: value, "data": data }).to_string()
    };
    let empty = body("vector", &json!([]));
    for (body, says) in [
        (
            body("scalar", &json!([1, "0"])),
            "a scalar, which is never empty; write a comparison",
        ),
        (body("string", &json!([1, ""])), "a string"),
        (
            body("streams", &json!([])),
            "application/json, not like a Prometheus",
        ),
        (
            with("warnings", json!(["a store\nis away"])),
            "may be incomplete; Prometheus warns: a store is away",
        ),
        (with("isPartial", json!(true)), "incomplete"),
        (json!({ "status": "success" }).to_string(), "no result"),
        (
            of(json!({ "resultType": "vector" })),
            "not like a Prometheus",
        ),
        (of(json!([])), "not like a Prometheus"),
        (
            json!({ "data": { "resultType": "vector", "result": [] } }).to_string(),
            "not like a Prometheus",
        ),
        (empty[..empty.len() - 1].to_owned(), "not like a Prometheus"),
        (format!("{empty}x"), "not like a Prometheus"),
        (String::new(), "not like a Prometheus"),
    ] {
        refused(200, "application/json", &body, says);
    }
    let advice = "answers with text/html, not like a Prometheus; check the address";
    refused(200, "text/html; charset=utf-8", "<html>secret", advice);
}

#[test]
fn an_error_in_prometheus_own_words_is_quoted() {
    let error = |kind: &str, text: &str| {
        json!({ "status": "error", "errorType": kind, "error": text }).to_string()
    };
    let bad = error("bad_data", "1:5: parse error");
    let timeout = error("timeout", "query timed out");
    refused(
        200,
        "application/json",
        &bad,
        "does not understand the query: 1:5",
    );
    refused(
        400,
        "application/json",
        &bad,
        "does not understand the query: 1:5",
    );
    refused(
        503,
        "application/json",
        &timeout,
        "it says timeout: query timed out",
    );
}

#[test]
fn any_other_status_is_no_answer_whatever_the_body_says() {
    let empty = body("vector", &json!([]));
    for (status, says) in [
        (204, "204 No Content"),
        (302, "redirects, and Dogwatch does not follow redirects"),
        (401, "401 Unauthorized; if it needs a token"),
        (403, "403 Forbidden; if it needs a token"),
        (404, "404 Not Found; check the address"),
        (414, "make the query shorter"),
        (500, "500 Internal Server Error"),
        (503, "503 Service Unavailable"),
    ] {
        refused(status, "application/json", &empty, says);
        refused(status, "text/plain", "secret", says);
    }
}

#[test]
fn hints_of_style_and_new_fields_are_no_trouble() {
    let text = json!({
        "status": "success", "infos": ["metric might not be a counter"], "warnings": null, "more": 1,
        "data": { "result": [], "resultType": "vector", "stats": {} },
    });
    assert_eq!(ok(&text.to_string()).unwrap().iter_labels().count(), 0);
}

#[test]
fn a_redirect_is_shown_without_its_query() {
    let mut headers = HeaderMap::new();
    let location = "https://u:secret@login.example:8443/secret?state=secret";
    headers.insert(LOCATION, HeaderValue::from_static(location));
    let trouble = parse_answer(StatusCode::FOUND, &headers, b"", TokenSent::Yes).unwrap_err();
    let words = trouble.error_chain();
    assert!(
        words.contains("to https://login.example:8443, and Dogwatch"),
        "{words}"
    );
    assert!(!words.contains("secret"), "{words}");
}

#[test]
fn who_has_to_mend_a_401_is_told_whether_the_token_was_sent() {
    for (token, says) in [
        (TokenSent::Yes, "was sent"),
        (TokenSent::NoneThere, "set --prometheus-token-file"),
        (TokenSent::OtherOrigin, "is another server"),
    ] {
        let answer = parse_answer(StatusCode::UNAUTHORIZED, &HeaderMap::new(), b"", token);
        let words = answer.unwrap_err().error_chain();
        assert!(words.contains(says), "{words}");
    }
}

proptest! {
    #[test]
    fn no_part_of_an_answer_is_an_answer(cut in 0_usize..1000) {
        let whole = body("vector", &json!([{ "metric": { "a": "b" }, "value": [1, "1"] }]));
        let cut = cut % whole.len();
        prop_assert!(ok(&whole[..cut]).is_err());
    }
}

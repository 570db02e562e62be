//! Every answer of the lock API: its request, that it is one line, and that `openapi.json` has it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt;

use super::rig::{Answer, Rig, answer, config, post};
use crate::lock::http::LockAuthMode;
use crate::lock::http::openapi::OPENAPI_JSON;

const LOCK: &str = "/api/v1/lock";
const UNLOCK: &str = "/api/v1/unlock";
const TOKEN: &str = "authorization: Bearer of-alice";

/// The request, the status, and a word of the answer.
type Case = (String, u16, &'static str);

fn form(path: &str, form: &str, status: u16, word: &'static str) -> Case {
    (post(path, &[TOKEN], form), status, word)
}

fn with(path: &str, headers: &[&str], status: u16, word: &'static str) -> Case {
    (post(path, headers, "hostname=n1"), status, word)
}

fn typed(path: &str, kind: &str, body: &str, status: u16, word: &'static str) -> Case {
    let head = format!("POST {path} HTTP/1.1\r\nhost: it\r\nconnection: close\r\n{TOKEN}\r\n");
    let length = body.len();
    let text = format!("{head}{kind}content-length: {length}\r\n\r\n{body}");
    (text, status, word)
}

/// The form, the status, and a word of the answer, for both calls.
const FORMS: &[(&str, u16, &str)] = &[
    ("", 400, "hostname is missing"),
    ("hostname", 400, "it is empty"),
    ("hostname=", 400, "it is empty"),
    ("host=n1", 400, "hostname is missing"),
    ("hostname=n1&hostname=n1", 400, "hostname appears twice"),
    ("hostname=n_1", 400, "a DNS name has"),
    ("hostname=n1.", 400, "a DNS name has"),
    ("hostname=-n1", 400, "a DNS name has"),
    ("hostname=n1%0A", 400, "a DNS name has"),
    ("hostname=%ff%fe", 400, "a DNS name has"),
    ("hostname=..%2f..%2fnodes", 400, "a DNS name has"),
    ("hostname=n1&hots=n2", 400, "unknown field \"hots\""),
    (
        "hostname=foreign",
        403,
        "user \"alice\" may not lock foreign",
    ),
    ("hostname=unavailable", 503, ""),
    ("hostname=refused", 409, ""),
];

/// Headers beside a valid form.
const HEADERS: &[(&[&str], u16, &str)] = &[
    (
        &[TOKEN, "content-encoding: gzip"],
        415,
        "without a content encoding",
    ),
    (&[TOKEN, "origin: https://example.org"], 403, "web pages"),
    (&[], 401, "send a bearer token"),
    (
        &["authorization: Basic Ym9iOmJvYg=="],
        401,
        "other schemes are not supported",
    ),
    (
        &["authorization: Bearer"],
        401,
        "other schemes are not supported",
    ),
    (
        &["authorization: Bearer two words"],
        401,
        "other schemes are not supported",
    ),
    (&[TOKEN, TOKEN], 401, "more than one"),
    (
        &["authorization: Bearer nobodys"],
        401,
        "rejects this token",
    ),
    (
        &["authorization: Bearer while-away"],
        503,
        "gave no valid answer",
    ),
];

/// Content types, and the body.
const TYPES: &[(&str, &str, u16, &str)] = &[
    ("", "hostname=n1", 415, "a body without a content type"),
    (
        "content-type: application/json\r\n",
        "{}",
        415,
        "send a form",
    ),
    (
        "content-type: multipart/form-data\r\n",
        "",
        400,
        "no boundary",
    ),
    (
        "content-type: multipart/form-data; boundary=b\r\n",
        "--b\r\nhalf",
        400,
        "cannot be read",
    ),
];

/// Bad and good requests that both calls answer alike.
fn of_both(path: &'static str) -> Vec<Case> {
    let long = format!("hostname={}", "a".repeat(254));
    let label = format!("hostname={}.example", "a".repeat(64));
    let huge = format!("hostname={}", "a".repeat(4 * 1024));
    let mut all = vec![
        form(path, &long, 400, "longer than 253 bytes"),
        form(path, &label, 400, "longer than 63 bytes"),
        form(path, &huge, 413, "longer than 4 KiB"),
        form(&format!("{path}?hostname=n1"), "", 400, "in the body"),
    ];
    all.extend(
        FORMS
            .iter()
            .map(|(text, status, word)| form(path, text, *status, word)),
    );
    all.extend(
        HEADERS
            .iter()
            .map(|(headers, status, word)| with(path, headers, *status, word)),
    );
    all.extend(
        TYPES
            .iter()
            .map(|(kind, body, status, word)| typed(path, kind, body, *status, word)),
    );
    all
}

fn cases() -> Vec<(&'static str, Case)> {
    let of_lock = [
        form(
            LOCK,
            "hostname=n1&wait=maybe",
            400,
            "wait must be true or false",
        ),
        form(
            LOCK,
            "hostname=n1&wait=True",
            400,
            "wait must be true or false",
        ),
        form(LOCK, "hostname=n1&wait=", 400, "wait must be true or false"),
        form(
            LOCK,
            "hostname=n1&wait=true&wait=true",
            400,
            "wait appears twice",
        ),
        form(LOCK, "hostname=N1&wait=true", 200, "held"),
        form(LOCK, "hostname=n1", 200, "held already"),
        form(LOCK, "hostname=n2&wait=false", 409, "others hold it"),
        form(LOCK, "hostname=outside-window", 409, "two budgets"),
        form(LOCK, "hostname=drain-fails", 504, "two budgets on one pod"),
        form(LOCK, "hostname=too-many", 429, "two budgets"),
    ];
    let of_unlock = [
        form(
            UNLOCK,
            "hostname=n1&wait=true",
            400,
            "unknown field \"wait\"",
        ),
        form(UNLOCK, "hostname=n1", 200, "held no more"),
    ];
    let get = "GET /api/openapi.json HTTP/1.1\r\nhost: it\r\nconnection: close\r\n\r\n";
    let lock = of_both(LOCK).into_iter().chain(of_lock);
    let unlock = of_both(UNLOCK).into_iter().chain(of_unlock);
    let lock = lock.map(|case| (LOCK, case));
    let unlock = unlock.map(|case| (UNLOCK, case));
    let mut all: Vec<_> = lock.chain(unlock).collect();
    all.push(("/api/openapi.json", (get.to_owned(), 200, "openapi")));
    all
}

type Seen = BTreeMap<&'static str, BTreeSet<u16>>;

fn check(request: &str, answer: &Answer, status: u16, word: &str) {
    let what = request.get(..200).unwrap_or(request);
    assert_eq!(answer.status, status, "{what}\n{answer:?}");
    assert!(answer.body.contains(word), "{what}\n{answer:?}");
    assert!(answer.body.ends_with('\n'), "{what}\n{answer:?}");
    let later = matches!(status, 429 | 503) || request.contains("outside-window");
    assert_eq!(answer.header("retry-after").is_some(), later, "{answer:?}");
    let who = answer.header("www-authenticate");
    assert_eq!(who.is_some(), status == 401, "{answer:?}");
}

/// A body that is announced and never sent.
async fn half(rig: &Rig, path: &str) -> Answer {
    let mut stream = rig.connect().await;
    let head = post(path, &[TOKEN], "hostname=n1");
    let half = head.as_bytes().split_last_chunk::<4>().unwrap().0;
    stream.write_all(half).await.unwrap();
    answer(&mut stream).await
}

#[tokio::test]
async fn every_answer_is_a_line_and_is_described_and_each_described_one_is_given() {
    let mut config = config(LockAuthMode::Kubernetes);
    config.limits.body = Duration::from_millis(200);
    let rig = Rig::start(config).await;
    let mut seen = Seen::new();
    for (path, (request, status, word)) in cases() {
        let answer = rig.raw(&request).await;
        check(&request, &answer, status, word);
        assert!(status == 200 || answer.is_one_line(), "{answer:?}");
        seen.entry(path).or_default().insert(status);
    }
    for path in [LOCK, UNLOCK] {
        let answer = half(&rig, path).await;
        check(path, &answer, 408, "the body did not arrive");
        seen.entry(path).or_default().insert(408);
    }
    assert_eq!(seen, described());
}

/// The statuses of each path in `openapi.json`. Each path has one method, which the cases use.
fn described() -> Seen {
    let document: Value = serde_json::from_str(OPENAPI_JSON).unwrap();
    let statuses = |methods: &Value| {
        let (_, call) = methods.as_object().unwrap().iter().next().unwrap();
        let statuses = call["responses"].as_object().unwrap().keys();
        statuses.map(|status| status.parse().unwrap()).collect()
    };
    let paths = document["paths"].as_object().unwrap().iter();
    let name = |path: &str| {
        [LOCK, UNLOCK, "/api/openapi.json"]
            .into_iter()
            .find(|p| *p == path)
    };
    paths
        .map(|(path, methods)| (name(path).unwrap(), statuses(methods)))
        .collect()
}

#[tokio::test]
async fn other_methods_are_405_with_those_that_are_described() {
    let rig = Rig::open().await;
    let document: Value = serde_json::from_str(OPENAPI_JSON).unwrap();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let methods: Vec<_> = methods.as_object().unwrap().keys().collect();
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"] {
            let described = methods.contains(&&method.to_ascii_lowercase());
            let request = format!(
                "{method} {path} HTTP/1.1\r\nhost: it\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            );
            let answer = rig.raw(request).await;
            assert_eq!(
                answer.status != 405,
                described,
                "{method} {path} {answer:?}"
            );
            if !described {
                let allow = answer.header("allow").unwrap();
                assert!(allow.contains(methods[0]), "{allow}");
                assert!(answer.is_one_line(), "{answer:?}");
            }
        }
    }
}

#[tokio::test]
async fn other_paths_are_404_and_name_those_that_there_are() {
    let rig = Rig::open().await;
    for target in [
        "/",
        "/api/v1/lock/",
        "/api//v1/lock",
        "/API/v1/lock",
        "/v1/pre-reboot",
        "*",
        "http://it/metrics",
    ] {
        let request = format!("POST {target} HTTP/1.1\r\nhost: it\r\nconnection: close\r\n\r\n");
        let answer = rig.raw(request).await;
        assert_eq!(answer.status, 404, "{target} {answer:?}");
        assert!(
            answer.is_one_line() && answer.body.contains("/api/v1/lock"),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn a_request_that_is_refused_never_reaches_the_lock() {
    let rig = Rig::start(config(LockAuthMode::Kubernetes)).await;
    for (_, (request, status, _)) in cases() {
        if (400..404).contains(&status) || (413..416).contains(&status) {
            rig.raw(&request).await;
        }
    }
    assert_eq!(*rig.lock.asked.lock().unwrap(), []);
}

#[test]
fn the_book_has_every_answer_with_its_word() {
    const BOOK: &str = include_str!("../../../../../../docs/lock-api.md");
    use crate::lock::http::reply::RequestOutcome;
    // A new answer does not compile into `http_status` without a thought; add it here by hand.
    let verdicts = [
        RequestOutcome::Held,
        RequestOutcome::Busy,
        RequestOutcome::NotAllowed,
        RequestOutcome::DrainFailed,
        RequestOutcome::Refused,
        RequestOutcome::TooMany,
        RequestOutcome::Unavailable,
        RequestOutcome::Free,
        RequestOutcome::UnlockFailed,
        RequestOutcome::Malformed,
        RequestOutcome::Unauthenticated,
        RequestOutcome::Forbidden,
        RequestOutcome::NoSuchPath,
        RequestOutcome::WrongMethod,
        RequestOutcome::Slow,
        RequestOutcome::TooLarge,
        RequestOutcome::UnknownType,
    ];
    let rows = verdicts.map(|verdict| {
        let (status, word) = (verdict.http_status().as_u16(), verdict.outcome_label());
        format!("| {status} | `{word}` |")
    });
    for row in &rows {
        assert!(BOOK.contains(row), "{row}");
    }
    let written = BOOK
        .lines()
        .filter(|line| line.starts_with("| ") && line[2..].starts_with(char::is_numeric));
    assert_eq!(
        written.filter(|line| line.contains('`')).count(),
        rows.len()
    );
    for word in [RequestOutcome::NoHeader, RequestOutcome::Gone].map(RequestOutcome::outcome_label)
    {
        assert!(BOOK.contains(&format!("`{word}`")), "{word}");
    }
}

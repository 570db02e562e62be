//! Servers that hang, break off, lie or redirect. Each keeps the gate shut, in time.

use std::time::Duration;

use dogwatch_prometheus::{PrometheusClient, PrometheusSettings};
use tokio::net::TcpListener;

use crate::served::{EMPTY, Served, Then, whole};
use crate::{query, why};

fn impatient() -> PrometheusSettings {
    PrometheusSettings {
        time_limit: Duration::from_millis(300),
        ..PrometheusSettings::default()
    }
}

async fn answered(text: String) -> String {
    let server = Served::http(Then::Answer(text)).await;
    why(PrometheusSettings::default(), &server.url).await
}

#[tokio::test]
async fn a_whole_empty_answer_opens_the_gate_though_the_connection_stays_open() {
    let server = Served::http(Then::Hang(whole("200 OK", "", EMPTY))).await;
    let asks = PrometheusClient::new(PrometheusSettings::default());
    // The server keeps the connection open: only a client that trusts the body's length ends in
    // time.
    assert_eq!(
        asks.shut_reasons_of(&query(&server.url, "up")).await,
        [""; 0]
    );
    let head = server.asked().remove(0);
    assert!(
        head.starts_with("GET /api/v1/query?query=up HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(!head.to_lowercase().contains("authorization"), "{head}");
}

#[tokio::test]
async fn a_server_that_hangs_anywhere_is_given_up_in_time() {
    let half = whole("200 OK", "", EMPTY).replace("length: ", "length: 9");
    for begun in ["", "HTTP/1.1 200 OK\r\n", &half] {
        let server = Served::http(Then::Hang(begun.to_owned())).await;
        let why = why(impatient(), &server.url).await;
        assert!(why.contains("no answer within 0.3 s"), "{begun}: {why}");
    }
    // No server accepts: TCP connects, TLS never answers.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let (_folder, file) = certificate_file();
    let settings = PrometheusSettings {
        ca_file: Some(file),
        ..impatient()
    };
    let why = why(settings, &url).await;
    assert!(why.contains("no answer within"), "{why}");
}

/// A CA file that matches no server here, and its folder.
fn certificate_file() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.crt");
    let key = rcgen::KeyPair::generate().unwrap();
    let ca = rcgen::CertificateParams::new(vec!["ca".to_owned()]).unwrap();
    std::fs::write(&file, ca.self_signed(&key).unwrap().pem()).unwrap();
    (folder, file)
}

#[tokio::test]
async fn half_an_answer_is_none() {
    let cut = whole("200 OK", "", EMPTY).replace("length: ", "length: 9");
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{EMPTY}\r\n",
        EMPTY.len()
    );
    for text in [
        cut,
        chunked,
        String::new(),
        "HTTP/1.1 200 OK\r\n".to_owned(),
        "hello\r\n\r\n".to_owned(),
    ] {
        let why = answered(text.clone()).await;
        assert!(
            why.contains("broke before the answer was complete"),
            "{text}: {why}"
        );
    }
}

#[tokio::test]
async fn an_endless_answer_is_given_up() {
    let head = "HTTP/1.1 200 OK\r\n\r\n".to_owned();
    let server = Served::http(Then::Flood(head)).await;
    let why = why(PrometheusSettings::default(), &server.url).await;
    assert!(
        why.contains("larger than 4 MiB; make the result smaller"),
        "{why}"
    );
}

#[tokio::test]
async fn a_redirect_is_said_and_not_followed() {
    let elsewhere = Served::http(Then::Answer(whole("200 OK", "", EMPTY))).await;
    for status in [
        "301 Moved Permanently",
        "302 Found",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let location = format!("location: {}/secret?secret\r\n", elsewhere.url);
        let why = answered(whole(status, &location, EMPTY)).await;
        assert!(
            why.contains(&format!(
                "redirects to {}, and Dogwatch does not follow redirects",
                elsewhere.url
            )),
            "{why}"
        );
        assert!(!why.contains("secret"), "{why}");
    }
    assert_eq!(elsewhere.asked(), [""; 0]);
}

#[tokio::test]
async fn what_another_kind_of_server_says_is_in_no_sentence() {
    for (status, kind, says) in [
        (
            "200 OK",
            "text/html",
            "answers with text/html, not like a Prometheus",
        ),
        (
            "200 OK",
            "application/json",
            "answers with application/json, not like a Prometheus",
        ),
        (
            "500 Internal Server Error",
            "text/plain",
            "500 Internal Server Error",
        ),
        (
            "401 Unauthorized",
            "text/plain",
            "401 Unauthorized; if it needs a token",
        ),
    ] {
        let kind = format!("content-type: {kind}\r\n");
        let why = answered(whole(status, &kind, r#"{"secret":"secret"}"#)).await;
        assert!(why.contains(says) && !why.contains("secret"), "{why}");
    }
}

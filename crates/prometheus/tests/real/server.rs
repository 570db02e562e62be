//! A real Prometheus.

use dogwatch_core::policy::{BlockingAlerts, PrometheusGate, PrometheusQuery};
use dogwatch_prometheus::{PrometheusClient, PrometheusSettings};
use dogwatch_testbed::prometheus::{TestAlert, TestPrometheus as Server};
use tokio::time::{Instant, sleep};

use crate::{PATIENCE, any_alert, query, trusting, why};

/// Asks until the reasons are the expected ones: rules are evaluated once a second.
async fn until(prometheus: &PrometheusClient, gate: &PrometheusGate, expected: &[String]) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let shut = prometheus.shut_reasons_of(gate).await;
        if shut == expected {
            return;
        }
        assert!(Instant::now() < deadline, "{shut:?}, not {expected:?}");
        sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn alerts_shut_the_gate_by_name_and_open_it_when_they_are_over() {
    let alerts = [
        TestAlert::Firing("DiskFull"),
        TestAlert::Pending("NodeDown"),
    ];
    let server = Server::start(&alerts).await.unwrap();
    let asks = PrometheusClient::new(PrometheusSettings::default());
    let url = server.base_url();
    let gate = |ignore: Option<&str>, only: Option<&str>, firing_only| PrometheusGate {
        url: url.to_owned(),
        ask: PrometheusQuery::Alerts(BlockingAlerts {
            ignore: ignore.map(str::to_owned),
            only: only.map(str::to_owned),
            firing_only,
        }),
    };
    let both = format!("alerts DiskFull and NodeDown at {url}");
    until(&asks, &gate(None, None, false), &[both]).await;
    let disk = [format!("alert DiskFull at {url}")];
    assert_eq!(asks.shut_reasons_of(&gate(None, None, true)).await, disk);
    assert_eq!(
        asks.shut_reasons_of(&gate(Some("^Node"), None, false))
            .await,
        disk
    );
    assert_eq!(
        asks.shut_reasons_of(&gate(None, Some("Full"), false)).await,
        disk
    );
    let open = gate(Some("Disk"), None, true);
    assert_eq!(asks.shut_reasons_of(&open).await, [""; 0]);

    server.set_alerts(&[]).unwrap();
    until(&asks, &gate(None, None, false), &[]).await;
}

#[tokio::test]
async fn a_query_is_open_only_while_it_has_no_result() {
    let server = Server::start(&[]).await.unwrap();
    let url = server.base_url();
    let asks = PrometheusClient::new(PrometheusSettings::default());
    for (text, says) in [
        ("vector(1) == 2", None),
        ("no_such_metric", None),
        ("no_such_metric[5m]", None),
        (
            "vector(1)",
            Some(format!("the query has results at {url}: {{}}")),
        ),
        (
            "label_replace(vector(1), \"a\", \"b&c=d+e #%\", \"\", \"\")",
            Some(format!(
                "the query has results at {url}: {{a=\"b&c=d+e #%\"}}"
            )),
        ),
        (
            "vector(1) == bool 2",
            Some("the values are 0: write the comparison without `bool`".to_owned()),
        ),
        (
            "1 == bool 2",
            Some("returns a scalar, which is never empty".to_owned()),
        ),
        ("\"a\"", Some("returns a string".to_owned())),
        (
            "up(",
            Some("does not understand the query: invalid parameter \"query\"".to_owned()),
        ),
        ("", Some("does not understand the query".to_owned())),
    ] {
        let shut = asks.shut_reasons_of(&query(url, text)).await;
        match says {
            None => assert_eq!(shut, [""; 0], "{text}"),
            Some(says) => assert!(
                shut.len() == 1 && shut[0].contains(&says),
                "{text}: {shut:?}"
            ),
        }
    }
}

#[tokio::test]
async fn an_address_without_the_path_of_the_server_is_said() {
    let server = Server::start(&[]).await.unwrap();
    let origin = server.base_url().strip_suffix("/prometheus").unwrap();
    let why = why(PrometheusSettings::default(), origin).await;
    assert!(why.contains("404 Not Found; check the address"), "{why}");
}

#[tokio::test]
async fn tls_takes_the_ca_that_is_given_and_no_other() {
    let server = Server::start_with_tls(&[TestAlert::Firing("A")])
        .await
        .unwrap();
    let url = server.base_url();
    let asks = PrometheusClient::new(trusting(server.ca_file()));
    let alert = format!("alert A at {url}");
    until(&asks, &any_alert(url), &[alert]).await;

    let other = Server::start_with_tls(&[]).await.unwrap();
    let why = why(trusting(other.ca_file()), url).await;
    assert!(why.contains("no TLS connection; check that --prometheus-ca-file is the CA of this server: invalid peer certificate"), "{why}");
    let plain = url.replace("https", "http");
    let why = crate::why(PrometheusSettings::default(), &plain).await;
    assert!(why.contains("400 Bad Request"), "{why}");
}

#[tokio::test]
async fn https_to_a_server_that_speaks_http_is_said() {
    let server = Server::start(&[]).await.unwrap();
    let certificates = Server::start_with_tls(&[]).await.unwrap();
    let url = server.base_url().replace("http", "https");
    let why = why(trusting(certificates.ca_file()), &url).await;
    assert!(why.contains("no TLS connection"), "{why}");
}

#[tokio::test]
async fn a_ca_that_is_replaced_counts_at_the_next_question() {
    let server = Server::start_with_tls(&[]).await.unwrap();
    let other = Server::start_with_tls(&[]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.crt");
    let asks = PrometheusClient::new(trusting(file.clone()));
    let gate = query(server.base_url(), "no_such_metric");
    std::fs::copy(other.ca_file(), &file).unwrap();
    assert_eq!(asks.shut_reasons_of(&gate).await.len(), 1);
    std::fs::copy(server.ca_file(), &file).unwrap();
    assert_eq!(asks.shut_reasons_of(&gate).await, [""; 0]);
}

#[tokio::test]
async fn a_server_that_is_gone_is_said() {
    let server = Server::start(&[]).await.unwrap();
    let url = server.base_url().to_owned();
    drop(server);
    let why = why(PrometheusSettings::default(), &url).await;
    assert!(
        why.contains(&format!(
            "Prometheus at {url} cannot be queried: no connection"
        )),
        "{why}"
    );
    assert!(why.contains("refused"), "{why}");
}

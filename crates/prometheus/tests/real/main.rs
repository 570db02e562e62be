//! Gates against a real Prometheus, and against servers that misbehave.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod dashboards;
mod faults;
mod served;
mod server;
mod shipped_alerts;
mod token;

use std::path::PathBuf;
use std::time::Duration;

use dogwatch_core::policy::{BlockingAlerts, PrometheusGate, PrometheusQuery};
use dogwatch_prometheus::{PrometheusClient, PrometheusSettings};

/// The longest wait for anything. Generous, because only a failing test waits that long.
const PATIENCE: Duration = Duration::from_mins(2);

/// A gate that asks `query` of the server at `url`.
fn query(url: &str, query: &str) -> PrometheusGate {
    PrometheusGate {
        url: url.to_owned(),
        ask: PrometheusQuery::Query(query.to_owned()),
    }
}

/// A gate that any alert shuts.
fn any_alert(url: &str) -> PrometheusGate {
    PrometheusGate {
        url: url.to_owned(),
        ask: PrometheusQuery::Alerts(BlockingAlerts::default()),
    }
}

fn trusting(ca_file: PathBuf) -> PrometheusSettings {
    PrometheusSettings {
        ca_file: Some(ca_file),
        ..PrometheusSettings::default()
    }
}

/// The only reason that keeps a gate with query `up` at `url` shut, with these settings.
async fn why(settings: PrometheusSettings, url: &str) -> String {
    let shut = PrometheusClient::new(settings)
        .shut_reasons_of(&query(url, "up"))
        .await;
    match shut.as_slice() {
        [one] => one.clone(),
        other => panic!("one sentence expected: {other:?}"),
    }
}

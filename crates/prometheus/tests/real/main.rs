//! Gates against a real Prometheus, and against servers that do what a Prometheus should not.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod faults;
mod served;
mod server;
mod token;

use std::path::PathBuf;
use std::time::Duration;

use dogwatch_core::policy::{Alerts, PrometheusGate, PrometheusQuery};
use dogwatch_prometheus::{Prometheus, Settings};

/// How long anything awaited may take. Generous: it is only ever spent by a test that fails.
const PATIENCE: Duration = Duration::from_mins(2);

/// A gate that asks `query` of the server at `url`.
fn query(url: &str, query: &str) -> PrometheusGate {
    PrometheusGate {
        url: url.to_owned(),
        ask: PrometheusQuery::Query(query.to_owned()),
    }
}

/// A gate that every alert shuts.
fn any_alert(url: &str) -> PrometheusGate {
    PrometheusGate {
        url: url.to_owned(),
        ask: PrometheusQuery::Alerts(Alerts::default()),
    }
}

fn trusting(ca_file: PathBuf) -> Settings {
    Settings {
        ca_file: Some(ca_file),
        ..Settings::default()
    }
}

/// What keeps `up` at `url` shut, by these settings; the only sentence.
async fn why(settings: Settings, url: &str) -> String {
    let shut = Prometheus::new(settings).shut(&query(url, "up")).await;
    match shut.as_slice() {
        [one] => one.clone(),
        other => panic!("one sentence expected: {other:?}"),
    }
}

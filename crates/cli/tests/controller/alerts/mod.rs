//! The shipped alerts and dashboards on what the real programs serve: a real Prometheus scrapes a controller and coordinators, first
//! while all is well, then in trouble.
//!
//! Three alerts are not made to fire here. `DogwatchCoordinatorMissing` is about samples of kube-state-metrics. `DogwatchRemediationStuck`
//! and `DogwatchHealerNeedsAPerson` fire ten and fifteen minutes after the trouble began; the tests of `crates/sim` wait for their samples
//! under a paused clock.

mod rules;
mod trouble;

use std::collections::{BTreeMap, BTreeSet};

use dogwatch_testbed::monitoring::queried_metrics;
use dogwatch_testbed::prometheus::TestPrometheus;
use rustix::process::Signal;
use serde_json::Value;
use tokio::process::Command;

use self::rules::{alert_names, quick_rules};
use self::trouble::TroubledCluster;
use crate::support::eventually;

/// An alert, and the labels of the sample that it fires for.
const FIRES: [(&str, &str); 10] = [
    (
        "DogwatchNeedsAPerson",
        r#"instance="n1",reason="RecordUnreadable""#,
    ),
    ("DogwatchDrainBlocked", r#"instance="n2""#),
    ("DogwatchWaitsLong", r#"instance="n3""#),
    ("DogwatchWaitsForWeeks", r#"instance="n3""#),
    ("DogwatchTriggerUnknown", r#"instance="n4""#),
    (
        "DogwatchPolicyBlocked",
        r#"policy="gated",reason="GateShut""#,
    ),
    ("DogwatchPolicyNotUnderstood", r#"policy="unclear""#),
    ("DogwatchRolloutHalted", r#"policy="careful""#),
    ("DogwatchPowerControlNotReady", r#"reason="SecretNotFound""#),
    ("DogwatchPowerOffPending", ""),
];
const CONTROLLER_GONE: &str = "DogwatchNobodyLeads";
const OF_OTHERS_OR_LATE: [&str; 3] = [
    "DogwatchCoordinatorMissing",
    "DogwatchHealerNeedsAPerson",
    "DogwatchRemediationStuck",
];

/// Asks Prometheus; returns the labels of each series in the answer.
async fn list_series(prometheus: &TestPrometheus, query: &str) -> Vec<Value> {
    let url = format!("{}/api/v1/query", prometheus.base_url());
    let form = format!("query={query}");
    let words = ["-sS", "--data-urlencode", &form, &url];
    let output = Command::new("curl").args(words).output().await.unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["status"], "success", "{query}: {answer}");
    let series = answer["data"]["result"].as_array().unwrap();
    series.iter().map(|one| one["metric"].clone()).collect()
}

async fn until_found(prometheus: &TestPrometheus, query: &str) {
    eventually(|| async {
        let is_empty = list_series(prometheus, query).await.is_empty();
        (!is_empty)
            .then_some(())
            .ok_or(format!("nothing yet: {query}"))
    })
    .await;
}

async fn until_fires(prometheus: &TestPrometheus, alert: &str, labels: &str) {
    let query = format!(r#"ALERTS{{alertname="{alert}",alertstate="firing",{labels}}}"#);
    until_found(prometheus, &query).await;
}

/// The sample of `DogwatchRemediationStuck`, which comes too late for this test.
const LATE_METRIC: &str = "dogwatch_remediation_stuck";

/// The metrics of the rules and dashboards that no scrape had so far. Some apply only while something is under way.
async fn list_missing_metrics(prometheus: &TestPrometheus) -> Vec<String> {
    let mut missing = Vec::new();
    for metric in queried_metrics() {
        let query = format!("last_over_time({metric}[1h])");
        if metric != LATE_METRIC && list_series(prometheus, &query).await.is_empty() {
            missing.push(metric);
        }
    }
    missing
}

#[test]
fn each_shipped_alert_is_made_to_fire_or_left_out_by_name() {
    let fires = FIRES.iter().map(|(alert, _)| (*alert).to_owned());
    let others = OF_OTHERS_OR_LATE.iter().chain([&CONTROLLER_GONE]);
    let all: BTreeSet<String> = fires.chain(others.map(|it| (*it).to_owned())).collect();
    assert_eq!(all, alert_names());
}

#[tokio::test]
async fn alerts_fire_for_running_programs_in_trouble_and_each_metric_is_in_their_scrape() {
    let mut cluster = TroubledCluster::start().await;
    let targets: BTreeMap<String, String> = cluster.list_targets();
    let prometheus = TestPrometheus::start_scraping(&targets, &quick_rules()).await;
    let prometheus = prometheus.unwrap();
    until_found(&prometheus, &format!("sum(up) == {}", targets.len())).await;
    until_found(&prometheus, "dogwatch_leader == 1").await;
    // A rule that saw the time before the first scrape is over one evaluation later.
    eventually(|| async {
        let alerts = list_series(&prometheus, "ALERTS").await;
        alerts.is_empty().then_some(()).ok_or(format!("{alerts:?}"))
    })
    .await;

    cluster.remediate_a_node().await;
    cluster.call_the_lock_api().await;
    cluster.make_trouble().await;
    for (alert, labels) in FIRES {
        until_fires(&prometheus, alert, labels).await;
    }
    cluster.stop_the_api_server();
    eventually(|| async {
        let missing = list_missing_metrics(&prometheus).await;
        let none = missing.is_empty();
        none.then_some(())
            .ok_or(format!("in no scrape: {missing:?}"))
    })
    .await;
    cluster.controller.signal(Signal::KILL);
    until_fires(&prometheus, CONTROLLER_GONE, "").await;
}

//! The alerts that are shipped, evaluated by a real Prometheus.

use dogwatch_prometheus::{PrometheusClient, PrometheusSettings};
use dogwatch_testbed::monitoring::shipped_rules;
use dogwatch_testbed::prometheus::TestPrometheus;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::{PATIENCE, query};

/// An alert after all others: once it is active, all have been evaluated.
const LAST: &str = "Last";

/// A metric, its labels, and its value as an expression.
pub type Sample = (&'static str, &'static str, &'static str);

const COORDINATORS: &str = "daemonset=dogwatch-coordinator,namespace=dogwatch";

/// A node that the DaemonSet selects has no pod.
const WITHOUT_POD: &[Sample] = &[
    (
        "kube_daemonset_status_desired_number_scheduled",
        COORDINATORS,
        "2",
    ),
    (
        "kube_daemonset_status_current_number_scheduled",
        COORDINATORS,
        "1",
    ),
];

/// Everything goes as planned: nodes wait, one reboots, hosts are controlled.
const AS_PLANNED: &[Sample] = &[
    (
        "dogwatch_waiting_since_seconds",
        "instance=n1",
        "time() - 3600",
    ),
    ("dogwatch_phase", "instance=n1,phase=waiting", "1"),
    (
        "dogwatch_phase_since_seconds",
        "instance=n1",
        "time() - 10 * 86400",
    ),
    ("dogwatch_drain_pods", "instance=n2,state=blocked", "0"),
    ("dogwatch_drain_pods", "instance=n2,state=left", "7"),
    (
        "dogwatch_trigger",
        "instance=n1,source=sentinel,state=present",
        "1",
    ),
    ("kube_node_info", "node=n1", "1"),
    // The chart's coordinatorNodeSelector leaves it out.
    ("kube_node_info", "node=n2", "1"),
    (
        "kube_pod_info",
        "created_by_kind=DaemonSet,created_by_name=dogwatch-coordinator,namespace=dogwatch,node=n1,pod=p1",
        "1",
    ),
    (
        "kube_pod_status_ready",
        "condition=true,namespace=dogwatch,pod=p1",
        "1",
    ),
    (
        "kube_daemonset_status_desired_number_scheduled",
        COORDINATORS,
        "1",
    ),
    (
        "kube_daemonset_status_current_number_scheduled",
        COORDINATORS,
        "1",
    ),
    ("dogwatch_leader", "instance=c1", "1"),
    ("dogwatch_leader", "instance=c2", "0"),
    ("dogwatch_policy_blocked", "policy=a,reason=x", "0"),
    ("dogwatch_policy_accepted", "policy=a", "1"),
    ("dogwatch_policy_halted", "policy=a", "0"),
    ("dogwatch_power_control_not_ready", "reason=x", "0"),
    ("dogwatch_power_off_pending", "", "1"),
    (
        "dogwatch_power_off_pending_oldest_timestamp_seconds",
        "",
        "time() - 60",
    ),
    ("dogwatch_remediation_stuck", "reason=x", "0"),
    ("dogwatch_healer_cases", "reason=CoordinatorGone", "1"),
];

/// Each alert has its trouble.
pub const IN_TROUBLE: &[Sample] = &[
    ("dogwatch_alarm", "instance=n1,reason=RebootFailed", "1"),
    (
        "dogwatch_waiting_since_seconds",
        "instance=n1",
        "time() - 2 * 86400",
    ),
    ("dogwatch_phase", "instance=n1,phase=waiting", "1"),
    (
        "dogwatch_phase_since_seconds",
        "instance=n1",
        "time() - 40 * 86400",
    ),
    ("dogwatch_drain_pods", "instance=n2,state=blocked", "3"),
    (
        "dogwatch_trigger",
        "instance=n1,source=sentinel,state=unknown",
        "1",
    ),
    ("kube_node_info", "node=n1", "1"),
    (
        "kube_pod_info",
        "created_by_kind=DaemonSet,created_by_name=dogwatch-coordinator,namespace=dogwatch,node=n1,pod=p1",
        "1",
    ),
    (
        "kube_pod_status_ready",
        "condition=true,namespace=dogwatch,pod=p1",
        "0",
    ),
    ("dogwatch_leader", "instance=c1", "0"),
    ("dogwatch_policy_blocked", "policy=a,reason=x", "1"),
    ("dogwatch_policy_accepted", "policy=a", "0"),
    ("dogwatch_policy_halted", "policy=a", "1"),
    ("dogwatch_power_control_not_ready", "reason=x", "2"),
    ("dogwatch_power_off_pending", "", "1"),
    (
        "dogwatch_power_off_pending_oldest_timestamp_seconds",
        "",
        "time() - 1000",
    ),
    ("dogwatch_remediation_stuck", "reason=x", "1"),
    ("dogwatch_healer_cases", "reason=EscalationBlocked", "1"),
];

/// Rules are evaluated in their order: first what they are about.
fn rules(samples: &[Sample]) -> Vec<Value> {
    let records = samples.iter().map(|(metric, labels, value)| {
        let pairs = labels.split(',').filter_map(|label| label.split_once('='));
        let labels: serde_json::Map<String, Value> = pairs
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        json!({ "record": metric, "expr": format!("vector({value})"), "labels": labels })
    });
    let last = json!({ "alert": LAST, "expr": "vector(1)" });
    records.chain(shipped_rules()).chain([last]).collect()
}

/// A Prometheus that has evaluated the shipped alerts on some samples.
pub struct Evaluated {
    server: TestPrometheus,
    client: PrometheusClient,
}

impl Evaluated {
    pub async fn with(samples: &[Sample]) -> Self {
        let server = TestPrometheus::start_with_rules(&rules(samples)).await;
        let server = server.unwrap();
        let client = PrometheusClient::new(PrometheusSettings::default());
        let evaluated = Self { server, client };
        let deadline = Instant::now() + PATIENCE;
        while !evaluated.is_active(LAST).await {
            assert!(Instant::now() < deadline, "its rules are not evaluated");
            sleep(std::time::Duration::from_millis(100)).await;
        }
        evaluated
    }

    async fn is_active(&self, alert: &str) -> bool {
        self.has_series(&format!("ALERTS{{alertname=\"{alert}\"}}"))
            .await
    }

    /// Whether the result of this query is not empty. A count is never 0, and a gate takes no zeros.
    pub async fn has_series(&self, text: &str) -> bool {
        let gate = query(self.server.base_url(), &format!("count({text})"));
        !self.client.check_gate(&gate).await.unwrap().is_empty()
    }
}

#[tokio::test]
async fn no_alert_is_active_while_everything_goes_as_planned() {
    let evaluated = Evaluated::with(AS_PLANNED).await;
    for alert in shipped_rules() {
        let name = alert["alert"].as_str().unwrap();
        assert!(!evaluated.is_active(name).await, "{name}");
    }
}

#[tokio::test]
async fn each_alert_becomes_active_in_its_trouble() {
    let evaluated = Evaluated::with(IN_TROUBLE).await;
    for alert in shipped_rules() {
        let name = alert["alert"].as_str().unwrap();
        assert!(evaluated.is_active(name).await, "{name}");
    }
}

#[tokio::test]
async fn a_coordinator_is_missing_where_the_daemonset_has_fewer_pods_than_nodes() {
    let evaluated = Evaluated::with(WITHOUT_POD).await;
    assert!(evaluated.is_active("DogwatchCoordinatorMissing").await);
}

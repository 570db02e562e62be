//! The queries of the Grafana dashboards, answered by a real Prometheus.

use dogwatch_testbed::monitoring::{PanelQuery, shipped_queries};
use tokio::time::{Instant, sleep};

use crate::PATIENCE;
use crate::shipped_alerts::{Evaluated, IN_TROUBLE, Sample};

/// What dashboards show besides the trouble of the alerts. Counters grow by one a second.
const MORE_SAMPLES: &[Sample] = &[
    ("dogwatch_blocked_by", "instance=n1,kind=policy,name=a", "1"),
    (
        "dogwatch_reboots_total",
        "instance=n1,outcome=Rebooted",
        "time()",
    ),
    ("dogwatch_policy_nodes", "policy=a,state=waiting", "2"),
    (
        "dogwatch_last_reboot_duration_seconds",
        "instance=n1,phase=draining",
        "60",
    ),
    (
        "dogwatch_last_reboot_outcome",
        "instance=n1,outcome=Rebooted",
        "1",
    ),
    (
        "dogwatch_last_reboot_end_seconds",
        "instance=n1",
        "time() - 60",
    ),
    (
        "dogwatch_api_errors_total",
        "instance=n1,reason=Conflict",
        "time()",
    ),
    ("dogwatch_drain_pods", "instance=n1,state=left", "3"),
    ("dogwatch_build_info", "instance=n1", "1"),
    ("dogwatch_lock_requests_total", "answer=granted", "time()"),
    ("dogwatch_lock_requests_waiting", "", "1"),
    ("dogwatch_power_hosts", "state=On", "3"),
    ("dogwatch_power_decisions", "reason=PoweredOn", "3"),
    (
        "dogwatch_power_off_confirm_seconds_bucket",
        "le=5",
        "time()",
    ),
    (
        "dogwatch_power_off_confirm_seconds_bucket",
        "le=+Inf",
        "time()",
    ),
    (
        "dogwatch_power_bmc_calls_total",
        "call=read,end=ok",
        "time()",
    ),
    (
        "dogwatch_power_queue_seconds_bucket",
        "lane=read,le=5",
        "time()",
    ),
    (
        "dogwatch_power_queue_seconds_bucket",
        "lane=read,le=+Inf",
        "time()",
    ),
    ("dogwatch_remediations", "reason=Fencing", "1"),
    (
        "dogwatch_remediation_steps_seconds_bucket",
        "le=5,step=fence",
        "time()",
    ),
    (
        "dogwatch_remediation_steps_seconds_bucket",
        "le=+Inf,step=fence",
        "time()",
    ),
    (
        "dogwatch_remediation_actions_total",
        "action=fence,result=ok",
        "time()",
    ),
];

#[tokio::test]
async fn each_panel_has_an_answer_without_any_sample_and_shows_a_series_in_trouble() {
    let without = Evaluated::with(&[]).await;
    let samples = [IN_TROUBLE, MORE_SAMPLES].concat();
    let with = Evaluated::with(&samples).await;
    let deadline = Instant::now() + PATIENCE;
    for PanelQuery { title, query } in shipped_queries() {
        // The node that a person would choose is n1.
        let query = query.replace("$node", "n1");
        // An error of Prometheus ends the test here.
        let is_constant = query.ends_with("or vector(0)");
        assert_eq!(
            without.has_series(&query).await,
            is_constant,
            "{title}: {query}"
        );
        // A rate needs a second evaluation of its counter.
        while !with.has_series(&query).await {
            assert!(Instant::now() < deadline, "{title} is empty: {query}");
            sleep(std::time::Duration::from_millis(200)).await;
        }
    }
}

//! The alerts that the book proposes do not fire while nothing is wrong.

use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::policy::{
    ClusterPolicies, MinInterval, Policy, RebootAllowance, RolloutCandidate, may_reboot_begin,
};
use dogwatch_core::reboot::{HeldBackTime, RebootReason};
use dogwatch_testbed::monitoring::{queried_metrics, shipped_rules};
use jiff::Timestamp;

use super::{HEALER, METRICS};

const ALERTS: &str = include_str!("../../../../docs/alerts.md");
const LOCK_API: &str = include_str!("../../../../docs/lock-api.md");
const CONTROLLER: &str = include_str!("../../../../docs/controller.md");
const RULES: &str = include_str!("../../../../deploy/monitoring/prometheus-rule.yaml");
const README: &str = include_str!("../../../../README.md");

#[test]
fn each_alert_has_a_severity_a_time_and_a_section_that_says_what_to_do() {
    let headings: Vec<&str> = ALERTS
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .collect();
    let alerts = shipped_rules();
    let names: Vec<&str> = alerts
        .iter()
        .filter_map(|it| it["alert"].as_str())
        .collect();
    assert_eq!(headings, names, "docs/alerts.md and the rules, in order");
    for alert in &alerts {
        let name = alert["alert"].as_str().unwrap();
        let severity = alert["labels"]["severity"].as_str();
        assert!(matches!(severity, Some("critical" | "warning")), "{name}");
        assert!(alert["for"].is_string(), "{name}");
        assert!(alert["annotations"]["summary"].is_string(), "{name}");
        let runbook = format!("docs/alerts.md#{}", name.to_lowercase());
        assert_eq!(alert["annotations"]["runbook"], runbook.as_str(), "{name}");
    }
}

#[test]
fn each_metric_that_an_alert_or_a_dashboard_asks_for_is_in_the_book() {
    for metric in queried_metrics() {
        let name = format!("`{}`", metric.trim_end_matches("_bucket"));
        let pages = [METRICS, CONTROLLER, HEALER, LOCK_API];
        assert!(pages.iter().any(|page| page.contains(&name)), "{metric}");
    }
}

/// The first RebootPolicy of README.
fn policy() -> Policy {
    let blocks = README.split("```yaml\n").skip(1);
    let mut yaml = blocks.filter_map(|block| block.split("```").next());
    let text = yaml
        .find(|text| text.contains("kind: RebootPolicy"))
        .unwrap();
    let object: serde_json::Value = serde_saphyr::from_str(text).unwrap();
    let name = object["metadata"]["name"].as_str().unwrap();
    let policy = dogwatch_k8s::policy::convert_policy(name, &object["spec"]);
    assert_eq!(policy.problems, [""; 0]);
    policy
}

/// The reason that a coordinator decides at `now` while the lock never becomes free.
fn decided(policies: &ClusterPolicies, now: Timestamp) -> RebootReason {
    let policy = &policies.known_policies()[0];
    let drain = policy.drain.timeout.unwrap();
    let (interval, candidate) = (MinInterval::default(), RolloutCandidate::LockHost);
    match may_reboot_begin(policies, Some(policy), drain, interval, candidate, now) {
        RebootAllowance::No { reason, .. } => reason,
        RebootAllowance::Yes { .. } => RebootReason::LockHeldByOther,
    }
}

#[test]
fn from_friday_to_monday_nobody_is_woken_by_readmes_policy() {
    let rule = "time() - dogwatch_waiting_since_seconds > 24 * 3600";
    assert!(RULES.contains(rule), "this test is about another rule");
    let policies = ClusterPolicies::Known(vec![policy()]);
    let friday: Timestamp = "2026-11-20T08:00:00Z".parse().unwrap();
    let monday: Timestamp = "2026-11-23T21:00:00Z".parse().unwrap();
    let mut held_back = HeldBackTime::default();
    let mut fires = None;
    let mut passed = Duration::ZERO;
    while fires.is_none() {
        let now = Now {
            wall: friday + passed,
            mono: passed,
        };
        held_back.record_decision(decided(&policies, now.wall), now);
        let waits_since = held_back.waiting_since(friday);
        assert_eq!(
            waits_since.is_none(),
            now.wall < monday || !is_night(now.wall),
            "{}",
            now.wall
        );
        let waits = waits_since.map(|since| now.elapsed_since(since));
        fires = waits
            .filter(|waits| *waits > Duration::from_hours(24))
            .map(|_| now.wall);
        passed += Duration::from_mins(10);
    }
    // Four nights of some 5.7 h are less than a day of waiting; the fifth night makes it one.
    assert_eq!(fires, Some("2026-11-30T22:30:00Z".parse().unwrap()));
}

/// Between 22:00 and 03:30 in Berlin, while a drain of 30 min still fits, on the policy's days.
fn is_night(at: Timestamp) -> bool {
    let zones = jiff::tz::TimeZoneDatabase::bundled();
    let local = at.to_zoned(zones.get("Europe/Berlin").unwrap());
    // The hours after midnight belong to the day before.
    let start = local
        .checked_sub(jiff::SignedDuration::from_hours(4))
        .unwrap();
    let days = [
        jiff::civil::Weekday::Monday,
        jiff::civil::Weekday::Tuesday,
        jiff::civil::Weekday::Wednesday,
        jiff::civil::Weekday::Thursday,
    ];
    let since = (local.hour(), local.minute());
    days.contains(&start.weekday()) && (local.hour() >= 22 || since < (3, 31))
}

use serde_json::{Value, json};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn build_pod(overlay: &Value) -> Pod {
    let mut pod = json!({
        "metadata": { "namespace": "n", "name": "a", "uid": "u" },
        "spec": { "nodeName": "n1", "containers": [] },
        "status": { "phase": "Pending" },
    });
    merge_json(&mut pod, overlay);
    serde_json::from_value(pod).unwrap()
}

fn merge_json(base: &mut Value, overlay: &Value) {
    match (base, overlay) {
        (Value::Object(base), Value::Object(overlay)) => {
            for (key, value) in overlay {
                merge_json(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (base, overlay) => *base = overlay.clone(),
    }
}

fn deleting_overlay(grace: i64) -> Value {
    json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace } })
}

fn stops_after_overlay(text: &str) -> Value {
    json!({ "metadata": { "annotations": { STOPS_AFTER: text } } })
}

fn build_machine(booted: bool) -> MachinePods {
    let timing = PodTiming {
        starts_after: SECOND,
        stops_after: SECOND,
    };
    MachinePods::new(timing, booted)
}

fn running_pod() -> Pod {
    build_pod(&json!({ "status": { "phase": "Running" } }))
}

/// The reports due at this moment, all of them accepted by the API server.
fn take_reports(machine: &mut MachinePods, now: Instant) -> Vec<PodReportKind> {
    let work = machine.due_reports(now);
    for work in &work {
        machine.on_report_ended(&work.uid, true, now);
    }
    work.into_iter().map(|work| work.kind).collect()
}

/// A machine with one pod that is reported as running; `extra` is merged into the pod.
fn machine_with_running_pod(extra: &Value, now: Instant) -> MachinePods {
    let mut machine = build_machine(false);
    machine.on_pod_observed(&build_pod(extra), now);
    assert_eq!(
        take_reports(&mut machine, now + SECOND),
        [PodReportKind::Ready { restarts: 0 }]
    );
    machine
}

#[tokio::test(start_paused = true)]
async fn a_new_pod_is_ready_after_its_start_time_and_told_once() {
    let now = Instant::now();
    let mut machine = build_machine(true);
    machine.on_pod_observed(
        &build_pod(&json!({ "metadata": { "annotations": { STARTS_AFTER: "5s" } } })),
        now,
    );
    assert_eq!(take_reports(&mut machine, now + 4 * SECOND), []);
    assert_eq!(machine.wake_at(), Some(now + 5 * SECOND));
    assert_eq!(
        take_reports(&mut machine, now + 5 * SECOND),
        [PodReportKind::Ready { restarts: 0 }]
    );
    assert_eq!(take_reports(&mut machine, now + 9 * SECOND), []);
    assert_eq!(machine.wake_at(), None);
}

#[tokio::test(start_paused = true)]
async fn a_pod_ends_after_its_stop_time_but_at_the_latest_after_its_grace() {
    for (stops, grace, ends) in [("3s", 30, 3), ("60s", 30, 30), ("60s", 0, 0)] {
        let now = Instant::now();
        let mut machine = machine_with_running_pod(&stops_after_overlay(stops), now);
        let told_at = now + 2 * SECOND;
        machine.on_pod_observed(&build_pod(&deleting_overlay(grace)), told_at);
        let ends_at = told_at + ends * SECOND;
        if ends > 0 {
            assert_eq!(
                take_reports(&mut machine, ends_at.checked_sub(SECOND).unwrap()),
                []
            );
        }
        assert_eq!(
            take_reports(&mut machine, ends_at),
            [PodReportKind::Ended],
            "{stops} within {grace}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_deletion_can_shorten_the_grace_and_not_lengthen_it() {
    let now = Instant::now();
    let mut machine = machine_with_running_pod(&stops_after_overlay("60s"), now);
    machine.on_pod_observed(&build_pod(&deleting_overlay(50)), now);
    machine.on_pod_observed(&build_pod(&deleting_overlay(60)), now);
    assert_eq!(machine.wake_at(), Some(now + 50 * SECOND));
    machine.on_pod_observed(&build_pod(&deleting_overlay(5)), now);
    assert_eq!(
        take_reports(&mut machine, now + 5 * SECOND),
        [PodReportKind::Ended]
    );
}

#[tokio::test(start_paused = true)]
async fn after_a_boot_every_pod_is_started_anew_and_said_not_to_be_ready_first() {
    let now = Instant::now();
    let mut machine = build_machine(true);
    machine.on_pod_observed(&running_pod(), now);
    assert_eq!(
        take_reports(&mut machine, now),
        [PodReportKind::Starting { restarts: 1 }]
    );
    assert_eq!(
        take_reports(&mut machine, now + SECOND),
        [PodReportKind::Ready { restarts: 1 }]
    );
}

#[tokio::test(start_paused = true)]
async fn after_a_boot_a_pod_that_was_being_deleted_has_ended() {
    let now = Instant::now();
    let mut machine = build_machine(true);
    let mut pod = running_pod();
    pod.metadata.deletion_timestamp = pod_deletion();
    machine.on_pod_observed(&pod, now);
    assert_eq!(take_reports(&mut machine, now), [PodReportKind::Ended]);
}

fn pod_deletion() -> Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time> {
    build_pod(&deleting_overlay(30)).metadata.deletion_timestamp
}

#[tokio::test(start_paused = true)]
async fn after_a_boot_a_pod_that_never_restarts_has_failed() {
    let now = Instant::now();
    let mut machine = build_machine(true);
    machine.on_pod_observed(
        &build_pod(
            &json!({ "spec": { "restartPolicy": "Never" }, "status": { "phase": "Running" } }),
        ),
        now,
    );
    assert_eq!(take_reports(&mut machine, now), [PodReportKind::Failed]);
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_starts_on_a_running_machine_takes_its_pods_as_running() {
    let now = Instant::now();
    let mut machine = build_machine(false);
    machine.on_pod_observed(&running_pod(), now);
    assert_eq!(take_reports(&mut machine, now + SECOND), []);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_taken_is_told_again_after_a_pause() {
    let now = Instant::now();
    let mut machine = machine_with_running_pod(&json!({}), now);
    machine.on_pod_observed(&build_pod(&deleting_overlay(30)), now);
    let later = now + 2 * SECOND;
    assert_eq!(machine.due_reports(later).len(), 1);
    assert_eq!(machine.due_reports(later), [], "one call at a time");
    machine.on_report_ended("u", false, later);
    assert_eq!(take_reports(&mut machine, later), []);
    assert_eq!(machine.wake_at(), Some(later + SECOND));
    assert_eq!(
        take_reports(&mut machine, later + SECOND),
        [PodReportKind::Ended]
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_new_list_lacks_is_forgotten() {
    let now = Instant::now();
    let mut machine = build_machine(false);
    machine.on_pod_observed(&build_pod(&json!({})), now);
    machine.on_relist(&[], now);
    assert_eq!(take_reports(&mut machine, now + SECOND), []);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_somebody_calls_not_ready_is_said_to_be_ready_again() {
    let now = Instant::now();
    let mut machine = machine_with_running_pod(&json!({}), now);
    let conditions = json!({ "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "False" }] } });
    machine.on_pod_observed(&build_pod(&conditions), now + SECOND);
    assert_eq!(
        take_reports(&mut machine, now + SECOND),
        [PodReportKind::Ready { restarts: 0 }]
    );
}

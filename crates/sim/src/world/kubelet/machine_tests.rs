use serde_json::{Value, json};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn pod(overlay: &Value) -> Pod {
    let mut pod = json!({
        "metadata": { "namespace": "n", "name": "a", "uid": "u" },
        "spec": { "nodeName": "n1", "containers": [] },
        "status": { "phase": "Pending" },
    });
    merge(&mut pod, overlay);
    serde_json::from_value(pod).unwrap()
}

fn merge(base: &mut Value, overlay: &Value) {
    match (base, overlay) {
        (Value::Object(base), Value::Object(overlay)) => {
            for (key, value) in overlay {
                merge(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (base, overlay) => *base = overlay.clone(),
    }
}

fn deleting(grace: i64) -> Value {
    json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace } })
}

fn stops_after(text: &str) -> Value {
    json!({ "metadata": { "annotations": { STOPS_AFTER: text } } })
}

fn machine(booted: bool) -> Machine {
    let timing = Timing {
        starts_after: SECOND,
        stops_after: SECOND,
    };
    Machine::new(timing, booted)
}

fn running() -> Pod {
    pod(&json!({ "status": { "phase": "Running" } }))
}

/// What is told at this moment, all of it taken by the API server.
fn told(machine: &mut Machine, now: Instant) -> Vec<Report> {
    let work = machine.due(now);
    for work in &work {
        machine.told(&work.uid, true, now);
    }
    work.into_iter().map(|work| work.what).collect()
}

/// A machine with one pod that runs and is known to run, and what that pod says of its stop.
fn with_running(extra: &Value, now: Instant) -> Machine {
    let mut machine = machine(false);
    machine.seen(&pod(extra), now);
    assert_eq!(
        told(&mut machine, now + SECOND),
        [Report::Ready { restarts: 0 }]
    );
    machine
}

#[tokio::test(start_paused = true)]
async fn a_new_pod_is_ready_after_its_start_time_and_told_once() {
    let now = Instant::now();
    let mut machine = machine(true);
    machine.seen(
        &pod(&json!({ "metadata": { "annotations": { STARTS_AFTER: "5s" } } })),
        now,
    );
    assert_eq!(told(&mut machine, now + 4 * SECOND), []);
    assert_eq!(machine.wake(), Some(now + 5 * SECOND));
    assert_eq!(
        told(&mut machine, now + 5 * SECOND),
        [Report::Ready { restarts: 0 }]
    );
    assert_eq!(told(&mut machine, now + 9 * SECOND), []);
    assert_eq!(machine.wake(), None);
}

#[tokio::test(start_paused = true)]
async fn a_pod_ends_after_its_stop_time_but_at_the_latest_after_its_grace() {
    for (stops, grace, ends) in [("3s", 30, 3), ("60s", 30, 30), ("60s", 0, 0)] {
        let now = Instant::now();
        let mut machine = with_running(&stops_after(stops), now);
        let told_at = now + 2 * SECOND;
        machine.seen(&pod(&deleting(grace)), told_at);
        let ends_at = told_at + ends * SECOND;
        if ends > 0 {
            assert_eq!(told(&mut machine, ends_at.checked_sub(SECOND).unwrap()), []);
        }
        assert_eq!(
            told(&mut machine, ends_at),
            [Report::Ended],
            "{stops} within {grace}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_deletion_can_shorten_the_grace_and_not_lengthen_it() {
    let now = Instant::now();
    let mut machine = with_running(&stops_after("60s"), now);
    machine.seen(&pod(&deleting(50)), now);
    machine.seen(&pod(&deleting(60)), now);
    assert_eq!(machine.wake(), Some(now + 50 * SECOND));
    machine.seen(&pod(&deleting(5)), now);
    assert_eq!(told(&mut machine, now + 5 * SECOND), [Report::Ended]);
}

#[tokio::test(start_paused = true)]
async fn after_a_boot_every_pod_is_started_anew_and_said_not_to_be_ready_first() {
    let now = Instant::now();
    let mut machine = machine(true);
    machine.seen(&running(), now);
    assert_eq!(told(&mut machine, now), [Report::Starting { restarts: 1 }]);
    assert_eq!(
        told(&mut machine, now + SECOND),
        [Report::Ready { restarts: 1 }]
    );
}

#[tokio::test(start_paused = true)]
async fn after_a_boot_a_pod_that_was_being_deleted_has_ended() {
    let now = Instant::now();
    let mut machine = machine(true);
    let mut pod = running();
    pod.metadata.deletion_timestamp = pod_deletion();
    machine.seen(&pod, now);
    assert_eq!(told(&mut machine, now), [Report::Ended]);
}

fn pod_deletion() -> Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time> {
    pod(&deleting(30)).metadata.deletion_timestamp
}

#[tokio::test(start_paused = true)]
async fn after_a_boot_a_pod_that_never_restarts_has_failed() {
    let now = Instant::now();
    let mut machine = machine(true);
    machine.seen(
        &pod(&json!({ "spec": { "restartPolicy": "Never" }, "status": { "phase": "Running" } })),
        now,
    );
    assert_eq!(told(&mut machine, now), [Report::Failed]);
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_starts_on_a_running_machine_takes_its_pods_as_running() {
    let now = Instant::now();
    let mut machine = machine(false);
    machine.seen(&running(), now);
    assert_eq!(told(&mut machine, now + SECOND), []);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_taken_is_told_again_after_a_pause() {
    let now = Instant::now();
    let mut machine = with_running(&json!({}), now);
    machine.seen(&pod(&deleting(30)), now);
    let later = now + 2 * SECOND;
    assert_eq!(machine.due(later).len(), 1);
    assert_eq!(machine.due(later), [], "one call at a time");
    machine.told("u", false, later);
    assert_eq!(told(&mut machine, later), []);
    assert_eq!(machine.wake(), Some(later + SECOND));
    assert_eq!(told(&mut machine, later + SECOND), [Report::Ended]);
}

#[tokio::test(start_paused = true)]
async fn what_a_new_list_lacks_is_forgotten() {
    let now = Instant::now();
    let mut machine = machine(false);
    machine.seen(&pod(&json!({})), now);
    machine.relisted(&[], now);
    assert_eq!(told(&mut machine, now + SECOND), []);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_somebody_calls_not_ready_is_said_to_be_ready_again() {
    let now = Instant::now();
    let mut machine = with_running(&json!({}), now);
    let conditions = json!({ "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "False" }] } });
    machine.seen(&pod(&conditions), now + SECOND);
    assert_eq!(
        told(&mut machine, now + SECOND),
        [Report::Ready { restarts: 0 }]
    );
}

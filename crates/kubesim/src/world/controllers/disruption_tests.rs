use super::*;
use k8s_openapi::api::apps::v1::ReplicaSet;

fn build_cache(replicas: i32, pods: &[Value], spec: &Value, status: &Value) -> ControllerCache {
    let mut cache = ControllerCache::default();
    let set = json!({ "metadata": { "name": "web", "namespace": "n", "uid": "rs", "resourceVersion": "1" }, "spec": { "replicas": replicas, "selector": {} } });
    cache.observe_object::<ReplicaSet>(serde_json::from_value(set).unwrap());
    for (number, overlay) in pods.iter().enumerate() {
        let mut pod = json!({
            "metadata": { "name": format!("p{number}"), "namespace": "n", "uid": format!("u{number}"), "resourceVersion": "2", "labels": { "app": "web" },
                "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": true }] },
            "spec": { "containers": [] },
            "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] },
        });
        for (field, value) in overlay.as_object().into_iter().flatten() {
            for (inner, value) in value.as_object().into_iter().flatten() {
                pod[field][inner] = value.clone();
            }
        }
        cache.observe_object::<Pod>(serde_json::from_value(pod).unwrap());
    }
    let mut budget = json!({ "metadata": { "name": "b", "namespace": "n", "uid": "b", "resourceVersion": "3", "generation": 4 }, "spec": spec, "status": status });
    budget["spec"]["selector"] = json!({ "matchLabels": { "app": "web" } });
    cache.observe_object::<PodDisruptionBudget>(serde_json::from_value(budget).unwrap());
    cache
}

fn timestamp_at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn reconcile_budget(cache: &ControllerCache, now: Timestamp) -> (Option<Value>, Option<Duration>) {
    let verdict = DisruptionController.reconcile(cache, &ObjectKey::new("n", "b"), now);
    let patch = verdict.actions.first();
    let patch = patch.map(|action| action.verb.patch_body()["status"].clone());
    (patch, verdict.requeue_after)
}

fn count_budget(replicas: i32, pods: &[Value], spec: &Value) -> [i64; 4] {
    let status = json!({ "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0 });
    let cache = build_cache(replicas, pods, spec, &status);
    let (status, _) = reconcile_budget(&cache, timestamp_at(0));
    let status = status.expect("it has to be told");
    [
        "expectedPods",
        "desiredHealthy",
        "currentHealthy",
        "disruptionsAllowed",
    ]
    .map(|field| status[field].as_i64().unwrap())
}

fn unready_pod() -> Value {
    json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } })
}

fn deleting_pod() -> Value {
    json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } })
}

fn unmanaged_pod() -> Value {
    json!({ "metadata": { "ownerReferences": [] } })
}

/// Checks `replicas, pods, spec, [expected, desired, healthy, allowed]`.
fn check_counts(table: &[(i32, &[Value], Value, [i64; 4])]) {
    for (replicas, pods, spec, expected) in table {
        assert_eq!(
            count_budget(*replicas, pods, spec),
            *expected,
            "{spec} over {pods:?}"
        );
    }
}

#[test]
fn a_number_to_keep_is_counted_against_the_pods_themselves() {
    let good = json!({});
    let least = |number: i32| json!({ "minAvailable": number });
    check_counts(&[
        (
            3,
            &[good.clone(), good.clone(), good.clone()],
            least(2),
            [3, 2, 3, 1],
        ),
        (
            3,
            &[good.clone(), good.clone(), unready_pod()],
            least(2),
            [3, 2, 2, 0],
        ),
        // A terminating pod is expected but not healthy.
        (
            3,
            &[good.clone(), good.clone(), deleting_pod()],
            least(1),
            [3, 1, 2, 1],
        ),
        (
            3,
            &[unmanaged_pod(), unmanaged_pod()],
            least(1),
            [2, 1, 2, 1],
        ),
        (0, &[], least(0), [0, 0, 0, 0]),
    ]);
}

#[test]
fn everything_else_is_counted_against_what_the_owners_ask_for() {
    let good = json!({});
    let away = |value: Value| json!({ "maxUnavailable": value });
    let three = [good.clone(), good.clone(), good.clone()];
    check_counts(&[
        (
            4,
            &[good.clone(), good.clone()],
            away(json!(1)),
            [4, 3, 2, 0],
        ),
        (1, std::slice::from_ref(&good), away(json!(3)), [1, 0, 1, 1]),
        // Percentages round up for both kinds of budget.
        (3, &three, json!({ "minAvailable": "50%" }), [3, 2, 3, 1]),
        (3, &three, away(json!("50%")), [3, 1, 3, 2]),
        // Pods without a controller count as healthy but not as expected.
        (
            3,
            &[good.clone(), unmanaged_pod()],
            away(json!(1)),
            [3, 2, 2, 0],
        ),
        (3, &[unmanaged_pod()], away(json!(1)), [0, 0, 1, 0]),
    ]);
}

#[test]
fn an_announced_disruption_counts_for_two_minutes_or_until_the_pod_goes() {
    let since = "1970-01-01T00:00:00Z";
    let status = json!({ "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0, "disruptedPods": { "p0": since, "p1": since, "gone": since } });
    let cache = build_cache(
        3,
        &[json!({}), deleting_pod(), json!({})],
        &json!({ "minAvailable": 1 }),
        &status,
    );
    let (told, again) = reconcile_budget(&cache, timestamp_at(119));
    let told = told.unwrap();
    assert_eq!(told["currentHealthy"], 1, "p2 only");
    assert_eq!(
        told["disruptedPods"],
        json!({ "p0": since, "p1": null, "gone": null })
    );
    assert_eq!(again, Some(Duration::from_millis(1001)));
    let (told, again) = reconcile_budget(&cache, timestamp_at(121));
    let told = told.unwrap();
    assert_eq!(told["currentHealthy"], 2);
    assert_eq!(told["disruptedPods"]["p0"], Value::Null);
    assert_eq!(again, None);
}

#[test]
fn what_cannot_be_counted_allows_nothing_and_says_why() {
    let stranger = json!({ "metadata": { "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true }] } });
    let status = json!({ "currentHealthy": 1, "desiredHealthy": 0, "disruptionsAllowed": 1, "expectedPods": 1 });
    let cache = build_cache(3, &[stranger], &json!({ "maxUnavailable": 1 }), &status);
    let (told, _) = reconcile_budget(&cache, timestamp_at(0));
    let told = told.unwrap();
    assert_eq!(told["disruptionsAllowed"], 0);
    assert_eq!(told["conditions"][0]["reason"], "SyncFailed");
    assert_eq!(
        told["conditions"][0]["message"],
        "found no controllers for pod \"p0\""
    );
}

#[test]
fn a_status_that_is_right_is_not_told_again() {
    let mut cache = build_cache(
        2,
        &[json!({}), json!({})],
        &json!({ "minAvailable": 1 }),
        &Value::Null,
    );
    let (told, _) = reconcile_budget(&cache, timestamp_at(0));
    let told = told.unwrap();
    assert_eq!(told["observedGeneration"], 4);
    assert_eq!(told["conditions"][0]["status"], "True");
    let mut budget =
        serde_json::to_value(&**cache.budgets.get(&ObjectKey::new("n", "b")).unwrap()).unwrap();
    budget["status"] = told;
    budget["metadata"]["resourceVersion"] = json!("9");
    cache.observe_object::<PodDisruptionBudget>(serde_json::from_value(budget).unwrap());
    assert_eq!(reconcile_budget(&cache, timestamp_at(60)).0, None);
}

use super::*;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

fn timestamp_at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn build_node(ready: &str, spec: &Value) -> Node {
    serde_json::from_value(json!({
        "metadata": { "name": "n1", "uid": "n1", "resourceVersion": "5" },
        "spec": spec,
        "status": { "conditions": [{ "type": "Ready", "status": ready }] },
    }))
    .unwrap()
}

fn build_pod(name: &str, tolerations: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": { "name": name, "namespace": "n", "uid": name, "resourceVersion": "1" },
        "spec": { "nodeName": "n1", "containers": [], "tolerations": tolerations },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    }))
    .unwrap()
}

fn build_lease(renewed: &str) -> Lease {
    let spec = serde_json::from_value(json!({ "renewTime": renewed })).unwrap();
    let metadata = ObjectMeta {
        name: Some("n1".into()),
        namespace: Some("kube-node-lease".into()),
        uid: Some("l".into()),
        resource_version: Some(renewed.bytes().map(u32::from).sum::<u32>().to_string()),
        ..ObjectMeta::default()
    };
    Lease {
        metadata,
        spec: Some(spec),
    }
}

/// A controller that saw the Lease change at second 0.
fn controller_after_heartbeat(cache: &mut ControllerCache) -> NodeLifecycleController {
    let mut lifecycle = NodeLifecycleController::default();
    let change = cache
        .observe_object(build_lease("2026-01-01T00:00:00.000001Z"))
        .unwrap();
    lifecycle.enqueue_keys(cache, &change, timestamp_at(0), &mut BTreeSet::new());
    lifecycle
}

#[test]
fn a_node_that_fell_silent_is_written_off_after_40s_and_its_pods_with_it() {
    let mut cache = ControllerCache::default();
    cache.observe_object(build_node("True", &json!({})));
    cache.observe_object(build_pod("a", &json!([])));
    let mut lifecycle = controller_after_heartbeat(&mut cache);
    let early = lifecycle.reconcile(&cache, &ObjectKey::cluster_scoped("n1"), timestamp_at(39));
    assert_eq!(
        (early.actions.len(), early.requeue_after),
        (0, Some(Duration::from_secs(1)))
    );
    let late = lifecycle
        .reconcile(&cache, &ObjectKey::cluster_scoped("n1"), timestamp_at(40))
        .actions;
    let WriteVerb::PatchConditions(patch) = &late[0].verb else {
        panic!("{late:?}")
    };
    assert_eq!(patch["status"]["conditions"][0]["status"], "Unknown");
    assert_eq!(late[1].key.name, "a");
    cache.observe_object(build_node("Unknown", &json!({})));
}

#[test]
fn a_heartbeat_is_judged_by_our_own_clock_and_not_by_what_it_says() {
    let mut cache = ControllerCache::default();
    cache.observe_object(build_node("True", &json!({})));
    let mut lifecycle = controller_after_heartbeat(&mut cache);
    let mut keys = BTreeSet::new();
    let change = cache
        .observe_object(build_lease("1999-01-01T00:00:00.900009Z"))
        .unwrap();
    lifecycle.enqueue_keys(&cache, &change, timestamp_at(30), &mut keys);
    assert!(keys.is_empty(), "an ordinary renewal needs no look");
    assert_eq!(
        lifecycle
            .reconcile(&cache, &ObjectKey::cluster_scoped("n1"), timestamp_at(69))
            .actions,
        Vec::new()
    );
    assert_eq!(
        lifecycle
            .reconcile(&cache, &ObjectKey::cluster_scoped("n1"), timestamp_at(70))
            .actions
            .len(),
        1
    );
}

#[test]
fn a_quiet_node_is_written_off_40s_after_it_was_switched_off_only() {
    let mut cache = ControllerCache::default();
    cache.observe_object(build_node("True", &json!({})));
    let mut lifecycle = NodeLifecycleController::default();
    let key = ObjectKey::cluster_scoped("n1");
    assert_eq!(
        lifecycle
            .reconcile(&cache, &key, timestamp_at(9999))
            .requeue_after,
        None
    );
    let off = |on| CacheChange::Power {
        node: "n1".into(),
        on,
    };
    lifecycle.enqueue_keys(
        &cache,
        &off(false),
        timestamp_at(10_000),
        &mut BTreeSet::new(),
    );
    assert_eq!(
        lifecycle
            .reconcile(&cache, &key, timestamp_at(10_039))
            .actions,
        Vec::new()
    );
    assert_eq!(
        lifecycle
            .reconcile(&cache, &key, timestamp_at(10_040))
            .actions
            .len(),
        1
    );
    lifecycle.enqueue_keys(
        &cache,
        &off(true),
        timestamp_at(10_050),
        &mut BTreeSet::new(),
    );
    assert_eq!(
        lifecycle
            .reconcile(&cache, &key, timestamp_at(10_100))
            .actions,
        Vec::new()
    );
}

#[test]
fn taints_follow_cordon_and_condition_and_foreign_ones_stay() {
    let foreign = json!({ "key": "mine", "effect": "NoSchedule" });
    let cordoned = json!({ "key": UNSCHEDULABLE_TAINT, "effect": "NoSchedule" });
    let table = [
        ("True", json!({ "taints": [foreign] }), None),
        (
            "True",
            json!({ "taints": [foreign], "unschedulable": true }),
            Some(vec!["mine", UNSCHEDULABLE_TAINT]),
        ),
        ("True", json!({ "taints": [cordoned] }), Some(vec![])),
        (
            "True",
            json!({ "taints": [cordoned], "unschedulable": true }),
            None,
        ),
        (
            "False",
            json!({}),
            Some(vec![NOT_READY_TAINT, NOT_READY_TAINT]),
        ),
        (
            "Unknown",
            json!({ "taints": [{ "key": NOT_READY_TAINT, "effect": "NoSchedule" }] }),
            Some(vec![UNREACHABLE_TAINT, UNREACHABLE_TAINT]),
        ),
    ];
    for (ready, spec, expected) in table {
        let action = update_taints(&build_node(ready, &spec), timestamp_at(0));
        let keys = action.map(|action| {
            let taints = &action.verb.patch_body()["spec"]["taints"];
            let keys = taints
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["key"].as_str().unwrap().to_owned());
            keys.collect::<Vec<_>>()
        });
        assert_eq!(
            keys,
            expected.map(|keys| keys.into_iter().map(str::to_owned).collect()),
            "{ready} {spec}"
        );
    }
}

#[test]
fn a_pod_stays_on_a_dead_node_as_long_as_it_tolerates_it() {
    let mut cache = ControllerCache::default();
    let spec = json!({ "taints": [{ "key": UNREACHABLE_TAINT, "effect": "NoExecute", "timeAdded": timestamp_at(0) }] });
    let node = build_node("Unknown", &spec);
    cache.observe_object(node.clone());
    cache.observe_object(build_pod("default", &json!([])));
    cache.observe_object(build_pod(
        "minute",
        &json!([{ "key": UNREACHABLE_TAINT, "operator": "Exists", "tolerationSeconds": 60 }]),
    ));
    cache.observe_object(build_pod("for-ever", &json!([{ "operator": "Exists" }])));
    let gone = |seconds: i64| {
        let (actions, next) = due_evictions(&cache, &node, timestamp_at(seconds));
        (
            actions
                .iter()
                .map(|action| action.key.name.clone())
                .collect::<Vec<_>>(),
            next.map(|next| next.as_secs()),
        )
    };
    assert_eq!(gone(59), (vec![], Some(1)));
    assert_eq!(gone(60), (vec!["minute".to_owned()], Some(240)));
    assert_eq!(
        gone(300),
        (vec!["default".to_owned(), "minute".to_owned()], None)
    );
}

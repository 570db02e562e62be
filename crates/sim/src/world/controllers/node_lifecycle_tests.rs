use super::*;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn node(ready: &str, spec: &Value) -> Node {
    serde_json::from_value(json!({
        "metadata": { "name": "n1", "uid": "n1", "resourceVersion": "5" },
        "spec": spec,
        "status": { "conditions": [{ "type": "Ready", "status": ready }] },
    }))
    .unwrap()
}

fn pod(name: &str, tolerations: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": { "name": name, "namespace": "n", "uid": name, "resourceVersion": "1" },
        "spec": { "nodeName": "n1", "containers": [], "tolerations": tolerations },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    }))
    .unwrap()
}

fn lease(renewed: &str) -> Lease {
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

/// The controller after it heard the Lease at second 0.
fn heard(cache: &mut Cache) -> NodeLifecycle {
    let mut lifecycle = NodeLifecycle::default();
    let change = cache.seen(lease("2026-01-01T00:00:00.000001Z")).unwrap();
    lifecycle.touched(cache, &change, at(0), &mut BTreeSet::new());
    lifecycle
}

#[test]
fn a_node_that_fell_silent_is_written_off_after_40s_and_its_pods_with_it() {
    let mut cache = Cache::default();
    cache.seen(node("True", &json!({})));
    cache.seen(pod("a", &json!([])));
    let mut lifecycle = heard(&mut cache);
    let early = lifecycle.reconcile(&cache, &Key::cluster("n1"), at(39));
    assert_eq!(
        (early.actions.len(), early.again_in),
        (0, Some(Duration::from_secs(1)))
    );
    let late = lifecycle
        .reconcile(&cache, &Key::cluster("n1"), at(40))
        .actions;
    let Verb::PatchConditions(patch) = &late[0].verb else {
        panic!("{late:?}")
    };
    assert_eq!(patch["status"]["conditions"][0]["status"], "Unknown");
    assert_eq!(late[1].key.name, "a");
    cache.seen(node("Unknown", &json!({})));
}

#[test]
fn a_heartbeat_is_judged_by_our_own_clock_and_not_by_what_it_says() {
    let mut cache = Cache::default();
    cache.seen(node("True", &json!({})));
    let mut lifecycle = heard(&mut cache);
    let mut keys = BTreeSet::new();
    let change = cache.seen(lease("1999-01-01T00:00:00.900009Z")).unwrap();
    lifecycle.touched(&cache, &change, at(30), &mut keys);
    assert!(keys.is_empty(), "an ordinary renewal needs no look");
    assert_eq!(
        lifecycle
            .reconcile(&cache, &Key::cluster("n1"), at(69))
            .actions,
        Vec::new()
    );
    assert_eq!(
        lifecycle
            .reconcile(&cache, &Key::cluster("n1"), at(70))
            .actions
            .len(),
        1
    );
}

#[test]
fn a_quiet_node_is_written_off_40s_after_it_was_switched_off_only() {
    let mut cache = Cache::default();
    cache.seen(node("True", &json!({})));
    let mut lifecycle = NodeLifecycle::default();
    let key = Key::cluster("n1");
    assert_eq!(lifecycle.reconcile(&cache, &key, at(9999)).again_in, None);
    let off = |on| Change::Power {
        node: "n1".into(),
        on,
    };
    lifecycle.touched(&cache, &off(false), at(10_000), &mut BTreeSet::new());
    assert_eq!(
        lifecycle.reconcile(&cache, &key, at(10_039)).actions,
        Vec::new()
    );
    assert_eq!(
        lifecycle.reconcile(&cache, &key, at(10_040)).actions.len(),
        1
    );
    lifecycle.touched(&cache, &off(true), at(10_050), &mut BTreeSet::new());
    assert_eq!(
        lifecycle.reconcile(&cache, &key, at(10_100)).actions,
        Vec::new()
    );
}

#[test]
fn taints_follow_cordon_and_condition_and_foreign_ones_stay() {
    let foreign = json!({ "key": "mine", "effect": "NoSchedule" });
    let cordoned = json!({ "key": UNSCHEDULABLE, "effect": "NoSchedule" });
    let table = [
        ("True", json!({ "taints": [foreign] }), None),
        (
            "True",
            json!({ "taints": [foreign], "unschedulable": true }),
            Some(vec!["mine", UNSCHEDULABLE]),
        ),
        ("True", json!({ "taints": [cordoned] }), Some(vec![])),
        (
            "True",
            json!({ "taints": [cordoned], "unschedulable": true }),
            None,
        ),
        ("False", json!({}), Some(vec![NOT_READY, NOT_READY])),
        (
            "Unknown",
            json!({ "taints": [{ "key": NOT_READY, "effect": "NoSchedule" }] }),
            Some(vec![UNREACHABLE, UNREACHABLE]),
        ),
    ];
    for (ready, spec, expected) in table {
        let action = retaint(&node(ready, &spec), at(0));
        let keys = action.map(|action| {
            let taints = &action.verb.patch()["spec"]["taints"];
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
    let mut cache = Cache::default();
    let spec =
        json!({ "taints": [{ "key": UNREACHABLE, "effect": "NoExecute", "timeAdded": at(0) }] });
    let node = node("Unknown", &spec);
    cache.seen(node.clone());
    cache.seen(pod("default", &json!([])));
    cache.seen(pod(
        "minute",
        &json!([{ "key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 60 }]),
    ));
    cache.seen(pod("for-ever", &json!([{ "operator": "Exists" }])));
    let gone = |seconds: i64| {
        let (actions, next) = evictions(&cache, &node, at(seconds));
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

//! Deletion of pods with grace, and evictions under budgets.

use serde_json::{Value, json};

use super::{BUDGETS, POD, PODS, pod};
use crate::step::{Step, delete, get, merge, post};

const WRONG: &str = "11111111-1111-4111-8111-111111111111";

fn eviction() -> String {
    format!("{POD}/eviction")
}

/// Steps that create the pod and make it run, ready or not.
fn running(ready: bool) -> Vec<Step> {
    let ready = if ready { "True" } else { "False" };
    let status = json!({ "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": ready }] } });
    vec![
        post(PODS, pod()).keep("uid", "/metadata/uid"),
        merge(format!("{POD}/status"), status),
    ]
}

/// A budget over the pod, with a status as its controller would write it.
fn budget(name: &str, allowed: i64, healthy: i64) -> Vec<Step> {
    let spec = json!({ "minAvailable": 1, "selector": { "matchLabels": { "app": "x" } } });
    let status = json!({ "observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": healthy,
        "desiredHealthy": 1, "expectedPods": healthy });
    vec![
        post(
            BUDGETS,
            json!({ "metadata": { "name": name }, "spec": spec }),
        ),
        merge(
            format!("{BUDGETS}/{name}/status"),
            json!({ "status": status }),
        ),
    ]
}

fn evict(uid: Option<&str>) -> Step {
    let mut body = json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "pod", "namespace": "{ns}" } });
    if let Some(uid) = uid {
        body["deleteOptions"] = json!({ "preconditions": { "uid": uid } });
    }
    post(eviction(), body)
}

fn all(parts: impl IntoIterator<Item = Vec<Step>>) -> Vec<Step> {
    parts.into_iter().flatten().collect()
}

pub fn a_pod_on_a_node_stays_for_its_grace_and_one_without_goes_at_once() -> Vec<Step> {
    let grace = |seconds: i64| delete(POD).with(json!({ "gracePeriodSeconds": seconds }));
    let mut unbound = pod();
    unbound["spec"].as_object_mut().unwrap().remove("nodeName");
    vec![
        post(PODS, unbound),
        delete(POD),
        get(POD).is(404),
        post(PODS, pod()),
        delete(POD).has("/metadata/deletionGracePeriodSeconds", 30),
        get(POD),
        grace(40).has("/metadata/deletionGracePeriodSeconds", 30),
        grace(5).has("/metadata/deletionGracePeriodSeconds", 5),
        delete(format!("{POD}?gracePeriodSeconds=3"))
            .has("/metadata/deletionGracePeriodSeconds", 3),
        grace(0),
        get(POD).is(404),
    ]
}

pub fn a_finished_pod_goes_at_once() -> Vec<Step> {
    vec![
        post(PODS, pod()),
        merge(
            format!("{POD}/status"),
            json!({ "status": { "phase": "Succeeded" } }),
        ),
        delete(POD),
        get(POD).is(404),
    ]
}

pub fn a_pods_own_grace_and_its_finalizers_count() -> Vec<Step> {
    let mut body = pod();
    body["spec"]["terminationGracePeriodSeconds"] = 7.into();
    body["metadata"]["finalizers"] = json!(["example.com/a"]);
    vec![
        post(PODS, body),
        delete(POD).has("/metadata/deletionGracePeriodSeconds", 7),
        delete(POD).with(json!({ "gracePeriodSeconds": 0 })),
        get(POD).has("/metadata/deletionGracePeriodSeconds", 0),
        merge(POD, json!({ "metadata": { "finalizers": null } })),
        get(POD).is(404),
    ]
}

pub fn a_pods_deletion_checks_its_preconditions() -> Vec<Step> {
    vec![
        post(PODS, pod()).keep("uid", "/metadata/uid"),
        delete(POD)
            .with(json!({ "preconditions": { "uid": WRONG }, "gracePeriodSeconds": 0 }))
            .is(409),
        delete(POD).with(json!({ "preconditions": { "uid": "{uid}" }, "gracePeriodSeconds": 0 })),
    ]
}

pub fn a_pods_place_and_containers_are_fixed() -> Vec<Step> {
    vec![
        post(PODS, pod()),
        merge(POD, json!({ "spec": { "nodeName": "other" } })).is(422),
        merge(
            POD,
            json!({ "spec": { "containers": [{ "name": "c", "image": "j" }] } }),
        )
        .has("/spec/containers/0/image", "j"),
        post(PODS, json!({ "metadata": { "name": "empty" }, "spec": {} })).is(422),
    ]
}

pub fn a_pod_is_bound_once() -> Vec<Step> {
    let mut unbound = pod();
    unbound["spec"].as_object_mut().unwrap().remove("nodeName");
    let binding = json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "pod" }, "target": { "kind": "Node", "name": "n" } });
    vec![
        post(PODS, unbound),
        post(format!("{POD}/binding"), binding.clone()),
        get(POD).has("/spec/nodeName", "n"),
        post(format!("{POD}/binding"), binding).is(409),
    ]
}

pub fn an_eviction_without_a_budget_deletes() -> Vec<Step> {
    all([
        running(true),
        vec![
            evict(Some(WRONG)).is(409).has("/reason", "Conflict"),
            evict(Some("{uid}")).has("/status", "Success"),
            get(POD).has("/metadata/deletionGracePeriodSeconds", 30),
            evict(Some("{uid}")),
            delete(POD).with(json!({ "gracePeriodSeconds": 0 })),
            evict(None).is(404),
        ],
    ])
}

pub fn a_spent_budget_refuses_before_the_uid_is_looked_at() -> Vec<Step> {
    let refused = |uid| {
        let cause = "The disruption budget b needs 1 healthy pods and has 1 currently";
        evict(uid)
            .is(429)
            .has("/details/causes/0/reason", "DisruptionBudget")
            .has("/details/causes/0/message", cause)
            .lacks("/details/retryAfterSeconds")
    };
    all([
        running(true),
        budget("b", 0, 1),
        vec![
            refused(Some("{uid}")),
            refused(Some(WRONG)),
            refused(None),
            get(POD),
        ],
    ])
}

pub fn a_budget_is_spent_even_for_another_uid() -> Vec<Step> {
    all([
        running(true),
        budget("b", 1, 2),
        vec![
            evict(Some(WRONG)).is(409),
            get(format!("{BUDGETS}/b")).has("/status/disruptionsAllowed", 0),
            evict(Some("{uid}")).is(429),
        ],
    ])
}

pub fn a_budget_with_room_is_spent_by_one() -> Vec<Step> {
    all([
        running(true),
        budget("b", 2, 3),
        vec![
            evict(Some("{uid}")),
            get(format!("{BUDGETS}/b")).has("/status/disruptionsAllowed", 1),
            get(POD),
        ],
    ])
}

pub fn several_budgets_over_one_pod_are_a_500() -> Vec<Step> {
    all([
        running(true),
        budget("a", 1, 2),
        budget("b", 1, 2),
        vec![evict(Some("{uid}")).is(500), get(POD)],
    ])
}

pub fn a_budget_that_nobody_has_counted_yet_asks_for_patience() -> Vec<Step> {
    let body = json!({ "metadata": { "name": "b" }, "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "x" } } } });
    all([
        running(true),
        vec![
            post(BUDGETS, body),
            evict(None).is(429).has("/details/retryAfterSeconds", 10),
        ],
    ])
}

pub fn a_pod_that_does_not_run_is_evicted_whatever_its_budget() -> Vec<Step> {
    all([
        vec![post(PODS, pod()).keep("uid", "/metadata/uid")],
        budget("b", 0, 1),
        vec![evict(Some("{uid}")), get(POD)],
    ])
}

pub fn a_pod_that_is_not_ready_counts_for_nothing_where_the_budget_is_met() -> Vec<Step> {
    all([
        running(false),
        budget("b", 0, 1),
        vec![evict(Some("{uid}")), get(format!("{BUDGETS}/b"))],
    ])
}

pub fn a_pod_that_is_not_ready_stays_where_the_budget_is_not_met() -> Vec<Step> {
    all([
        running(false),
        budget("b", 0, 0),
        vec![
            evict(Some("{uid}")).is(429),
            merge(
                format!("{BUDGETS}/b"),
                json!({ "spec": { "unhealthyPodEvictionPolicy": "AlwaysAllow" } }),
            ),
            merge(
                format!("{BUDGETS}/b/status"),
                json!({ "status": { "observedGeneration": 2 } }),
            ),
            evict(Some("{uid}")),
        ],
    ])
}

pub fn a_dry_run_of_an_eviction_spends_nothing() -> Vec<Step> {
    let mut body = json!({ "metadata": { "name": "pod" } });
    body["deleteOptions"] = json!({ "dryRun": ["All"] });
    all([
        running(true),
        budget("b", 1, 2),
        vec![
            post(eviction(), body),
            get(format!("{BUDGETS}/b")).has("/status/disruptionsAllowed", 1),
            get(POD),
        ],
    ])
}

pub fn an_eviction_that_names_another_pod_is_refused() -> Vec<Step> {
    all([
        running(true),
        vec![
            post(eviction(), json!({ "metadata": { "name": "other" } })).is(400),
            post(eviction(), json!({ "metadata": {} })).is(400),
        ],
    ])
}

pub fn in_a_terminating_namespace_nothing_is_evicted_or_made() -> Vec<Step> {
    let cause = |step: Step| {
        step.is(403).has(
            "/details/causes/0/reason",
            Value::from("NamespaceTerminating"),
        )
    };
    all([
        running(true),
        vec![
            delete("/api/v1/namespaces/{ns}"),
            cause(evict(Some("{uid}"))),
            cause(post(
                "/api/v1/namespaces/{ns}/configmaps",
                json!({ "metadata": { "name": "m" } }),
            )),
            merge(POD, json!({ "metadata": { "labels": { "l": "v" } } })),
            delete(POD).with(json!({ "gracePeriodSeconds": 0 })),
        ],
    ])
}

//! Every verb and its errors.

use serde_json::json;

use super::{LEASE, LEASES, MAP, MAPS, NODE, NODES, map, node, slot};
use crate::step::{MERGE, Step, delete, get, merge, post, put};

pub fn what_is_created_is_read_changed_and_gone() -> Vec<Step> {
    vec![
        post(LEASES, slot(&json!({ "holderIdentity": "a" })))
            .has("/metadata/namespace", "{ns}")
            .has("/spec/holderIdentity", "a"),
        get(LEASE)
            .has("/spec/holderIdentity", "a")
            .keep("rv", "/metadata/resourceVersion"),
        put(LEASE, json!({ "metadata": { "name": "slot", "resourceVersion": "{rv}" }, "spec": { "holderIdentity": "b" } }))
            .has("/spec/holderIdentity", "b"),
        merge(LEASE, json!({ "spec": { "holderIdentity": null } })).lacks("/spec/holderIdentity"),
        get(LEASES).has("/items/0/metadata/name", "slot"),
        delete(LEASE).has("/status", "Success"),
        get(LEASE).is(404).has("/reason", "NotFound"),
    ]
}

pub fn a_collection_is_deleted_by_selector() -> Vec<Step> {
    let one =
        |name: &str, app: &str| json!({ "metadata": { "name": name, "labels": { "app": app } } });
    vec![
        post(MAPS, one("a", "x")),
        post(MAPS, one("b", "y")),
        delete(format!("{MAPS}?labelSelector=app=x")),
        get(MAPS)
            .has("/items/0/metadata/name", "b")
            .lacks("/items/1"),
    ]
}

pub fn a_name_that_is_taken_is_refused() -> Vec<Step> {
    let lease = slot(&json!({}));
    vec![
        post(LEASES, lease.clone()),
        post(LEASES, lease)
            .is(409)
            .has("/reason", "AlreadyExists")
            .says("\"slot\" already exists"),
    ]
}

pub fn what_is_not_there_is_404_for_every_verb() -> Vec<Step> {
    vec![
        get(LEASE).is(404),
        merge(LEASE, json!({})).is(404),
        delete(LEASE).is(404),
        put(MAP, map(&json!({}))).is(404),
        put(
            MAP,
            json!({ "metadata": { "name": "map", "resourceVersion": "1" } }),
        )
        .is(404),
        get("/api/v1/namespaces/{ns}/nothings").is(404),
        get("/apis/nothing.example.com/v1/things").is(404),
    ]
}

pub fn a_put_to_a_lease_that_is_not_there_makes_it() -> Vec<Step> {
    vec![
        put(LEASE, slot(&json!({ "holderIdentity": "a" }))).is(201),
        get(LEASE),
    ]
}

pub fn in_a_namespace_that_is_not_there_nothing_is_made() -> Vec<Step> {
    vec![
        post("/api/v1/namespaces/{ns}-not/configmaps", map(&json!({})))
            .is(404)
            .says("namespaces"),
        get("/api/v1/namespaces/{ns}-not/configmaps").lacks("/items/0"),
    ]
}

pub fn names_and_fields_that_break_the_rules_are_422() -> Vec<Step> {
    vec![
        post(LEASES, json!({ "metadata": { "name": "Slot" } }))
            .is(422)
            .says("metadata.name"),
        post(LEASES, json!({ "metadata": {} }))
            .is(422)
            .says("name or generateName is required"),
        post(LEASES, slot(&json!({ "leaseDurationSeconds": 0 }))).is(422),
        post(LEASES, slot(&json!({ "leaseTransitions": -1 }))).is(422),
        post(
            LEASES,
            slot(&json!({ "leaseDurationSeconds": 0, "leaseTransitions": -1 })),
        )
        .is(422),
        post(
            MAPS,
            json!({ "metadata": { "name": "m", "labels": { "a": "not ok" } } }),
        )
        .is(422),
        post(
            MAPS,
            json!({ "metadata": { "name": "m", "labels": { "a": "-x" } } }),
        )
        .is(422),
        post(NODES, json!({ "metadata": { "name": "{ns}_node" } })).is(422),
        post(
            format!("{MAPS}?fieldManager={}", "x".repeat(129)),
            map(&json!({})),
        )
        .is(422),
    ]
}

pub fn bodies_that_are_something_else_are_refused() -> Vec<Step> {
    vec![
        post(MAPS, slot(&json!({}))).is(400),
        post(
            MAPS,
            json!({ "apiVersion": "v2", "kind": "ConfigMap", "metadata": { "name": "m" } }),
        )
        .is(400),
        post(
            MAPS,
            json!({ "metadata": { "name": "m", "namespace": "other" } }),
        )
        .is(400),
        post(
            MAPS,
            json!({ "metadata": { "name": "m", "resourceVersion": "7" } }),
        )
        .is(500),
        post(MAPS, map(&json!({}))),
        put(MAP, json!({ "metadata": { "name": "other" } })).is(400),
        post(MAP, map(&json!({}))).is(405),
        merge(MAP, json!({ "metadata": { "name": "other" } })).is(400),
        merge(MAP, json!({ "metadata": { "namespace": "other" } })).is(400),
        merge(MAP, json!([1])).is(400),
        put(MAP, map(&json!({}))).content_type(MERGE).is(415),
        merge(MAP, json!({}))
            .content_type("application/json")
            .is(415),
    ]
}

pub fn a_dry_run_answers_and_leaves_no_trace() -> Vec<Step> {
    vec![
        post(format!("{MAPS}?dryRun=All"), map(&json!({}))).lacks("/data"),
        get(MAP).is(404),
        post(MAPS, map(&json!({ "k": "v" }))),
        merge(format!("{MAP}?dryRun=All"), json!({ "data": { "k": "w" } })).has("/data/k", "w"),
        delete(format!("{MAP}?dryRun=All")),
        get(MAP).has("/data/k", "v"),
    ]
}

pub fn finalizers_hold_an_object_until_they_are_gone() -> Vec<Step> {
    vec![
        post(
            MAPS,
            json!({ "metadata": { "name": "map", "finalizers": ["example.com/a"] } }),
        ),
        delete(MAP)
            .has("/metadata/finalizers/0", "example.com/a")
            .keep("gone", "/metadata/deletionTimestamp"),
        get(MAP).has("/metadata/deletionGracePeriodSeconds", 0),
        delete(MAP),
        merge(
            MAP,
            json!({ "metadata": { "finalizers": ["example.com/a", "example.com/b"] } }),
        )
        .is(422),
        merge(MAP, json!({ "data": { "still": "writable" } })).has("/data/still", "writable"),
        merge(MAP, json!({ "metadata": { "finalizers": null } })),
        get(MAP).is(404),
    ]
}

pub fn what_a_server_sets_nobody_else_sets() -> Vec<Step> {
    let claims = json!({ "name": "map", "uid": "mine", "creationTimestamp": "2020-01-01T00:00:00Z",
        "deletionTimestamp": "2020-01-01T00:00:00Z", "selfLink": "/x" });
    vec![
        post(MAPS, json!({ "metadata": claims }))
            .keep("uid", "/metadata/uid")
            .lacks("/metadata/generation"),
        merge(
            MAP,
            json!({ "metadata": { "creationTimestamp": "2020-01-01T00:00:00Z" } }),
        ),
        get(MAP).has("/metadata/uid", "{uid}"),
    ]
}

pub fn a_node_is_cordoned_and_its_status_is_kept_apart() -> Vec<Step> {
    let status = format!("{NODE}/status");
    vec![
        post(NODES, node()),
        merge(
            NODE,
            json!({ "spec": { "unschedulable": true }, "status": { "phase": "Running" } }),
        )
        .has("/spec/unschedulable", true)
        .keep("rv", "/metadata/resourceVersion"),
        merge(NODE, json!({ "spec": { "unschedulable": true } }))
            .has("/metadata/resourceVersion", "{rv}"),
        merge(
            status.clone(),
            json!({ "status": { "nodeInfo": { "bootID": "b" } }, "spec": { "unschedulable": false } }),
        ),
        get(status)
            .has("/spec/unschedulable", true)
            .has("/status/nodeInfo/bootID", "b"),
        merge(
            NODE,
            json!({ "spec": { "taints": [{ "key": "k", "effect": "NoSchedule" }] } }),
        ),
        merge(NODE, json!({ "spec": { "taints": [{ "key": "k" }] } })).is(422),
        delete(NODE),
    ]
}

pub fn events_are_made_and_read_in_both_groups() -> Vec<Step> {
    let events = "/api/v1/namespaces/{ns}/events";
    let event = json!({ "metadata": { "name": "e" }, "type": "Normal", "reason": "Drained", "message": "done",
        "involvedObject": { "kind": "Node", "name": "n", "namespace": "{ns}" }, "source": { "component": "dogwatch" },
        "firstTimestamp": "2020-01-01T00:00:00Z", "lastTimestamp": "2020-01-01T00:00:00Z", "count": 1 });
    let new = json!({ "metadata": { "name": "f" }, "type": "Warning", "reason": "Blocked", "action": "Drain",
        "note": "by a budget", "eventTime": "2020-01-01T00:00:00.000001Z", "reportingController": "dogwatch.dev/c",
        "reportingInstance": "n", "regarding": { "kind": "Node", "name": "n", "namespace": "{ns}" } });
    let newer = "/apis/events.k8s.io/v1/namespaces/{ns}/events";
    vec![
        post(events, event),
        merge(format!("{events}/e"), json!({ "count": 2 })).has("/count", 2),
        get(format!("{newer}/e"))
            .has("/deprecatedCount", 2)
            .has("/note", "done"),
        post(newer, new),
        get(format!("{events}/f")).has("/message", "by a budget"),
        get(format!(
            "{events}?fieldSelector=involvedObject.kind=Node,reason=Drained"
        ))
        .has("/items/0/metadata/name", "e")
        .lacks("/items/1"),
    ]
}

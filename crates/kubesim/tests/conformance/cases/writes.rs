//! Conflicts and preconditions, and the kinds of patches.

use serde_json::{Value, json};

use super::{LEASE, LEASES, MAP, MAPS, NODE, NODES, map, node, slot};
use crate::step::{JSON, STRATEGIC, Step, delete, get, merge, patch, post, put};

const STALE: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

fn made() -> Step {
    post(MAPS, map(&json!({ "k": "v" })))
        .keep("uid", "/metadata/uid")
        .keep("old", "/metadata/resourceVersion")
}

fn changed() -> Step {
    merge(MAP, json!({ "data": { "k": "w" } })).keep("new", "/metadata/resourceVersion")
}

fn versioned(version: &str) -> Value {
    json!({ "metadata": { "name": "map", "resourceVersion": version }, "data": { "k": "x" } })
}

pub fn a_write_of_an_old_version_is_a_conflict() -> Vec<Step> {
    vec![
        made(),
        changed(),
        put(MAP, versioned("{old}"))
            .is(409)
            .has("/reason", "Conflict")
            .says(STALE),
        merge(MAP, versioned("{old}")).is(409).says(STALE),
        patch(STRATEGIC, MAP, versioned("{old}"))
            .is(409)
            .says(STALE),
        put(MAP, versioned("{new}")).has("/data/k", "x"),
        merge(MAP, versioned("{new}")).is(409),
        put(MAP, versioned("nonsense")).is(500),
        merge(MAP, versioned("nonsense")).is(500),
        merge(MAP, versioned("0")),
    ]
}

pub fn a_put_without_a_version_writes_over_what_is_there() -> Vec<Step> {
    vec![
        made(),
        changed(),
        put(MAP, map(&json!({ "other": "o" }))).lacks("/data/k"),
        post(LEASES, slot(&json!({}))),
        put(LEASE, slot(&json!({})))
            .is(422)
            .says("must be specified for an update"),
    ]
}

pub fn a_write_for_another_uid_is_a_conflict() -> Vec<Step> {
    let other =
        json!({ "metadata": { "name": "map", "uid": "11111111-1111-4111-8111-111111111111" } });
    vec![
        made(),
        merge(MAP, other.clone()).is(422),
        put(MAP, other).is(409),
        merge(
            MAP,
            json!({ "metadata": { "uid": "{uid}" }, "data": { "k": "x" } }),
        )
        .has("/data/k", "x"),
    ]
}

pub fn a_delete_checks_uid_and_version_first() -> Vec<Step> {
    let only = |field: &str, value: &str| json!({ "preconditions": { field: value } });
    vec![
        made(),
        changed(),
        delete(MAP)
            .with(only("uid", "11111111-1111-4111-8111-111111111111"))
            .is(409)
            .has("/reason", "Conflict"),
        delete(MAP).with(only("resourceVersion", "{old}")).is(409),
        get(MAP),
        delete(MAP)
            .with(json!({ "preconditions": { "uid": "{uid}", "resourceVersion": "{new}" } })),
        get(MAP).is(404),
    ]
}

pub fn a_json_patch_tests_and_changes_or_does_neither() -> Vec<Step> {
    let test = |value: &str| json!({ "op": "test", "path": "/data/k", "value": value });
    let add = json!({ "op": "add", "path": "/data/n", "value": "1" });
    vec![
        made(),
        patch(JSON, MAP, json!([test("v"), add])).has("/data/n", "1"),
        patch(JSON, MAP, json!([test("other"), { "op": "remove", "path": "/data/n" }])).is(422),
        patch(JSON, MAP, json!([{ "op": "remove", "path": "/data/missing" }])).is(422),
        patch(JSON, MAP, json!([{ "op": "replace", "path": "/data/missing", "value": "x" }])),
        patch(JSON, MAP, json!([{ "op": "replace", "path": "/data/k", "value": "x" }, { "op": "remove", "path": "/data/n" }]))
            .has("/data/k", "x")
            .lacks("/data/n"),
        patch(JSON, MAP, json!([{ "op": "copy", "from": "/data/k", "path": "/data/c" }, { "op": "move", "from": "/data/k", "path": "/data/m" }])),
        patch(JSON, MAP, json!([{ "op": "test", "path": "/metadata/resourceVersion", "value": "{old}" }])).is(422),
        patch(JSON, MAP, json!({ "op": "add" })).is(400),
    ]
}

pub fn a_merge_patch_replaces_lists_and_removes_what_is_null() -> Vec<Step> {
    vec![
        post(NODES, node()),
        merge(NODE, json!({ "metadata": { "annotations": { "a": "1", "b": "2" } }, "spec": { "taints": [{ "key": "x", "effect": "NoSchedule" }] } })),
        merge(NODE, json!({ "metadata": { "annotations": { "a": null } }, "spec": { "taints": [{ "key": "y", "effect": "NoExecute" }] } }))
            .lacks("/metadata/annotations/a")
            .has("/spec/taints/0/key", "y")
            .lacks("/spec/taints/1"),
        merge(NODE, json!({ "metadata": { "annotations": null }, "spec": { "taints": null } })).lacks("/spec/taints"),
        merge(NODE, json!({ "metadata": { "labels": { "bad": "not ok" } } })).is(422),
        delete(NODE),
    ]
}

pub fn a_strategic_patch_merges_conditions_by_type() -> Vec<Step> {
    let status = format!("{NODE}/status");
    let conditions = |list: &Value| json!({ "status": { "conditions": list } });
    let ready =
        |status: &str| json!({ "type": "Ready", "status": status, "reason": "R", "message": "m" });
    vec![
        post(NODES, node()),
        patch(
            STRATEGIC,
            status.clone(),
            conditions(&json!([ready("True"), { "type": "Drained", "status": "False" }])),
        )
        .has("/status/conditions/0/type", "Ready"),
        patch(
            STRATEGIC,
            status.clone(),
            conditions(&json!([ready("Unknown")])),
        )
        .has("/status/conditions/0/status", "Unknown")
        .has("/status/conditions/1/type", "Drained"),
        patch(
            STRATEGIC,
            status.clone(),
            conditions(
                &json!([{ "type": "Drained", "status": "True" }, { "type": "New", "status": "True" }]),
            ),
        ),
        patch(
            STRATEGIC,
            status,
            conditions(&json!([{ "type": "Drained", "$patch": "delete" }])),
        )
        .has("/status/conditions/1/type", "New"),
        delete(NODE),
    ]
}

pub fn a_write_that_changes_nothing_moves_no_version() -> Vec<Step> {
    vec![
        made(),
        changed(),
        merge(MAP, json!({ "data": { "k": "w" } })).has("/metadata/resourceVersion", "{new}"),
        merge(MAP, json!({})).has("/metadata/resourceVersion", "{new}"),
        patch(JSON, MAP, json!([])).has("/metadata/resourceVersion", "{new}"),
        put(MAP, json!({ "metadata": { "name": "map", "resourceVersion": "{new}" }, "data": { "k": "w" } }))
            .has("/metadata/resourceVersion", "{new}"),
    ]
}

pub fn generation_counts_changes_of_the_spec_alone() -> Vec<Step> {
    let sets = "/apis/apps/v1/namespaces/{ns}/replicasets";
    let set = "/apis/apps/v1/namespaces/{ns}/replicasets/set";
    let body = json!({ "metadata": { "name": "set" }, "spec": { "selector": { "matchLabels": { "app": "x" } }, "replicas": 1,
        "template": { "metadata": { "labels": { "app": "x" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] } } } });
    vec![
        post(sets, body).has("/metadata/generation", 1),
        merge(set, json!({ "metadata": { "labels": { "l": "v" } } }))
            .has("/metadata/generation", 1),
        merge(set, json!({ "spec": { "replicas": 2 } })).has("/metadata/generation", 2),
        merge(
            format!("{set}/status"),
            json!({ "status": { "replicas": 2 } }),
        )
        .has("/metadata/generation", 2),
        merge(
            set,
            json!({ "spec": { "selector": { "matchLabels": { "app": "y" } } } }),
        )
        .is(422),
    ]
}

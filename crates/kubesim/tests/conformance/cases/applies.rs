//! Server-side apply: field owners and conflicts.

use serde_json::{Value, json};

use super::{LEASE, LEASES, MAP, NODE, NODES, map, node, slot};
use crate::step::{APPLY, Step, apply, delete, get, merge, patch, post, put};

fn holder(name: &str) -> Value {
    slot(&json!({ "holderIdentity": name }))
}

fn with(mut object: Value, field: &str, value: &str) -> Value {
    object["metadata"][field] = value.into();
    object
}

pub fn an_apply_makes_what_is_not_there_and_owns_it() -> Vec<Step> {
    vec![
        apply("one", LEASE, holder("one"))
            .is(201)
            .has("/metadata/managedFields/0/manager", "one")
            .has("/metadata/managedFields/0/operation", "Apply"),
        get(LEASE).has("/spec/holderIdentity", "one"),
        apply(
            "one",
            LEASE,
            slot(&json!({ "holderIdentity": "one", "leaseTransitions": 1 })),
        ),
    ]
}

pub fn a_second_manager_is_told_who_is_in_the_way_and_where() -> Vec<Step> {
    let mut bid = slot(&json!({ "holderIdentity": "one", "leaseTransitions": 1 }));
    bid["metadata"]["annotations"] = json!({ "example.com/record": "one" });
    let mut other = slot(&json!({ "holderIdentity": "two", "leaseTransitions": 2 }));
    other["metadata"]["annotations"] = json!({ "example.com/record": "two" });
    vec![
        apply("one", LEASE, bid).is(201),
        apply("two", LEASE, holder("two"))
            .is(409)
            .says("Apply failed with 1 conflict: conflict with \"one\": .spec.holderIdentity"),
        apply("two", LEASE, other.clone())
            .is(409)
            .says("3 conflicts"),
        apply("two", &format!("{LEASE}?force=true"), other).has("/spec/holderIdentity", "two"),
        apply("one", LEASE, holder("one")).is(409),
    ]
}

pub fn the_same_value_is_owned_by_both_until_both_let_go() -> Vec<Step> {
    vec![
        apply("one", LEASE, holder("same")).is(201),
        apply("two", LEASE, holder("same")).has("/spec/holderIdentity", "same"),
        apply("one", LEASE, holder("mine")).is(409),
        apply("one", LEASE, slot(&json!({}))).has("/spec/holderIdentity", "same"),
        apply("two", LEASE, slot(&json!({}))).lacks("/spec/holderIdentity"),
    ]
}

pub fn what_an_apply_leaves_out_goes_unless_another_wrote_it_too() -> Vec<Step> {
    let data = |value: Value| map(&value);
    vec![
        apply("one", MAP, data(json!({ "a": "1", "b": "1", "c": "1" }))).is(201),
        merge(
            format!("{MAP}?fieldManager=person"),
            json!({ "data": { "b": "1", "c": "2" } }),
        ),
        apply("one", MAP, data(json!({ "a": "1" })))
            .lacks("/data/b")
            .has("/data/c", "2"),
        apply("one", MAP, data(json!({}))).lacks("/data/a"),
    ]
}

pub fn a_writer_that_is_no_applier_is_in_the_way_too() -> Vec<Step> {
    vec![
        post(format!("{LEASES}?fieldManager=maker"), holder("maker")),
        apply("one", LEASE, holder("one"))
            .is(409)
            .says("conflict with \"maker\""),
        merge(
            format!("{LEASE}?fieldManager=person"),
            json!({ "spec": { "holderIdentity": "person" } }),
        ),
        apply("one", LEASE, holder("one")).is(409).says("person"),
        merge(
            format!("{LEASE}?fieldManager=person"),
            json!({ "spec": { "holderIdentity": null } }),
        ),
        apply("one", LEASE, holder("one")).has("/spec/holderIdentity", "one"),
        merge(
            format!("{LEASE}?fieldManager=thief"),
            json!({ "spec": { "holderIdentity": "thief" } }),
        ),
        apply("one", LEASE, holder("one")).is(409).says("thief"),
    ]
}

pub fn an_apply_of_the_same_again_moves_no_version() -> Vec<Step> {
    vec![
        apply("one", LEASE, holder("one"))
            .is(201)
            .keep("rv", "/metadata/resourceVersion"),
        apply("one", LEASE, holder("one")).has("/metadata/resourceVersion", "{rv}"),
        apply("two", LEASE, holder("one")),
        apply("one", &format!("{LEASE}?dryRun=All"), slot(&json!({}))),
        get(LEASE).has("/spec/holderIdentity", "one"),
    ]
}

pub fn an_apply_that_saw_an_older_version_is_a_conflict() -> Vec<Step> {
    vec![
        post(LEASES, slot(&json!({})))
            .keep("rv", "/metadata/resourceVersion")
            .keep("uid", "/metadata/uid"),
        apply("one", LEASE, with(holder("one"), "resourceVersion", "{rv}"))
            .has("/spec/holderIdentity", "one"),
        apply("one", LEASE, slot(&json!({}))).lacks("/spec/holderIdentity"),
        apply("one", LEASE, with(holder("one"), "resourceVersion", "{rv}"))
            .is(409)
            .says("the object has been modified"),
        delete(LEASE),
        apply(
            "one",
            LEASE,
            with(
                with(holder("one"), "resourceVersion", "{rv}"),
                "uid",
                "{uid}",
            ),
        )
        .is(409),
        apply("one", LEASE, with(holder("one"), "resourceVersion", "{rv}")).is(201),
        apply("one", LEASE, with(holder("one"), "uid", "{uid}")).is(422),
    ]
}

pub fn an_apply_without_what_it_needs_is_refused() -> Vec<Step> {
    let lease = || holder("one");
    let nameless = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {}, "spec": {} });
    let kindless = json!({ "metadata": { "name": "slot" } });
    let mut owned = holder("one");
    owned["metadata"]["managedFields"] = json!([{ "manager": "x", "operation": "Apply", "apiVersion": "coordination.k8s.io/v1",
        "fieldsType": "FieldsV1", "fieldsV1": {} }]);
    vec![
        patch(APPLY, LEASE, lease()).is(422).says("fieldManager"),
        apply(&"x".repeat(129), LEASE, lease()).is(422),
        apply(&"x".repeat(128), LEASE, lease()).is(201),
        apply("one", LEASE, nameless),
        apply("one", LEASE, kindless).is(400),
        apply("one", LEASE, with(lease(), "name", "other")).is(400),
        apply("one", LEASE, owned).is(400),
        merge(format!("{LEASE}?force=true"), json!({})).is(422),
    ]
}

pub fn a_status_is_applied_apart() -> Vec<Step> {
    let ready = |status: &str| {
        json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "{ns}-node" },
        "status": { "conditions": [{ "type": "Mine", "status": status }] } })
    };
    let status = format!("{NODE}/status");
    vec![
        post(NODES, node()),
        apply("one", &status, ready("True")).has("/status/conditions/0/status", "True"),
        apply("two", &status, ready("False"))
            .is(409)
            .says(".status.conditions[type=\"Mine\"].status"),
        apply(
            "one",
            &status,
            json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "{ns}-node" } }),
        ),
        get(NODE).lacks("/status/conditions/0"),
        delete(NODE),
    ]
}

pub fn sets_and_maps_are_owned_item_by_item() -> Vec<Step> {
    let node = |finalizer: &str, label: &str| {
        json!({ "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": "{ns}-node", "finalizers": [finalizer], "labels": { "l": label } } })
    };
    vec![
        apply("one", NODE, node("example.com/a", "a")).is(201),
        apply("two", NODE, node("example.com/b", "a"))
            .has("/metadata/finalizers/1", "example.com/b"),
        apply("two", NODE, node("example.com/a", "b")).is(409),
        apply(
            "one",
            NODE,
            json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "{ns}-node" } }),
        )
        .has("/metadata/finalizers/0", "example.com/b"),
        merge(NODE, json!({ "metadata": { "finalizers": null } })),
        delete(NODE),
    ]
}

pub fn a_put_can_take_a_field_from_an_applier() -> Vec<Step> {
    vec![
        apply("one", LEASE, holder("one"))
            .is(201)
            .keep("rv", "/metadata/resourceVersion"),
        put(
            format!("{LEASE}?fieldManager=person"),
            with(holder("person"), "resourceVersion", "{rv}"),
        ),
        apply("one", LEASE, holder("one")).is(409).says("person"),
        apply("two", LEASE, holder("person")),
        merge(LEASE, json!({ "metadata": { "managedFields": [{}] } }))
            .lacks("/metadata/managedFields"),
    ]
}

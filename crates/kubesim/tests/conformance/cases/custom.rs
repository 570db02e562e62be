//! Kinds that a CustomResourceDefinition adds.

use serde_json::{Value, json};

use crate::step::{STRATEGIC, Step, TABLE, apply, delete, get, merge, patch, post, put};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/{ns}.example.com/v1/things";
const THING: &str = "/apis/{ns}.example.com/v1/things/t";

fn definition() -> Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({ "metadata": { "name": "things.{ns}.example.com" }, "spec": { "group": "{ns}.example.com", "scope": "Cluster",
        "names": { "plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList" },
        "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
            "schema": { "openAPIV3Schema": schema } }] } })
}

/// Creates the definition and waits until its list is served.
fn defined() -> Vec<Step> {
    vec![
        post(DEFINITIONS, definition()).apart(),
        get(THINGS).until_served(),
    ]
}

fn thing(spec: &Value) -> Value {
    json!({ "apiVersion": "{ns}.example.com/v1", "kind": "Thing", "metadata": { "name": "t" }, "spec": spec })
}

fn gone() -> Step {
    delete(format!("{DEFINITIONS}/things.{{ns}}.example.com")).apart()
}

fn with(steps: Vec<Step>) -> Vec<Step> {
    let mut all = defined();
    all.extend(steps);
    all.push(gone());
    all
}

pub fn a_kind_that_is_defined_is_served_like_any_other() -> Vec<Step> {
    with(vec![
        post(THINGS, thing(&json!({ "a": 1 }))).has("/metadata/generation", 1).keep("rv", "/metadata/resourceVersion"),
        post(THINGS, thing(&json!({}))).is(409),
        merge(THING, json!({ "spec": { "a": 2 } })).has("/metadata/generation", 2),
        merge(THING, json!({ "metadata": { "labels": { "l": "v" } } })).has("/metadata/generation", 2),
        put(THING, json!({ "apiVersion": "{ns}.example.com/v1", "kind": "Thing", "metadata": { "name": "t", "resourceVersion": "{rv}" } })).is(409),
        get(format!("{THINGS}?labelSelector=l=v")).has("/kind", "ThingList").has("/items/0/kind", "Thing"),
        get(THINGS).accept(TABLE).has("/rows/0/cells/0", "t"),
        get(format!("{THINGS}?watch=true&timeoutSeconds=1")).has("/0/type", "ADDED"),
        delete(THING).has("/status", "Success"),
        get(THING).is(404),
    ])
}

pub fn a_custom_status_is_written_apart() -> Vec<Step> {
    let status = format!("{THING}/status");
    let mut both = thing(&json!({ "a": 1 }));
    both["status"] = json!({ "s": 1 });
    with(vec![
        post(THINGS, both).lacks("/status"),
        merge(status, json!({ "spec": { "a": 2 }, "status": { "s": 2 } }))
            .has("/spec/a", 1)
            .has("/status/s", 2),
        merge(THING, json!({ "status": { "s": 3 } }))
            .has("/status/s", 2)
            .has("/metadata/generation", 1),
    ])
}

pub fn a_custom_object_is_applied_and_owned() -> Vec<Step> {
    with(vec![
        apply("one", THING, thing(&json!({ "a": 1, "list": [1, 2] }))).is(201),
        apply("two", THING, thing(&json!({ "a": 2 })))
            .is(409)
            .says("conflict with \"one\""),
        apply("two", THING, thing(&json!({ "b": 2 }))).has("/spec/b", 2),
        apply("one", THING, thing(&json!({})))
            .lacks("/spec/a")
            .has("/spec/b", 2),
    ])
}

pub fn what_custom_kinds_do_not_take_is_refused() -> Vec<Step> {
    with(vec![
        post(THINGS, json!({ "metadata": { "name": "t" } })).is(400),
        post(THINGS, thing(&json!({}))),
        patch(STRATEGIC, THING, json!({ "spec": { "a": 1 } })).is(415),
        put(THING, thing(&json!({}))).is(422),
    ])
}

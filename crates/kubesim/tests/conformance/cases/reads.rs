//! Selectors, paging, watches, tables and metadata.

use serde_json::{Value, json};

use super::{MAP, MAPS, NODE, NODES, POD, PODS, map, node, pod};
use crate::step::{METADATA, METADATA_LIST, Step, TABLE, delete, get, merge, post};

fn labelled(name: &str, labels: &Value) -> Step {
    post(
        MAPS,
        json!({ "metadata": { "name": name, "labels": labels } }),
    )
}

pub fn labels_select_by_equality_and_by_set() -> Vec<Step> {
    let mut steps = vec![
        labelled("a", &json!({ "app": "x", "tier": "1" })),
        labelled("b", &json!({ "app": "y" })),
        labelled("c", &json!({})),
    ];
    let cases: [(&str, &[&str]); 9] = [
        ("app=x", &["a"]),
        ("app==y", &["b"]),
        ("app!=x", &["b", "c"]),
        ("app", &["a", "b"]),
        ("!app", &["c"]),
        ("app in (x, y)", &["a", "b"]),
        ("app notin (x)", &["b", "c"]),
        ("app=x,tier=1", &["a"]),
        ("app in (x,y),!tier", &["b"]),
    ];
    for (selector, names) in cases {
        let mut step = get(format!("{MAPS}?labelSelector={selector}"));
        for (index, name) in names.iter().enumerate() {
            step = step.has(
                ["/items/0/metadata/name", "/items/1/metadata/name"][index],
                *name,
            );
        }
        steps.push(step.lacks(["/items/0", "/items/1", "/items/2"][names.len()]));
    }
    steps.push(get(format!("{MAPS}?labelSelector=app in x")).is(400));
    steps
}

pub fn fields_select_what_each_kind_offers() -> Vec<Step> {
    let mine = "labelSelector=case={ns}";
    vec![
        post(NODES, node()),
        get(format!(
            "{NODES}?{mine}&fieldSelector=spec.unschedulable=true"
        ))
        .lacks("/items/0"),
        merge(NODE, json!({ "spec": { "unschedulable": true } })),
        get(format!(
            "{NODES}?{mine}&fieldSelector=spec.unschedulable=true"
        ))
        .has("/items/0/metadata/name", "{ns}-node"),
        get(format!("{NODES}?fieldSelector=metadata.name={{ns}}-node"))
            .has("/items/0/metadata/name", "{ns}-node"),
        get(format!("{NODES}?fieldSelector=spec.podCIDR=x")).is(400),
        post(PODS, pod()),
        get(format!("{PODS}?fieldSelector=spec.nodeName=node"))
            .has("/items/0/metadata/name", "pod"),
        get(format!("{PODS}?fieldSelector=spec.nodeName!=node")).lacks("/items/0"),
        get(format!(
            "{PODS}?fieldSelector=status.phase=Pending,spec.nodeName=node"
        ))
        .has("/items/0/metadata/name", "pod"),
        get(format!("{PODS}?fieldSelector=status.phase!=Pending")).lacks("/items/0"),
        get(format!("{MAPS}?fieldSelector=data.k=v")).is(400),
        get(format!("{MAPS}?fieldSelector=metadata.namespace={{ns}}")).lacks("/items/0"),
        delete(NODE),
    ]
}

pub fn pages_continue_where_the_last_one_ended_and_show_one_state() -> Vec<Step> {
    vec![
        labelled("a", &json!({})),
        labelled("b", &json!({})),
        labelled("c", &json!({})),
        get(format!("{MAPS}?limit=1"))
            .has("/metadata/remainingItemCount", 2)
            .keep("token", "/metadata/continue"),
        delete(format!("{MAPS}/c")),
        get(format!("{MAPS}?limit=1&continue={{token}}"))
            .has("/items/0/metadata/name", "b")
            .has("/metadata/remainingItemCount", 1)
            .keep("token", "/metadata/continue"),
        get(format!("{MAPS}?limit=1&continue={{token}}"))
            .has("/items/0/metadata/name", "c")
            .lacks("/metadata/continue"),
        get(format!("{MAPS}?limit=1&labelSelector=!x")).lacks("/metadata/remainingItemCount"),
        get(format!("{MAPS}?limit=2")).lacks("/metadata/continue"),
        get(format!(
            "{MAPS}?limit=1&continue={{token}}&resourceVersion=5"
        ))
        .is(400),
        get(format!("{MAPS}?limit=1&continue=nonsense")).is(400),
    ]
}

pub fn versions_that_cannot_be_are_refused() -> Vec<Step> {
    vec![
        get(format!("{MAPS}?resourceVersion=nonsense")).is(400),
        get(format!("{MAPS}?resourceVersionMatch=Exact")).is(422),
        get(format!(
            "{MAPS}?resourceVersion=0&resourceVersionMatch=Exact"
        ))
        .is(422),
        get(format!(
            "{MAPS}?resourceVersion=1&resourceVersionMatch=Other"
        ))
        .is(422),
        get(format!("{MAPS}?resourceVersion=0")),
        get(format!("{MAP}?resourceVersion=nonsense")).is(500),
        get(format!("{MAPS}?watch=true&resourceVersion=nonsense")).is(500),
        get(format!("{MAPS}?watch=true&sendInitialEvents=true")).is(422),
    ]
}

pub fn a_watch_shows_what_comes_changes_and_goes_and_ends_in_time() -> Vec<Step> {
    vec![
        post(MAPS, map(&json!({ "k": "v" }))).keep("rv", "/metadata/resourceVersion"),
        get(format!(
            "{MAPS}?watch=true&resourceVersion={{rv}}&timeoutSeconds=2"
        ))
        .has("/0/type", "MODIFIED")
        .has("/1/type", "ADDED")
        .has("/2/type", "DELETED")
        .lacks("/3")
        .open(),
        merge(MAP, json!({ "data": { "k": "w" } })),
        labelled("other", &json!({})),
        delete(MAP),
    ]
}

pub fn a_selective_watch_turns_changes_into_arrivals_and_departures() -> Vec<Step> {
    vec![
        labelled("map", &json!({ "in": "no" })).keep("rv", "/metadata/resourceVersion"),
        get(format!(
            "{MAPS}?watch=true&labelSelector=in=yes&resourceVersion={{rv}}&timeoutSeconds=2"
        ))
        .has("/0/type", "ADDED")
        .has("/1/type", "MODIFIED")
        .has("/2/type", "DELETED")
        .lacks("/3")
        .open(),
        merge(MAP, json!({ "data": { "k": "unseen" } })),
        merge(MAP, json!({ "metadata": { "labels": { "in": "yes" } } })),
        merge(MAP, json!({ "data": { "k": "seen" } })),
        merge(MAP, json!({ "metadata": { "labels": { "in": "no" } } })),
        delete(MAP),
    ]
}

pub fn a_watch_without_a_version_begins_with_what_is_there() -> Vec<Step> {
    vec![
        labelled("a", &json!({})),
        labelled("b", &json!({})),
        get(format!("{MAPS}?watch=true&timeoutSeconds=1"))
            .has("/0/type", "ADDED")
            .has("/1/type", "ADDED")
            .lacks("/2"),
        get(format!(
            "{MAPS}?watch=true&timeoutSeconds=1&resourceVersion=0"
        ))
        .has("/1/type", "ADDED"),
        get(format!(
            "{MAPS}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name=b"
        ))
        .has("/0/object/metadata/name", "b"),
    ]
}

pub fn initial_events_end_in_a_marked_bookmark() -> Vec<Step> {
    vec![
        labelled("a", &json!({})),
        get(format!(
            "{MAPS}?watch=true&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
        ))
        .has("/0/type", "ADDED")
        .has("/1/type", "BOOKMARK")
        .has("/1/object/metadata/annotations/k8s.io~1initial-events-end", "true"),
    ]
}

pub fn a_watch_shows_metadata_or_rows_where_asked() -> Vec<Step> {
    vec![
        post(PODS, pod()),
        get(format!("{PODS}?watch=true&timeoutSeconds=1"))
            .accept(METADATA)
            .has("/0/object/kind", "PartialObjectMetadata")
            .lacks("/0/object/spec"),
        get(format!("{PODS}?watch=true&timeoutSeconds=1"))
            .accept(TABLE)
            .has("/0/object/kind", "Table"),
    ]
}

pub fn metadata_alone_is_shown_where_asked() -> Vec<Step> {
    vec![
        post(PODS, pod()),
        get(POD)
            .accept(METADATA)
            .has("/kind", "PartialObjectMetadata")
            .lacks("/spec"),
        get(PODS)
            .accept(METADATA_LIST)
            .has("/kind", "PartialObjectMetadataList")
            .lacks("/items/0/spec"),
        merge(POD, json!({ "metadata": { "labels": { "l": "v" } } }))
            .accept(METADATA)
            .lacks("/spec"),
        get(POD).accept("application/yaml;as=Nothing;v=v1").is(406),
    ]
}

pub fn tables_show_nodes_pods_and_others_as_kubectl_wants_them() -> Vec<Step> {
    let mine = "labelSelector=case={ns}";
    vec![
        post(NODES, node()),
        merge(
            format!("{NODE}/status"),
            json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }], "nodeInfo": { "kubeletVersion": "v1" } } }),
        ),
        merge(NODE, json!({ "spec": { "unschedulable": true } })),
        get(format!("{NODES}?{mine}&includeObject=None"))
            .accept(TABLE)
            .has("/rows/0/object", Value::Null),
        get(format!("{NODES}?{mine}"))
            .accept(TABLE)
            .has("/rows/0/object/kind", "PartialObjectMetadata"),
        get(format!("{NODES}?{mine}&includeObject=Object"))
            .accept(TABLE)
            .has("/rows/0/object/kind", "Node"),
        post(PODS, pod()),
        merge(
            format!("{POD}/status"),
            json!({ "status": { "phase": "Running", "podIP": "10.0.0.1", "podIPs": [{ "ip": "10.0.0.1" }] } }),
        ),
        get(PODS).accept(TABLE).has("/rows/0/cells/0", "pod"),
        post(MAPS, map(&json!({ "k": "v" }))),
        get(MAP).accept(TABLE).has("/rows/0/cells/1", 1),
        get("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases").accept(TABLE),
        get("/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets").accept(TABLE),
        get("/apis/apps/v1/namespaces/{ns}/daemonsets").accept(TABLE),
        delete(NODE),
    ]
}

//! The remediator's writes to Nodes.

use dogwatch_core::remediation::{NodeBackup, NodeTaint, RemediationSubject};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::world::{NODE, World, annotation};

fn at() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

pub fn subject(world: &World) -> RemediationSubject {
    RemediationSubject::Request(world.object_name("r"))
}

pub async fn a_node_is_marked_once_and_unmarked(world: &World) {
    let node = world.node("n", json!({})).await;
    let name = node.name.as_str();
    // Its controllers write to it: the version that was seen may be old.
    world.annotate(NODE, name, json!({ "x": "y" })).await;
    let client = world.client();
    let marked = client
        .mark_node_fencing(&node, &subject(world), at())
        .await
        .unwrap();
    assert!(marked.being_fenced);
    assert_eq!(marked, world.node_now(name).await);
    let mark = json!({ "by": format!("powerremediation/{}/r", world.namespace), "since": at() });
    let there = world.object(NODE, name).await;
    let there = annotation(&there, "dogwatch.dev/fencing").unwrap();
    assert_eq!(serde_json::from_str::<Value>(there).unwrap(), mark);
    // It is marked already for another subject.
    let other = RemediationSubject::Node(node.name.clone());
    let again = client
        .mark_node_fencing(&marked, &other, at())
        .await
        .unwrap();
    assert_eq!(again, marked);
    let unmarked = client.unmark_node_fencing(&marked).await.unwrap();
    assert!(!unmarked.being_fenced);
    assert_eq!(unmarked, world.node_now(name).await);
    let there = world.object(NODE, name).await;
    assert_eq!(annotation(&there, "x"), Some("y"));
}

fn taint(key: &str, value: &str) -> NodeTaint {
    NodeTaint {
        key: key.into(),
        value: value.into(),
        effect: "NoSchedule".into(),
    }
}

fn texts<const N: usize>(all: [(&str, &str); N]) -> std::collections::BTreeMap<String, String> {
    let all = all.into_iter();
    all.map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

pub async fn what_was_on_the_old_node_comes_back_and_what_is_on_the_new_one_wins(world: &World) {
    let metadata = json!({ "labels": { "zone": "new" }, "annotations": { "note": "new" } });
    let taints = json!([{ "key": "gpu", "value": "new", "effect": "NoSchedule" }]);
    let more = json!({ "metadata": metadata, "spec": { "taints": taints } });
    let node = world.node("n", more).await;
    let backup = NodeBackup {
        node: node.name.to_string(),
        uid: "old".into(),
        labels: texts([
            ("zone", "old"),
            ("team", "a"),
            ("dogwatch.dev/ignore", "true"),
        ]),
        annotations: texts([
            ("note", "old"),
            ("owner", "b"),
            ("host.metal3.io/external-remediation", ""),
        ]),
        taints: vec![
            taint("gpu", "old"),
            taint("team", "a"),
            taint("node.kubernetes.io/unreachable", ""),
        ],
        cordoned: true,
        ..NodeBackup::default()
    };
    let client = world.client();
    let restored = client.restore_node(&node, &backup).await.unwrap();
    assert!(restored.unschedulable);
    assert_eq!(restored, world.node_now(node.name.as_str()).await);
    let object = world.object(NODE, node.name.as_str()).await;
    let labels = object.metadata.labels.clone().unwrap();
    assert_eq!((&*labels["zone"], &*labels["team"]), ("new", "a"));
    assert!(!labels.contains_key("dogwatch.dev/ignore"));
    assert_eq!(annotation(&object, "note"), Some("new"));
    assert_eq!(annotation(&object, "owner"), Some("b"));
    assert_eq!(
        annotation(&object, "host.metal3.io/external-remediation"),
        None
    );
    let there: Vec<_> = object.data["spec"]["taints"].as_array().unwrap().clone();
    let there = there
        .iter()
        .filter(|it| it["key"] != "node.kubernetes.io/unschedulable");
    let there: Vec<_> = there
        .map(|it| {
            (
                it["key"].as_str().unwrap(),
                it["value"].as_str().unwrap_or_default(),
            )
        })
        .filter(|(key, _)| !key.starts_with("node.kubernetes.io/not-ready"))
        .collect();
    assert_eq!(there, [("gpu", "new"), ("team", "a")]);
    // A second call has nothing to do.
    let again = client.restore_node(&restored, &backup).await.unwrap();
    assert_eq!(again, restored);
}

const KEY: &str = "node.kubernetes.io/out-of-service";

pub async fn our_taint_is_lifted_and_no_other(world: &World) {
    let others = json!({ "key": "gpu", "value": "a", "effect": "NoSchedule" });
    let ours =
        json!({ "key": KEY, "value": "nodeshutdown", "effect": "NoExecute", "timeAdded": at() });
    let client = world.client();
    for (number, (field, value)) in [
        ("timeAdded", json!("2026-01-01T00:00:01Z")),
        ("value", json!("maintenance")),
        ("effect", json!("NoSchedule")),
    ]
    .into_iter()
    .enumerate()
    {
        let mut theirs = ours.clone();
        theirs[field] = value;
        let more = json!({ "spec": { "taints": [others, theirs] } });
        let node = world.node(&format!("n{number}"), more).await;
        let answer = client.untaint_node(&node, at()).await.unwrap();
        assert_eq!(answer, node, "{field}");
        assert!(answer.out_of_service);
    }
    let more = json!({ "spec": { "taints": [others, ours] } });
    let node = world.node("n", more).await;
    let answer = client.untaint_node(&node, at()).await.unwrap();
    assert!(!answer.out_of_service);
    let object = world.object(NODE, node.name.as_str()).await;
    let taints = object.data["spec"]["taints"].as_array().unwrap();
    assert!(taints.iter().any(|it| it["key"] == "gpu"), "{taints:?}");
    let alone = world
        .node("alone", json!({ "spec": { "taints": [ours] } }))
        .await;
    let answer = client.untaint_node(&alone, at()).await.unwrap();
    assert!(!answer.out_of_service);
}

pub async fn the_need_of_a_node_goes(world: &World) {
    let annotations = json!({ "host.metal3.io/external-remediation": "", "x": "y" });
    let node = world
        .node("n", json!({ "metadata": { "annotations": annotations } }))
        .await;
    assert!(node.needs_remediation);
    let answer = world.client().remove_node_need(&node).await.unwrap();
    assert!(!answer.needs_remediation);
    let object = world.object(NODE, node.name.as_str()).await;
    assert_eq!(annotation(&object, "x"), Some("y"));
}

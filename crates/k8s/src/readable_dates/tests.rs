use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use serde_json::{Value, json};

use super::*;

/// The dates that Go accepts or writes and jiff cannot hold.
const UNREADABLE: [&str; 4] = [
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59.000000Z",
    "10000-01-01T11:59:59Z",
    "-001-12-31T10:00:00Z",
];

fn held_lease(name: &str, acquired: &str) -> Value {
    json!({
        "metadata": { "name": name, "resourceVersion": "7" },
        "spec": { "holderIdentity": "node/n1", "acquireTime": acquired },
    })
}

#[test]
fn a_held_lease_with_a_date_that_nobody_can_read_is_still_held() {
    for date in UNREADABLE {
        let lease: Lease = decode_object(&held_lease("a", date).to_string()).unwrap();
        let spec = lease.spec.unwrap();
        assert_eq!(spec.holder_identity.as_deref(), Some("node/n1"), "{date}");
        assert!(spec.acquire_time.is_some(), "what is left over is cleared");
    }
}

#[test]
fn one_date_that_nobody_can_read_hides_no_other_object() {
    let good = "2026-01-05T00:00:00.000000Z";
    let items = [
        held_lease("a", good),
        held_lease("b", UNREADABLE[1]),
        held_lease("c", good),
    ];
    let page = json!({ "kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1",
        "metadata": { "resourceVersion": "9", "continue": "more" }, "items": items });
    let list: ObjectList<Lease> = decode_list(&page.to_string()).unwrap();
    let names = list
        .items
        .iter()
        .map(|it| it.metadata.name.as_deref().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(list.metadata.resource_version.as_deref(), Some("9"));
    assert_eq!(list.metadata.continue_.as_deref(), Some("more"));
    let acquired = |at: usize| {
        let spec = list.items[at].spec.as_ref().unwrap();
        spec.acquire_time.as_ref().unwrap().0
    };
    assert_eq!(acquired(0), good.parse().unwrap());
    assert_eq!(acquired(1), "9999-12-30T22:00:00Z".parse().unwrap());
}

#[test]
fn a_node_is_read_whose_condition_or_managed_field_has_such_a_date() {
    let node = json!({
        "metadata": { "name": "n1", "resourceVersion": "7",
            "managedFields": [{ "manager": "m", "operation": "Update", "time": UNREADABLE[0] }] },
        "status": { "conditions": [{ "type": "Ready", "status": "False",
            "lastTransitionTime": UNREADABLE[0], "lastHeartbeatTime": UNREADABLE[3] }] },
    });
    let list = json!({ "metadata": {}, "items": [node] }).to_string();
    let nodes: ObjectList<Node> = decode_list(&list).unwrap();
    let status = nodes.items[0].status.as_ref().unwrap();
    assert_eq!(status.conditions.as_ref().unwrap()[0].status, "False");
    let metadata: ObjectList<PartialObjectMeta<Node>> = decode_list(&list).unwrap();
    assert_eq!(metadata.items[0].metadata.name.as_deref(), Some("n1"));
}

#[test]
fn texts_of_people_are_no_dates() {
    let text = UNREADABLE[0];
    let object = json!({
        "metadata": { "name": "a", "creationTimestamp": text, "annotations": { "k": text } },
        "data": { "k": text },
    });
    let read: ConfigMap = decode_object(&object.to_string()).unwrap();
    assert_eq!(read.metadata.annotations.unwrap()["k"], text);
    assert_eq!(read.data.unwrap()["k"], text);
}

#[test]
fn what_is_no_such_object_stays_an_error() {
    let wrong = r#"{"metadata":{"name":7}}"#;
    assert!(decode_object::<Lease>(wrong).is_err());
    let list = format!(r#"{{"metadata":{{}},"items":[{wrong}]}}"#);
    assert!(decode_list::<Lease>(&list).is_err());
    assert!(
        decode_list::<Lease>(r#"{"metadata":{},"items":null}"#)
            .unwrap()
            .items
            .is_empty()
    );
    assert!(decode_object::<Lease>("<html>").is_err());
}

//! The labels and annotations of a Lease.

use serde_json::{Value, json};

use super::{Before, LABEL, SLOT, create, each, metadata};
use crate::admission::Who::{First, Person, Second};

#[tokio::test]
async fn whom_to_call_is_written_by_the_one_who_leaves() {
    let called = json!({ "annotations": { "dogwatch.dev/next": "node/first" } });
    let given_back = json!({ "annotations": { "dogwatch.dev/given-back": "9" } });
    each(vec![
        (
            "a call on a free one",
            Before::Free,
            First,
            metadata(&called),
            Err("only the one who leaves"),
        ),
        (
            "a call while it holds",
            Before::Held,
            First,
            metadata(&called),
            Err("only the one who leaves"),
        ),
        (
            "a back-off for everybody",
            Before::Free,
            First,
            metadata(&given_back),
            Err("only the one who leaves"),
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_lease_keeps_the_label_of_the_group_in_its_name() {
    let group = |group: Value| metadata(&json!({ "labels": { "dogwatch.dev/group": group } }));
    each(vec![
        (
            "the label mended",
            Before::Unlabelled,
            Second,
            group(json!("default")),
            Ok(()),
        ),
        (
            "the label made another",
            Before::Unlabelled,
            Second,
            group(json!("defaul")),
            Err(LABEL),
        ),
        (
            "the label gone",
            Before::Held,
            Second,
            group(Value::Null),
            Err(LABEL),
        ),
        (
            "the label gone",
            Before::Held,
            Person,
            group(Value::Null),
            Err(LABEL),
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_lease_is_made_with_the_label_of_the_group_in_its_name() {
    each(vec![
        (
            "made without a label",
            Before::Missing,
            First,
            create(SLOT, None),
            Err(LABEL),
        ),
        (
            "made for another group",
            Before::Missing,
            First,
            create("dogwatch-default-eu-0", Some("default")),
            Err(LABEL),
        ),
        (
            "made without a number",
            Before::Missing,
            First,
            create("dogwatch-default-", Some("default")),
            Err("dogwatch-default-"),
        ),
        (
            "made free",
            Before::Missing,
            First,
            create(SLOT, Some("default")),
            Ok(()),
        ),
        (
            "made free",
            Before::Missing,
            First,
            create("dogwatch-control-plane-12", Some("control-plane")),
            Ok(()),
        ),
    ])
    .await;
}

#[tokio::test]
async fn nothing_is_put_on_a_lease_that_would_delete_it_or_keep_it() {
    let owner = json!({ "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b" }] });
    each(vec![
        (
            "an owner, whose end would delete it",
            Before::Held,
            Second,
            metadata(&owner),
            Err("no owner and no finalizer"),
        ),
        (
            "a finalizer",
            Before::Free,
            Second,
            metadata(&json!({ "finalizers": ["a.b/c"] })),
            Err("no owner and no finalizer"),
        ),
    ])
    .await;
}

//! Taking a lock and leaving it.

use dogwatch_core::lock::HolderId;
use dogwatch_core::name::NodeName;
use serde_json::json;

use super::{Before, NOT_ITS, apply, bid, each, free, merge};
use crate::admission::Who::{First, Person, Second, Unbound};
use crate::admission::{Stage, compare, hand};
use crate::support::plane::ACCOUNT;
use crate::support::token;

#[tokio::test]
async fn a_free_lock_is_taken_with_ones_own_name_as_holder_and_as_manager() {
    each(vec![
        ("a bid", Before::Free, First, bid("node/first"), Ok(())),
        (
            "a bid by another manager",
            Before::Free,
            First,
            apply("node/first", "fieldManager=kubectl"),
            Err("field manager equal to the holder"),
        ),
        (
            "a bid by merge patch",
            Before::Free,
            First,
            merge(json!({ "spec": { "holderIdentity": "node/first" } })),
            Ok(()),
        ),
    ])
    .await;
}

#[tokio::test]
async fn nobody_takes_a_lock_in_the_name_of_another() {
    each(vec![
        (
            "a bid for another",
            Before::Free,
            Second,
            bid("node/first"),
            Err("only node/first itself"),
        ),
        (
            "a bid for a name that only begins so",
            Before::Free,
            First,
            bid("node/first.example"),
            Err("only node/first.example itself"),
        ),
        (
            "a bid for the lock API",
            Before::Free,
            First,
            bid("api/first"),
            Err("only api/first itself"),
        ),
        (
            "a bid without a claim",
            Before::Free,
            Unbound,
            bid("node/first"),
            Err("which names no node"),
        ),
        (
            "a bid for nobody",
            Before::Free,
            Unbound,
            bid("node/"),
            Err("which names no node"),
        ),
        (
            "a person's bid",
            Before::Free,
            Person,
            bid("node/first"),
            Err("only node/first itself"),
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_lock_is_left_only_by_its_holder() {
    let called = json!({ "dogwatch.dev/next": "node/second", "dogwatch.dev/given-back": "1" });
    each(vec![
        (
            "its next run",
            Before::Held,
            First,
            merge(json!({ "metadata": { "annotations": { "dogwatch.dev/holder": "new" } } })),
            Ok(()),
        ),
        ("a release", Before::Held, First, free(&called), Ok(())),
        (
            "a release by another",
            Before::Held,
            Second,
            free(&json!({})),
            Err(NOT_ITS),
        ),
        (
            "a release without a claim",
            Before::Held,
            Unbound,
            free(&json!({})),
            Err(NOT_ITS),
        ),
        (
            "a person's release",
            Before::Held,
            Person,
            free(&json!({})),
            Err(NOT_ITS),
        ),
    ])
    .await;
}

/// Documented in docs/security.md: an expression cannot compute the hash.
#[tokio::test]
async fn a_node_whose_name_the_lock_hashes_cannot_bid_here() {
    let stage = Stage::set().await;
    let api = &stage.cluster.api;
    let name = format!("{}.{}.example", "a".repeat(60), "b".repeat(60));
    let node = NodeName::new(name.clone()).expect("a DNS name");
    let holder = HolderId::for_node(&node);
    assert!(holder.is_hashed(), "{holder}");
    api.create("/api/v1/nodes", &json!({ "metadata": { "name": name } }))
        .await;
    let token = token::on_node(api, ACCOUNT, &name).await;
    let hand = hand(&stage.cluster, &token).await;
    Before::Free.stand(&stage).await;
    let call = bid(holder.as_str());
    let answer = hand
        .attempt(call.verb, &call.path, call.kind, &call.body)
        .await;
    compare("a bid", First, answer, Err("only node/sha256-"));
}

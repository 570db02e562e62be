//! Writes of the lock API that are answered with 409 although nobody else writes: a webhook, or a
//! person who has taken over a field. They are repeated with pauses, and the reason is given.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dogwatch_controller::lock::engine::LockEngine;
use dogwatch_controller::lock::service::{LockAnswer, UnlockAnswer};
use dogwatch_core::reboot::RebootConfig;
use dogwatch_kubesim::api::{ApiServer, ApiVerb, FaultEffect, RequestInfo};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::api_lock_cases::world::{World, host, is_held, leave, lock, try_lock, unlock};
use crate::support::embedded::server;

/// The user of the replica.
const REPLICA: &str = "one";
/// At most this many calls of one kind in a minute: the pauses grow to 10 s.
const CALLS_A_MINUTE: u32 = 30;

/// Counts the replica's patches of these objects; refuses them with 409 if `refuses`.
fn count_patches(server: &ApiServer, resource: &'static str, refuses: bool) -> Arc<AtomicU32> {
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    server.set_faults(move |request: &RequestInfo| {
        let is_patch = request.user == REPLICA
            && request.verb == Some(ApiVerb::Patch)
            && request.resource == resource
            && !request.name.starts_with("api.");
        if !is_patch {
            return Vec::new();
        }
        counted.fetch_add(1, Ordering::Relaxed);
        refuses
            .then_some(FaultEffect::Refuse(409))
            .into_iter()
            .collect()
    });
    count
}

async fn calls_in_a_minute(count: &AtomicU32) -> u32 {
    let before = count.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_mins(1)).await;
    count.load(Ordering::Relaxed) - before
}

async fn one_replica() -> (ApiServer, World, LockEngine) {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    let client = server.client_for_user(REPLICA);
    let replica = world.replica_as(client, RebootConfig::default());
    (server, world, replica)
}

/// A lock whose drain a budget blocks.
async fn begin_blocked_drain(world: &World, replica: &LockEngine) -> JoinHandle<LockAnswer> {
    world.base.budget("web", "web", 0).await;
    let labels = json!({"metadata": {"labels": {"app": "web"}}});
    world.base.pod("web", labels).await;
    let call = tokio::spawn(lock(replica, &host(&world.base.node)));
    world.until_closed(true).await;
    call
}

#[tokio::test(start_paused = true)]
async fn a_cordon_that_is_refused_with_409_is_repeated_with_pauses_and_the_reason_is_shown() {
    let (server, world, one) = one_replica().await;
    let count = count_patches(&server, "nodes", true);
    let call = tokio::spawn(lock(&one, &host(&world.base.node)));
    let calls = calls_in_a_minute(&count).await;
    assert!((2..=CALLS_A_MINUTE).contains(&calls), "{calls} cordons");
    let own = world.replicas().await.remove(0);
    let shown =
        |text: &String| text.contains("the node cannot be cordoned: ") && text.contains("409");
    assert!(own.annotations().values().any(shown), "{own:?}");
    server.set_faults(|_| Vec::new());
    assert!(is_held(&call.await.unwrap()));
    assert!(world.closed().await.0);
    leave(&one, &host(&world.base.node)).await;
}

#[tokio::test(start_paused = true)]
async fn who_does_not_wait_is_told_why_the_node_cannot_be_cordoned_and_nothing_stays() {
    let (server, world, one) = one_replica().await;
    let count = count_patches(&server, "nodes", true);
    let answer = try_lock(&one, &host(&world.base.node)).await;
    let LockAnswer::Unavailable { why } = &answer else {
        panic!("{answer:?}");
    };
    assert!(why.contains("409"), "{why}");
    world.until_free().await;
    assert_eq!(count.load(Ordering::Relaxed), 1);
    assert_eq!(world.closed().await, (false, None));
}

#[tokio::test(start_paused = true)]
async fn what_a_client_left_is_cleaned_up_with_pauses_while_409_refuses_it() {
    let (server, world, one) = one_replica().await;
    let call = begin_blocked_drain(&world, &one).await;
    let count = count_patches(&server, "nodes", true);
    call.abort();
    let calls = calls_in_a_minute(&count).await;
    assert!((2..=CALLS_A_MINUTE).contains(&calls), "{calls} patches");
    server.set_faults(|_| Vec::new());
    world.until_free().await;
    assert_eq!(world.closed().await, (false, None));
}

#[tokio::test(start_paused = true)]
async fn an_unlock_that_409_refuses_is_answered_after_half_a_minute_and_goes_on() {
    let (server, world, one) = one_replica().await;
    assert!(is_held(&lock(&one, &host(&world.base.node)).await));
    let count = count_patches(&server, "nodes", true);
    let answer = unlock(&one, &host(&world.base.node)).await;
    let UnlockAnswer::Unavailable { why } = &answer else {
        panic!("{answer:?}");
    };
    assert!(why.contains("409"), "{why}");
    let calls = calls_in_a_minute(&count).await;
    assert!((2..=CALLS_A_MINUTE).contains(&calls), "{calls} patches");
    server.set_faults(|_| Vec::new());
    world.until_free().await;
    assert_eq!(world.closed().await, (false, None));
}

/// Two requests of one host are on its Lease, and a person has edited the record there: the field
/// belongs to that person now.
#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_leave_an_edited_lease_tries_with_pauses() {
    let (server, world, one) = one_replica().await;
    let first = begin_blocked_drain(&world, &one).await;
    let second = tokio::spawn(lock(&one, &host(&world.base.node)));
    let both = |held: &[(String, Vec<String>)]| held.len() == 1 && held[0].1.len() == 2;
    world.until_held("the second writes its id", both).await;
    edit_holder_record(&world).await;
    let count = count_patches(&server, "leases", false);
    first.abort();
    let calls = calls_in_a_minute(&count).await;
    assert!((2..=CALLS_A_MINUTE).contains(&calls), "{calls} patches");
    second.abort();
}

async fn edit_holder_record(world: &World) {
    let key = "dogwatch.dev/holder";
    let held = world.leases().await.into_iter();
    let held = held.filter(|lease| lease.holder.is_some());
    let name = held.map(|lease| lease.name).next().unwrap();
    let leases: Api<Lease> = Api::namespaced(world.base.client.clone(), &world.base.namespace);
    let text = leases.get(&name).await.unwrap().annotations()[key].clone();
    let patch = json!({ "metadata": { "annotations": { key: format!("{text} ") } } });
    let params = PatchParams::default();
    leases
        .patch(&name, &params, &Patch::Merge(patch))
        .await
        .unwrap();
}

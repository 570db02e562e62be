//! The lock API's cases on the embedded API server with a paused clock, and the cases that need its
//! faults.

use std::time::Duration;

use dogwatch_kubesim::api::{ApiServer, ApiVerb, FaultEffect, RequestInfo};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use dogwatch_controller::lock::service::UnlockAnswer;
use dogwatch_core::lock::MAX_NEXT_WAITERS;

use crate::api_lock_cases;
use crate::api_lock_cases::world::{World, all_told, have, host, is_held, leave, lock, unlock};
use crate::api_lock_rounds::{Rounds, run};
use crate::support::embedded::server;

/// Delays every request, so that a caller can go away before the answer.
fn slow(server: &ApiServer, millis: u64) {
    server.set_faults(move |request| {
        let watch = request.verb == Some(ApiVerb::Watch);
        let effect = FaultEffect::DelayAnswer(Duration::from_millis(millis));
        (!watch).then_some(effect).into_iter().collect()
    });
}

macro_rules! on_embedded {
    ($($name:ident)*) => { $(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            let server = server();
            let world = World::on(server.client_for_user("test")).await;
            slow(&server, 5);
            api_lock_cases::$name(&world).await;
        }
    )* };
}

api_lock_cases::every_api_case!(on_embedded);

fn writes(request: &RequestInfo) -> bool {
    matches!(request.verb, Some(ApiVerb::Patch))
        && (request.resource == "leases" || request.resource == "nodes")
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_at_any_moment_of_its_node_s_drain_leaves_nothing() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    let (one, two) = (
        world.replica_as(
            server.client_for_user("one"),
            dogwatch_core::reboot::RebootConfig::default(),
        ),
        world.replica(),
    );
    let client = host(&world.base.node);
    slow(&server, 7);
    for millis in (0..240).step_by(4) {
        let call = tokio::time::timeout(Duration::from_millis(millis), lock(&one, &client));
        if call.await.is_ok() {
            leave(&two, &client).await;
        }
        world.until_free().await;
        assert_eq!(world.closed().await, (false, None), "{millis}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_keeps_what_it_got_whenever_the_first_call_goes_away() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    let flags = dogwatch_core::reboot::RebootConfig::default;
    let (one, two) = (
        world.replica_as(server.client_for_user("one"), flags()),
        world.replica_as(server.client_for_user("two"), flags()),
    );
    let client = host(&world.base.node);
    slow(&server, 7);
    for millis in (0..300).step_by(5) {
        server.clear_audit_log();
        let call = tokio::time::timeout(Duration::from_millis(millis), lock(&one, &client));
        let (_, retry) = tokio::join!(call, lock(&two, &client));
        assert!(is_held(&retry), "{millis}: {retry:?}");
        let told = |held: &[(String, Vec<String>)]| held.len() == 1 && all_told(&held[0].1);
        world.until_held("an id is left", told).await;
        let closed = world.closed().await;
        assert!(
            closed.0,
            "{millis}: its node is open: {closed:?}\n{:#?}",
            server.audit_log()
        );
        leave(&two, &client).await;
        assert_eq!(world.closed().await, (false, None), "{millis}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_lost_and_writes_that_come_twice_leave_nothing_behind() {
    for effect in [
        FaultEffect::LoseAnswer,
        FaultEffect::LoseRequest,
        FaultEffect::Duplicate(Duration::from_secs(2)),
        FaultEffect::DelayRequest(Duration::from_secs(31)),
    ] {
        for nth in 0..8_u32 {
            let server = server();
            let world = World::on(server.client_for_user("test")).await;
            let one = world.replica_as(
                server.client_for_user("one"),
                dogwatch_core::reboot::RebootConfig::default(),
            );
            let client = host(&world.base.node);
            let (count, effect_) = (std::sync::atomic::AtomicU32::new(0), effect.clone());
            server.set_faults(move |request| {
                let hit = writes(request)
                    && !request.name.starts_with("api.")
                    && count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == nth;
                hit.then(|| effect_.clone()).into_iter().collect()
            });
            let answer = lock(&one, &client).await;
            if is_held(&answer) {
                assert!(world.closed().await.0, "{effect:?} {nth}");
                let held = world.held().await;
                assert!(
                    held.len() == 1 && all_told(&held[0].1),
                    "{effect:?} {nth}: {held:?}"
                );
            }
            // The client retries until the answer says that the lock is free.
            while !matches!(unlock(&one, &client).await, UnlockAnswer::Free { .. }) {}
            world.until_free().await;
            tokio::time::sleep(Duration::from_mins(2)).await;
            assert_eq!(
                world.held().await,
                [],
                "{effect:?} {nth}: something landed late"
            );
            assert_eq!(world.closed().await, (false, None), "{effect:?} {nth}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_cut_off_replica_left_does_not_hinder_the_retry_elsewhere() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    let one = world.replica_as(
        server.client_for_user("one"),
        dogwatch_core::reboot::RebootConfig::default(),
    );
    let two = world.replica_as(
        server.client_for_user("two"),
        dogwatch_core::reboot::RebootConfig::default(),
    );
    slow(&server, 7);
    let client = host(&world.base.node);
    let call = tokio::spawn(lock(&one, &client));
    world.until_closed(true).await;
    server.set_partitioned("one", true);
    call.abort();
    have(&two, &client).await;
    server.set_partitioned("one", false);
    let told = |held: &[(String, Vec<String>)]| held.len() == 1 && all_told(&held[0].1);
    world
        .until_held("it comes back and takes only its own id", told)
        .await;
    assert!(world.closed().await.0);
    leave(&two, &client).await;
    assert_eq!(world.closed().await, (false, None));
}

#[tokio::test(start_paused = true)]
async fn no_lock_is_lost_or_given_twice_in_a_thousand_rounds_with_random_deaths() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    slow(&server, 3);
    let result = run(
        &world,
        &Rounds {
            rounds: 1000,
            clients: 8,
            replicas: 2,
            seed: 7,
            longest_life: 400,
        },
    )
    .await;
    assert_eq!(result.rounds, 1000, "{result:?}");
    assert!(result.died > 100, "{result:?}");
}

/// On a busy machine the 50 ms that a replica has on its turn may be too short, so this test uses a
/// paused clock.
#[tokio::test(start_paused = true)]
async fn waiters_are_served_in_the_order_they_came_at_whichever_replica() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    let served = api_lock_cases::order_of_six_at_two_replicas(&world).await;
    let early = served
        .iter()
        .enumerate()
        .map(|(place, number)| number.saturating_sub(place));
    assert!(early.max() <= Some(2), "{served:?}");
}

/// A replica writes its own Lease once a second; meanwhile the waiters that it names are served. A
/// release that called them again would call nobody.
#[tokio::test(start_paused = true)]
async fn the_next_one_at_a_replica_is_called_whomever_its_own_lease_still_names() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    slow(&server, 5);
    let replica = world.replica();
    let first = host("first");
    have(&replica, &first).await;
    let next = tokio::spawn(lock(&replica, &host("next")));
    // The caller waits, and the replica's Lease says so.
    tokio::time::sleep(Duration::from_secs(3)).await;
    name_others(&world).await;
    leave(&replica, &first).await;
    let free = tokio::time::Instant::now();
    assert!(is_held(&next.await.unwrap()));
    let free = free.elapsed();
    assert!(free < Duration::from_millis(500), "not called: {free:?}");
}

/// Writes as many other waiters as a release calls, all of whom came before.
async fn name_others(world: &World) {
    let served = (0..MAX_NEXT_WAITERS).map(
        |number| json!({ "holder": format!("api/served{number}"), "since": "2020-01-01T00:00:00Z" }),
    );
    let waiting = json!({ "default": served.collect::<Vec<_>>() }).to_string();
    let patch = json!({ "metadata": { "annotations": { "dogwatch.dev/waiting": waiting } } });
    let own = world.replicas().await.remove(0);
    let leases: Api<Lease> = Api::namespaced(world.base.client.clone(), &world.base.namespace);
    leases
        .patch(
            &own.name_any(),
            &PatchParams::default(),
            &Patch::Merge(patch),
        )
        .await
        .unwrap();
}

/// §4.4: on a node under remediation no reboot begins and nothing is evicted.
#[tokio::test(start_paused = true)]
async fn on_a_node_that_is_being_fenced_nothing_begins_nothing_is_evicted_and_a_drain_goes_on_after()
 {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    let fencing =
        |text: Option<&str>| json!({"metadata": {"annotations": {"dogwatch.dev/fencing": text}}});
    let one = world.replica();
    let client = host(&world.base.node);

    world.patch_node(fencing(Some("{}"))).await;
    let waiting = tokio::spawn(lock(&one, &client));
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert_eq!(world.closed().await, (false, None));
    assert_eq!(world.held().await, []);
    world.base.budget("web", "web", 0).await;
    let labels = json!({"metadata": {"labels": {"app": "web"}}});
    world.base.pod("web", labels).await;
    world.patch_node(fencing(None)).await;
    world.until_closed(true).await;

    world.patch_node(fencing(Some("{}"))).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.base.remove_budget("web").await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(world.base.pods().await, ["web"]);
    assert!(world.closed().await.0);
    assert_eq!(world.held().await.len(), 1);
    assert!(!waiting.is_finished());

    world.patch_node(fencing(None)).await;
    assert!(is_held(&waiting.await.unwrap()));
    assert_eq!(world.base.pods().await, [] as [&str; 0]);
    leave(&one, &client).await;
    assert_eq!(world.closed().await, (false, None));
}

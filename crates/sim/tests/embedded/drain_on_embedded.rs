//! The drain's cases on the embedded API server with a paused clock, and the cases that need its
//! faults.

use std::time::Duration;

use dogwatch_core::drain::{DrainConfig, DrainProgress};
use dogwatch_k8s::drain::DrainHandle;
use dogwatch_kubesim::api::{ApiServer, ApiVerb, Denial, EvictionPolicy, FaultEffect, RequestInfo};
use serde_json::json;
use tokio::time::Instant;

use crate::drain_cases;
use crate::drain_cases::fleet;
use crate::drain_cases::world::World;
use crate::support::embedded::{fail, server};

/// The drain's user name, so that faults hit no other client.
const DRAIN: &str = "drain";

macro_rules! on_embedded {
    ($($name:ident)*) => { $(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            drain_cases::$name(&World::on(server().client_for_user("test")).await).await;
        }
    )* };
}

drain_cases::every_case!(on_embedded);

#[tokio::test(start_paused = true)]
async fn an_eviction_that_a_policy_refuses_is_waited_for_and_the_policy_named() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    server.lock_store().refuse_evictions(EvictionPolicy {
        name: "keep-web".into(),
        pods: "web".into(),
        message: "not before noon".into(),
    });
    let admit = async || server.lock_store().admit_evictions("keep-web");
    drain_cases::an_eviction_that_a_policy_refuses_is_waited_for_and_the_policy_named(
        &world,
        "keep-web",
        "not before noon",
        admit,
    )
    .await;
}

fn is_eviction(request: &RequestInfo) -> bool {
    request.subresource == "eviction"
}

#[tokio::test(start_paused = true)]
async fn a_deletion_seen_before_the_eviction_call_returns_ends_the_wait() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    world.pod("web", json!({})).await;
    let late = Duration::from_secs(20);
    fail(&server, FaultEffect::DelayAnswer(late), is_eviction);
    let begun = Instant::now();
    let drain = world.drain_as(server.client_for_user(DRAIN), DrainConfig::default());
    world.until_drained(&drain).await;
    assert!(begun.elapsed() < late, "{:?}", begun.elapsed());
    // The late answer changes nothing.
    world.pod("late", json!({})).await;
    let progress = world.until(&drain, |progress| progress.gone == 2).await;
    assert!(progress.is_drained() && !progress.is_incomplete());
}

#[tokio::test(start_paused = true)]
async fn an_eviction_that_arrives_after_its_pod_was_replaced_harms_nobody() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    world.pod("web", json!({})).await;
    let late = FaultEffect::DelayRequest(Duration::from_secs(10));
    fail(&server, late, is_eviction);
    let drain = world.drain_as(server.client_for_user(DRAIN), DrainConfig::default());
    world
        .until(&drain, |progress| progress.waiting.len() == 1)
        .await;
    world.delete("web").await;
    world.until_drained(&drain).await;
    // A pod of the same name on another node.
    world
        .pod("web", json!({"spec": {"nodeName": "elsewhere"}}))
        .await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(!world.is_deleting("web").await);
    let evictions = evictions(&server);
    assert_eq!(evictions, [409], "it did arrive");
}

#[tokio::test(start_paused = true)]
async fn after_a_watch_that_ended_in_410_what_the_new_list_lacks_is_gone() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    let drain = blocked_drain(&server, &world).await;

    server.set_partitioned(DRAIN, true);
    world
        .until(&drain, |progress| !progress.observation_errors.is_empty())
        .await;
    world.delete("web").await;
    while !world.pods().await.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    server.compact_history();
    server.set_partitioned(DRAIN, false);
    let progress = world.until_drained(&drain).await;
    assert_eq!(progress.gone, 1);
    let lists = server
        .audit_log()
        .iter()
        .filter(|entry| {
            entry.user == DRAIN && entry.verb == Some(ApiVerb::List) && entry.resource == "pods"
        })
        .count();
    assert_eq!(
        lists, 3,
        "the first list, one object for the store's version, and the list after 410"
    );
}

#[tokio::test(start_paused = true)]
async fn a_drain_outlives_an_api_server_that_is_away_and_says_so_meanwhile() {
    let server = server();
    let world =
        World::with_pods_that_end_after(server.client_for_user("test"), Duration::from_secs(5))
            .await;
    for number in 0..5 {
        world.pod(&format!("web-{number}"), json!({})).await;
    }
    server.set_partitioned(DRAIN, true);
    let drain = world.drain_as(server.client_for_user(DRAIN), DrainConfig::default());
    let progress = world
        .until(&drain, |progress| !progress.observation_errors.is_empty())
        .await;
    assert!(!progress.is_drained());
    server.set_partitioned(DRAIN, false);
    world.until(&drain, |progress| progress.listed).await;
    server.set_partitioned(DRAIN, true);
    tokio::time::sleep(Duration::from_mins(10)).await;
    server.set_partitioned(DRAIN, false);
    let progress = world.until_drained(&drain).await;
    assert_eq!((progress.gone, world.pods().await.len()), (5, 0));
}

#[tokio::test(start_paused = true)]
async fn lost_requests_and_lost_answers_only_delay_a_drain() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    for number in 0..20 {
        world.pod(&format!("web-{number:02}"), json!({})).await;
    }
    server.set_faults(|request| match (is_eviction(request), request.nth % 3) {
        (true, 0) => vec![FaultEffect::LoseRequest],
        (true, 1) => vec![FaultEffect::LoseAnswer],
        _ => Vec::new(),
    });
    let drain = world.drain_as(server.client_for_user(DRAIN), DrainConfig::default());
    let progress = world.until_drained(&drain).await;
    assert_eq!(progress.gone, 20);
    assert!(!progress.is_incomplete());
}

#[tokio::test(start_paused = true)]
async fn an_eviction_refused_for_good_makes_the_drain_incomplete_with_the_answer_quoted() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    world.pod("web", json!({})).await;
    server.set_denials(vec![Denial {
        user: Some(DRAIN.to_owned()),
        resource: Some("pods/eviction".to_owned()),
        ..Denial::default()
    }]);
    let drain = world.drain_as(server.client_for_user(DRAIN), DrainConfig::default());
    let progress = world.until(&drain, DrainProgress::is_incomplete).await;
    assert!(
        progress.dropped[0].answer.starts_with("HTTP 403: "),
        "{:?}",
        progress.dropped
    );
    assert_eq!(evictions(&server), [403]);
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_may_not_look_a_daemonset_up_says_so_and_is_not_drained() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    fleet::owners(&world).await;
    fleet::create(&world, fleet::Kind::OfDaemonSet).await;
    let denial = |resource: &str| Denial {
        user: Some(DRAIN.to_owned()),
        resource: Some(resource.to_owned()),
        ..Denial::default()
    };
    server.set_denials(vec![denial("daemonsets")]);
    let drain = world.drain_as(server.client_for_user(DRAIN), DrainConfig::default());
    let progress = world
        .until(&drain, |progress| !progress.lookups_failed.is_empty())
        .await;
    assert!(!progress.is_drained());
    assert!(progress.lookups_failed[0].1.contains("403"), "{progress:?}");
    // An admin grants the right.
    server.set_denials(Vec::new());
    world.until_drained(&drain).await;
}

#[tokio::test(start_paused = true)]
async fn a_blocked_pod_is_tried_every_five_seconds_and_not_more_often() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    let drain = blocked_drain(&server, &world).await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(
        evictions(&server),
        [429; 13],
        "at once, then at 5, 10 … 60 s"
    );
    assert_eq!(drain.progress.borrow().blocked.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_drain_stops() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    let drain = blocked_drain(&server, &world).await;
    drop(drain);
    server.clear_audit_log();
    world.allow("web-budget", 1).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    let asked = server
        .audit_log()
        .iter()
        .filter(|entry| entry.user == DRAIN)
        .count();
    assert_eq!((asked, world.pods().await), (0, vec!["web".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn under_a_paused_clock_the_same_world_gives_the_same_calls() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let server = server();
        let world = World::on(server.client_for_user("test")).await;
        for number in 0..10 {
            world
                .pod(
                    &format!("web-{number}"),
                    json!({"metadata": {"labels": {"app": "web"}}}),
                )
                .await;
        }
        world.budget("web-budget", "web", 3).await;
        let drain = world.drain_as(
            server.client_for_user(DRAIN),
            DrainConfig {
                in_flight: 4,
                ..DrainConfig::default()
            },
        );
        world.until(&drain, |progress| progress.gone == 3).await;
        world.allow("web-budget", 7).await;
        world.until_drained(&drain).await;
        let mine = server
            .audit_log()
            .into_iter()
            .filter(|entry| entry.user == DRAIN);
        runs.push(
            mine.map(|entry| (entry.time, entry.name, entry.code))
                .collect::<Vec<_>>(),
        );
    }
    assert!(runs[0].len() > 10, "{runs:?}");
    assert_eq!(runs[0], runs[1]);
}

/// A drain of one pod that its budget blocks.
async fn blocked_drain(server: &ApiServer, world: &World) -> DrainHandle {
    world
        .pod("web", json!({"metadata": {"labels": {"app": "web"}}}))
        .await;
    world.budget("web-budget", "web", 0).await;
    let drain = world.drain_as(server.client_for_user(DRAIN), DrainConfig::default());
    world
        .until(&drain, |progress| !progress.blocked.is_empty())
        .await;
    drain
}

/// The status codes of the drain's evictions.
fn evictions(server: &ApiServer) -> Vec<u16> {
    let log = server.audit_log();
    let mine = log
        .iter()
        .filter(|entry| entry.user == DRAIN && entry.subresource == "eviction");
    mine.map(|entry| entry.code).collect()
}

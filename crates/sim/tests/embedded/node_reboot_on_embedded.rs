//! The cases of NodeReboots on the embedded API server with a paused clock, and the cases that need
//! its faults.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dogwatch_kubesim::api::{ApiServer, ApiVerb, FaultEffect, RequestInfo};
use serde_json::json;

use crate::node_reboot_cases;
use crate::node_reboot_cases::world::World;
use crate::support::embedded::{clock_from, die_at, fail, server_from};

async fn world() -> (ApiServer, World) {
    let epoch = "2026-03-01T00:00:00Z".parse().unwrap();
    let server = server_from(epoch);
    let mut world = World::on(server.client_for_user("test"), clock_from(epoch)).await;
    world.leading = server.client_for_user("leader");
    (server, world)
}

macro_rules! on_embedded {
    ($($name:ident)*) => { $(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            let (_server, world) = world().await;
            node_reboot_cases::$name(&world).await;
        }
    )* };
}

node_reboot_cases::every_case!(on_embedded);

fn is_write(request: &RequestInfo) -> bool {
    request.user == "leader" && request.verb == Some(ApiVerb::Patch)
}

/// For each write of a leader: the leader is killed right after it, or the answer is lost, or the
/// write itself is.
#[tokio::test(start_paused = true)]
async fn whichever_write_is_the_last_of_a_leader_the_node_is_asked_once() {
    for effect in [FaultEffect::LoseAnswer, FaultEffect::LoseRequest] {
        for last in 0..5 {
            let (server, world) = world().await;
            world.make_node("n1").await;
            let _sent = die_at(&server, last, effect.clone(), is_write);
            let first = world.leader();
            world.ask("a", json!({})).await;
            tokio::time::sleep(std::time::Duration::from_secs(2)).await;
            drop(first);
            server.clear_faults();
            let is_served = world.request().await.is_some();
            if is_served {
                world.reboot().await;
            }
            let _second = world.leader();
            if !is_served {
                world.until_asked().await;
                world.reboot().await;
            }
            world.until_succeeded("a", "True Rebooted").await;
            assert_eq!(world.request().await, None, "{effect:?} {last}");
            assert_eq!(world.status("a").await.attempts.len(), 1);
        }
    }
}

/// From the NodeReboot to the request on its Node no timer has to pass.
#[tokio::test(start_paused = true)]
async fn a_request_reaches_its_node_at_once() {
    let (_server, world) = world().await;
    world.make_node("n1").await;
    let _leader = world.leader();
    world.ask("a", json!({})).await;
    world.until_asked().await;
    world.ask("b", json!({})).await;
    let begun = tokio::time::Instant::now();
    while world.request().await.unwrap()["nodeReboots"][1].is_null() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let took = begun.elapsed();
    assert!(took < std::time::Duration::from_millis(50), "{took:?}");
}

/// Whoever has cancelled or deleted it must not see the node drained afterwards.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_late_does_not_reach_its_node_after_the_end() {
    for is_deleted in [false, true] {
        let (server, world) = world().await;
        world.make_node("n1").await;
        let is_first = AtomicBool::new(true);
        let late = FaultEffect::DelayRequest(Duration::from_secs(40));
        fail(&server, late, move |request| {
            let is_ask = is_write(request) && request.resource == "nodes";
            is_ask && is_first.swap(false, Ordering::Relaxed)
        });
        let _leader = world.leader();
        world.ask("a", json!({})).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        if is_deleted {
            world.delete("a").await;
        } else {
            world.cancel("a").await;
        }
        let end = tokio::time::Instant::now() + Duration::from_mins(2);
        while tokio::time::Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert_eq!(world.request().await, None, "{is_deleted}");
        }
        if is_deleted {
            assert!(!world.exists("a").await);
        } else {
            assert_eq!(world.succeeded("a").await, "False Cancelled");
        }
    }
}

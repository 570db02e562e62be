//! The cases of the handshake on the embedded API server under a paused clock; and those that need its
//! faults.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod handshake_cases;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dogwatch_process::clock::Clock;
use dogwatch_sim::api::{ApiServer, FaultEffect, Options, RequestInfo, Verb};
use dogwatch_sim::clock::TokioClock;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::time::Instant;

use handshake_cases::world::World;

const REBOOT_TIMEOUT: Duration = Duration::from_mins(30);

async fn bare_world() -> (ApiServer, World) {
    let epoch: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
    let clock = Arc::new(TokioClock::starting_at(epoch));
    let server = ApiServer::new(clock, Options::default());
    let origin = Instant::now();
    let wall = move || epoch + SignedDuration::try_from(origin.elapsed()).unwrap();
    let clock = Clock::with_wall(wall);
    let mut world = World::on(server.client("test"), clock, REBOOT_TIMEOUT).await;
    world.leading = server.client("leader");
    (server, world)
}

async fn world() -> (ApiServer, World) {
    let (server, world) = bare_world().await;
    (server, world.with_listeners().await)
}

macro_rules! on_embedded {
    ($($name:ident)*) => { $(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            let (_server, world) = world().await;
            handshake_cases::$name(&world).await;
        }
    )* };
}

handshake_cases::every_case!(on_embedded);

fn is_write(request: &RequestInfo) -> bool {
    let verb = request.verb;
    let writes = [Verb::Patch, Verb::Create, Verb::Delete];
    request.user == "leader" && verb.is_some_and(|verb| writes.contains(&verb))
}

/// For each write that a leader makes: it is killed right after it, or its answer was lost on the way,
/// or the write itself was. The next leader makes good what is left, in both directions.
#[tokio::test(start_paused = true)]
async fn whichever_write_is_the_last_of_a_leader_no_mark_is_missing_and_none_is_left() {
    for effect in [FaultEffect::LoseAnswer, FaultEffect::LoseRequest] {
        // Two marks are put on, and two are taken off.
        for last in 0..4 {
            let (server, world) = world().await;
            world.make_node("n1", &json!({}), Some("rebooting")).await;
            world.make_machine("n1", &json!({})).await;
            let sent = Arc::new(AtomicU32::new(0));
            let (count, lost) = (Arc::clone(&sent), effect.clone());
            server.set_faults(move |request| {
                if !is_write(request) {
                    return Vec::new();
                }
                match count.fetch_add(1, Ordering::Relaxed).cmp(&last) {
                    std::cmp::Ordering::Less => Vec::new(),
                    std::cmp::Ordering::Equal => vec![lost.clone()],
                    // It is dead.
                    std::cmp::Ordering::Greater => vec![FaultEffect::LoseRequest],
                }
            });
            let first = world.leader();
            if last > 1 {
                world
                    .until("both marks are there", || async {
                        world.skip("n1").await.is_some() && world.node_lease("n1").await.is_some()
                    })
                    .await;
                world.set_phase("n1", None).await;
            }
            world
                .until("it has come so far", || async {
                    sent.load(Ordering::Relaxed) > last
                })
                .await;
            drop(first);
            server.clear_faults();

            world.set_phase("n1", Some("rebooting")).await;
            let second = world.leader();
            world
                .until("both marks are there", || async {
                    world.skip("n1").await.is_some() && world.node_lease("n1").await.is_some()
                })
                .await;
            drop(second);
            world.set_phase("n1", None).await;
            let _third = world.leader();
            world
                .until("none is left", || async {
                    world.skip("n1").await.is_none() && world.node_lease("n1").await.is_none()
                })
                .await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn where_nobody_listens_nothing_is_written_and_while_nothing_reboots_nothing_is_asked() {
    let (server, world) = bare_world().await;
    world.make_node("n1", &json!({}), Some("rebooting")).await;
    let leader = world.leader();
    world
        .until("it has looked", || async {
            leader
                .metrics
                .render()
                .contains("dogwatch_handshake_nodes 1")
        })
        .await;
    world.set_phase("n1", None).await;
    world
        .until("it has seen the end", || async {
            leader
                .metrics
                .render()
                .contains("dogwatch_handshake_nodes 0")
        })
        .await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let by_leader = |server: &ApiServer| {
        let log = server.audit_log();
        let own = log.into_iter().filter(|entry| entry.user == "leader");
        own.collect::<Vec<_>>()
    };
    let asked = by_leader(&server);
    let reads = [Verb::Get, Verb::List];
    let wrote = asked
        .iter()
        .filter(|entry| entry.verb.is_some_and(|verb| !reads.contains(&verb)));
    assert_eq!(wrote.count(), 0, "{asked:?}");
    server.clear_audit_log();
    tokio::time::sleep(Duration::from_hours(5)).await;
    assert_eq!(by_leader(&server).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_cannot_be_written_delays_only_itself() {
    let (server, world) = world().await;
    for node in ["n1", "n2"] {
        world.make_node(node, &json!({}), Some("rebooting")).await;
        world.make_machine(node, &json!({})).await;
    }
    server.set_faults(|request| {
        let hit = is_write(request) && request.name == "n1";
        hit.then_some(FaultEffect::Refuse(500))
            .into_iter()
            .collect()
    });
    let _leader = world.leader();
    world
        .until("all others are there", || async {
            let leases =
                world.node_lease("n1").await.is_some() && world.node_lease("n2").await.is_some();
            leases && world.skip("n2").await.is_some()
        })
        .await;
    assert_eq!(world.skip("n1").await, None);
    server.clear_faults();
    world
        .until("it is made good", || async {
            world.skip("n1").await.is_some()
        })
        .await;
}

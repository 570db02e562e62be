//! The cases of reboots and remediations on the embedded API server with a paused clock, and the
//! cases that need its faults.

use std::sync::atomic::Ordering;
use std::time::Duration;

use dogwatch_kubesim::api::{ApiServer, ApiVerb, FaultEffect, RequestInfo};
use serde_json::json;

use crate::handshake_cases;
use crate::handshake_cases::world::World;
use crate::support::embedded::{clock_from, die_at, fail, server_from};
use crate::support::leader::Leader;

const REBOOT_TIMEOUT: Duration = Duration::from_mins(30);

async fn bare_world() -> (ApiServer, World) {
    let epoch = "2026-03-01T00:00:00Z".parse().unwrap();
    let server = server_from(epoch);
    let clock = clock_from(epoch);
    let mut world = World::on(server.client_for_user("test"), clock, REBOOT_TIMEOUT).await;
    world.leading = server.client_for_user("leader");
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
    let writes = [ApiVerb::Patch, ApiVerb::Create, ApiVerb::Delete];
    request.user == "leader" && verb.is_some_and(|verb| writes.contains(&verb))
}

/// For each write of a leader: the leader is killed right after it, or the answer is lost, or the
/// write itself is. The next leader completes the work, for setting and for removing marks.
#[tokio::test(start_paused = true)]
async fn whichever_write_is_the_last_of_a_leader_no_mark_is_missing_and_none_is_left() {
    for effect in [FaultEffect::LoseAnswer, FaultEffect::LoseRequest] {
        // Two marks are set, and two are removed.
        for last in 0..4 {
            let (server, world) = world().await;
            world.make_node("n1", &json!({}), Some("rebooting")).await;
            world.make_machine("n1", &json!({})).await;
            let sent = die_at(&server, last, effect.clone(), is_write);
            let first = world.leader();
            if last > 1 {
                until_marked(&world).await;
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
            until_marked(&world).await;
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

async fn until_marked(world: &World) {
    world
        .until("both marks are there", || async {
            world.skip("n1").await.is_some() && world.node_lease("n1").await.is_some()
        })
        .await;
}

async fn until_it_shows(world: &World, leader: &Leader, line: &str) {
    world
        .until(line, || async {
            leader.metrics.render_page().contains(line)
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn where_nobody_listens_nothing_is_written_and_while_nothing_reboots_nothing_is_asked() {
    let (server, world) = bare_world().await;
    world.make_node("n1", &json!({}), Some("rebooting")).await;
    let leader = world.leader();
    until_it_shows(&world, &leader, "dogwatch_handshake_nodes 1").await;
    world.set_phase("n1", None).await;
    until_it_shows(&world, &leader, "dogwatch_handshake_nodes 0").await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let by_leader = |server: &ApiServer| {
        let log = server.audit_log();
        let own = log.into_iter().filter(|entry| entry.user == "leader");
        own.collect::<Vec<_>>()
    };
    let asked = by_leader(&server);
    let reads = [ApiVerb::Get, ApiVerb::List];
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
    fail(&server, FaultEffect::Refuse(500), |request| {
        is_write(request) && request.name == "n1"
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

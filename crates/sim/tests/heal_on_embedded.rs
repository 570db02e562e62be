//! The healer's cases on the embedded API server, under a paused clock with the times of a real
//! cluster; and those that need its faults.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod heal_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use dogwatch_core::heal::Config;
use dogwatch_core::reboot::Phase;
use dogwatch_sim::api::{FaultEffect, Verb};

use heal_cases::world::World;
use support::embedded::{fail, server};

macro_rules! on_embedded {
    ($($name:ident)*) => { $(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            let client = server().client("test");
            heal_cases::$name(&World::on(client, Config::default()).await).await;
        }
    )* };
}

heal_cases::every_case!(on_embedded);

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_written_delays_only_itself() {
    let server = server();
    let world = World::on(server.client("test"), Config::default()).await;
    world.make_node("broken", Phase::Draining).await;
    let node = world.make_node("n1", Phase::Draining).await;
    world.hold(&node).await;
    let broken = world.node_name("broken").to_string();
    fail(&server, FaultEffect::LoseRequest, move |request| {
        request.verb == Some(Verb::Patch) && request.name == broken
    });
    let _leader = world.leader();
    world.until_free().await;
    let broken = world.node("broken").await.unwrap();
    assert_eq!(broken.record.get().unwrap().phase, Phase::Draining);
    server.clear_faults();
    world
        .until("it is healed as soon as it can be", || async {
            let broken = world.node("broken").await.unwrap();
            broken.record.get().unwrap().phase == Phase::Waiting
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn who_does_not_lead_writes_nothing() {
    let server = server();
    let world = World::on(server.client("test"), Config::default()).await;
    let node = world.make_node("n1", Phase::Draining).await;
    let lease = world.hold(&node).await;
    let leader = world.leader();
    leader.loses_the_lead();
    world.time_passes().await;
    tokio::time::sleep(world.config.flags.drain_timeout * 2).await;
    assert_eq!(world.lease().await, lease);
    assert_eq!(world.node("n1").await.unwrap().record, node.record);
}

//! The healer's cases on the embedded API server, with a paused clock and the times of a real
//! cluster, and the cases that need its faults.

use dogwatch_core::healer::HealerConfig;
use dogwatch_core::reboot::RebootPhase;
use dogwatch_kubesim::api::{ApiVerb, FaultEffect};

use crate::heal_cases;
use crate::heal_cases::world::World;
use crate::support::embedded::{fail, server};

macro_rules! on_embedded {
    ($($name:ident)*) => { $(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            let client = server().client_for_user("test");
            heal_cases::$name(&World::on(client, HealerConfig::default()).await).await;
        }
    )* };
}

heal_cases::every_case!(on_embedded);

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_written_delays_only_itself() {
    let server = server();
    let world = World::on(server.client_for_user("test"), HealerConfig::default()).await;
    world.make_node("broken", RebootPhase::Draining).await;
    let node = world.make_node("n1", RebootPhase::Draining).await;
    world.hold(&node).await;
    let broken = world.node_name("broken").to_string();
    fail(&server, FaultEffect::LoseRequest, move |request| {
        request.verb == Some(ApiVerb::Patch) && request.name == broken
    });
    let _leader = world.leader();
    world.until_free().await;
    let broken = world.node("broken").await.unwrap();
    assert_eq!(broken.record.get().unwrap().phase, RebootPhase::Draining);
    server.clear_faults();
    world
        .until("it is healed as soon as it can be", || async {
            let broken = world.node("broken").await.unwrap();
            broken.record.get().unwrap().phase == RebootPhase::Waiting
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn who_does_not_lead_writes_nothing() {
    let server = server();
    let world = World::on(server.client_for_user("test"), HealerConfig::default()).await;
    let node = world.make_node("n1", RebootPhase::Draining).await;
    let lease = world.hold(&node).await;
    let leader = world.leader();
    leader.loses_the_lead();
    world.time_passes().await;
    tokio::time::sleep(world.config.flags.drain_timeout * 2).await;
    assert_eq!(world.lease().await, lease);
    assert_eq!(world.node("n1").await.unwrap().record, node.record);
}

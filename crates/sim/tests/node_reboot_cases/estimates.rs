//! The estimated times in the status.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_controller::rollout_estimate::EstimateState;
use dogwatch_core::report::{FleetEstimate, NodeEstimate};
use jiff::Timestamp;
use serde_json::json;

use super::world::World;
use crate::support::until;

/// Node `n1` begins so long after `base`, and is back five minutes later.
fn publish_start(world: &World, base: Timestamp, minutes: u64, seconds: u64) -> Timestamp {
    let start = base + Duration::from_secs(60 * minutes + seconds);
    let finish = start + Duration::from_mins(5);
    let times = NodeEstimate {
        start,
        latest_start: start,
        finish,
        latest_finish: finish,
    };
    let estimate = FleetEstimate {
        at: start,
        finish: Some(finish),
        latest_finish: Some(finish),
        groups: BTreeMap::new(),
        nodes: BTreeMap::from([(world.full_name("n1"), times)]),
        left_out: Vec::new(),
    };
    let made = EstimateState::Made(Arc::new(estimate));
    world.estimates.0.publish_state(made);
    start
}

async fn read_times(world: &World) -> (Option<Timestamp>, Option<Timestamp>) {
    let status = world.status("a").await;
    (status.estimated_start, status.estimated_finish)
}

async fn until_times(world: &World, start: Option<Timestamp>, finish: Option<Timestamp>) {
    let is_so = || async { read_times(world).await == (start, finish) };
    until(&format!("the status has {start:?} and {finish:?}"), is_so).await;
}

pub async fn the_estimate_is_in_the_status_and_a_small_change_of_it_is_not_written(world: &World) {
    world.make_node("n1").await;
    let _leader = world.leader();
    world.ask("a", json!({})).await;
    world.until_succeeded("a", "Unknown WaitingForLock").await;
    assert_eq!(read_times(world).await, (None, None), "nothing was planned");
    let base = Timestamp::from_second(world.clock.now().wall.as_second()).unwrap();
    let back = |start: Timestamp| Some(start + Duration::from_mins(5));
    let first = publish_start(world, base, 30, 0);
    until_times(world, Some(first), back(first)).await;
    publish_start(world, base, 30, 50);
    world.until_leader_has_seen_all("other").await;
    assert_eq!(read_times(world).await, (Some(first), back(first)));
    let second = publish_start(world, base, 50, 0);
    until_times(world, Some(second), back(second)).await;
    world.record("draining").await;
    until_times(world, None, back(second)).await;
    world.estimates.0.publish_state(EstimateState::NothingKnown);
    until_times(world, None, None).await;
    world.reboot().await;
    world.until_succeeded("a", "True Rebooted").await;
}

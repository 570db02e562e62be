//! How many calls of the API server follow each other, from the cause to the effect. Each call of
//! the controller arrives late by the same time under a paused clock, so the count is how many of
//! these times the effect is later than without. It does not depend on the machine, so it is a
//! promise of its own: `docs/numbers.md`, "Calls in series".

use std::time::Duration;

use dogwatch_kubesim::api::{ApiServer, ApiVerb, FaultEffect, RequestInfo};
use serde_json::json;
use tokio::time::Instant;

use crate::node_reboot_cases::world::World as Requests;
use crate::support::embedded::{clock_from, epoch, fail, server_from};

const LATE: Duration = Duration::from_millis(400);

/// Each call of this user arrives late. Watches are open already: what they show is not a call.
fn delay_calls(server: &ApiServer, user: &'static str, late: Duration) {
    if late.is_zero() {
        return;
    }
    let is_call =
        move |request: &RequestInfo| request.user == user && request.verb != Some(ApiVerb::Watch);
    fail(server, FaultEffect::DelayRequest(late), is_call);
}

fn count_calls(without: Duration, with: Duration) -> u128 {
    let late = with.saturating_sub(without).as_millis();
    (late + LATE.as_millis() / 2) / LATE.as_millis()
}

/// From a NodeReboot to the request on its Node.
async fn time_request(late: Duration) -> Duration {
    let server = server_from(epoch());
    let mut world = Requests::on(server.client_for_user("test"), clock_from(epoch())).await;
    world.leading = server.client_for_user("leader");
    world.make_node("n1").await;
    let _leader = world.leader();
    world.until_leader_has_seen_all("before").await;
    delay_calls(&server, "leader", late);
    let begun = Instant::now();
    world.ask("a", json!({})).await;
    while world.request().await.is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_node_reboot_makes_no_more_calls_in_series_than_it_says() {
    let (without, with) = (time_request(Duration::ZERO).await, time_request(LATE).await);
    let calls = count_calls(without, with);
    println!("a NodeReboot: {calls} calls in series; {without:?} without, {with:?} with");
    assert_eq!(calls, 3);
}

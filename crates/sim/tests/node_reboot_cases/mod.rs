//! Cases of NodeReboots: the same functions run on the embedded and on the real API server. Each
//! case is a sentence of specification §10.1.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

pub mod world;

use serde_json::json;

use crate::support::until;
use world::World;

/// Passes every case to a macro that makes a test of it.
macro_rules! every_case {
    ($test:ident) => {
        $test! {
            a_request_is_carried_to_its_node_followed_and_answered
            two_for_one_node_are_served_by_one_reboot
            what_has_not_begun_is_taken_back_when_it_is_cancelled_or_deleted
            what_has_begun_is_finished_before_the_deleted_object_goes
            a_hold_ends_when_its_object_is_deleted
            a_node_that_is_unknown_is_refused_for_good
            a_power_cycle_is_refused_by_a_controller_that_controls_no_power
            what_has_ended_is_deleted_when_its_time_is_over
        }
    };
}
pub(crate) use every_case;

pub async fn a_request_is_carried_to_its_node_followed_and_answered(world: &World) {
    world.make_node("n1").await;
    let leader = world.leader();
    let spec = json!({ "reason": "kernel", "requester": "ann" });
    let uid = world.ask("a", spec).await;
    world.until_asked().await;
    let request = world.request().await.unwrap();
    let name = world.full_name("a");
    assert_eq!(request["reason"], "kernel");
    assert_eq!(request["requester"], format!("ann (nodereboot/{name})"));
    let listed = json!([{ "name": name, "uid": uid }]);
    assert_eq!(request["nodeReboots"], listed);
    world.until_succeeded("a", "Unknown WaitingForLock").await;
    world.record("draining").await;
    world.until_succeeded("a", "Unknown DrainingNode").await;
    world.reboot().await;
    world.until_succeeded("a", "True Rebooted").await;
    let status = world.status("a").await;
    let attempt = &status.attempts[0];
    assert_eq!(attempt.boot_id_before.as_deref(), Some("boot-1"));
    assert_eq!(attempt.boot_id_after.as_deref(), Some("boot-2"));
    until("its Event is written", || async {
        world.events("a").await == ["Rebooted"]
    })
    .await;
    let page = leader.metrics.render_page();
    let ended = "dogwatch_node_reboots_finished_total{succeeded=\"True\",reason=\"Rebooted\"} 1";
    assert!(page.contains(ended), "{page}");
}

pub async fn two_for_one_node_are_served_by_one_reboot(world: &World) {
    world.make_node("n1").await;
    let _leader = world.leader();
    world.ask("a", json!({})).await;
    world.ask("b", json!({})).await;
    world.until_succeeded("a", "Unknown WaitingForLock").await;
    world.until_succeeded("b", "Unknown WaitingForLock").await;
    world.reboot().await;
    world.until_succeeded("a", "True Rebooted").await;
    world.until_succeeded("b", "True Rebooted").await;
    assert_eq!(world.request().await, None);
}

pub async fn what_has_not_begun_is_taken_back_when_it_is_cancelled_or_deleted(world: &World) {
    world.make_node("n1").await;
    let _leader = world.leader();
    world.ask("a", json!({})).await;
    world.ask("b", json!({})).await;
    world.until_succeeded("a", "Unknown WaitingForLock").await;
    world.until_succeeded("b", "Unknown WaitingForLock").await;
    world.cancel("a").await;
    world.until_succeeded("a", "False Cancelled").await;
    world.delete("b").await;
    until("b is gone", || async { !world.exists("b").await }).await;
    assert_eq!(world.request().await, None);
}

pub async fn what_has_begun_is_finished_before_the_deleted_object_goes(world: &World) {
    world.make_node("n1").await;
    let _leader = world.leader();
    world.ask("a", json!({})).await;
    world.until_asked().await;
    world.record("draining").await;
    world.until_succeeded("a", "Unknown DrainingNode").await;
    world.delete("a").await;
    world.record("rebooting").await;
    world.until_succeeded("a", "Unknown RebootingNode").await;
    world.finish("Rebooted", "boot-2").await;
    until("a is gone", || async { !world.exists("a").await }).await;
}

pub async fn a_hold_ends_when_its_object_is_deleted(world: &World) {
    world.make_node("n1").await;
    let _leader = world.leader();
    world.ask("a", json!({ "method": "Hold" })).await;
    world.until_asked().await;
    assert_eq!(world.request().await.unwrap()["method"], "Hold");
    world.record("draining").await;
    world.record("holding").await;
    world.until_succeeded("a", "Unknown NodeHeld").await;
    world.delete("a").await;
    until("the request is taken back", || async {
        world.request().await.is_none()
    })
    .await;
    assert!(world.exists("a").await, "the node is still out of service");
    world.finish("Released", "boot-1").await;
    until("a is gone", || async { !world.exists("a").await }).await;
}

pub async fn a_node_that_is_unknown_is_refused_for_good(world: &World) {
    let _leader = world.leader();
    world.ask("a", json!({})).await;
    world.until_succeeded("a", "False NodeNotFound").await;
    let conditions = world.status("a").await.conditions;
    let mut all = conditions.iter();
    let accepted = all.find(|one| one.type_ == "Accepted").unwrap();
    assert_eq!(accepted.status, "False");
}

pub async fn a_power_cycle_is_refused_by_a_controller_that_controls_no_power(world: &World) {
    world.make_node("n1").await;
    let _leader = world.leader();
    world.ask("a", json!({ "method": "PowerCycle" })).await;
    world.until_succeeded("a", "False PowerNotControlled").await;
    assert_eq!(world.request().await, None);
}

pub async fn what_has_ended_is_deleted_when_its_time_is_over(world: &World) {
    let _leader = world.leader();
    world.ask("a", json!({ "ttlAfterFinished": "0" })).await;
    until("a is gone", || async { !world.exists("a").await }).await;
}

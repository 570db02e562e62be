//! Cases of NodeReboots: the same functions run on the embedded and on the real API server. Each
//! case is a sentence of specification §10.1.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod estimates;
mod requests;
pub mod world;

use serde_json::json;

pub use self::estimates::the_estimate_is_in_the_status_and_a_small_change_of_it_is_not_written;
pub use self::requests::{
    a_cancel_after_the_end_changes_nothing, a_cancel_in_any_phase_of_a_reboot_lets_it_finish,
    a_deletion_in_any_phase_of_a_reboot_lets_it_finish,
    a_node_of_another_uid_is_refused_before_anything_begins,
    a_request_for_later_reaches_its_node_when_its_time_has_come,
    each_attempt_without_success_is_followed_by_the_next_of_three,
    one_that_is_made_while_another_runs_waits_for_the_next,
    succeeded_is_never_false_while_anything_runs, what_has_begun_by_its_deadline_is_finished,
    what_has_not_begun_by_its_deadline_is_given_up,
};
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
            a_request_for_later_reaches_its_node_when_its_time_has_come
            what_has_not_begun_by_its_deadline_is_given_up
            what_has_begun_by_its_deadline_is_finished
            a_node_of_another_uid_is_refused_before_anything_begins
            one_that_is_made_while_another_runs_waits_for_the_next
            a_cancel_in_any_phase_of_a_reboot_lets_it_finish
            a_deletion_in_any_phase_of_a_reboot_lets_it_finish
            a_cancel_after_the_end_changes_nothing
            each_attempt_without_success_is_followed_by_the_next_of_three
            succeeded_is_never_false_while_anything_runs
            the_estimate_is_in_the_status_and_a_small_change_of_it_is_not_written
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

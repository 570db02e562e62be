//! When a request begins, is joined, is cancelled and ends. Each case is a sentence of specification
//! §10.1.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::world::World;
use crate::support::until;

fn time_after(world: &World, seconds: i64) -> Timestamp {
    let now = world.clock.now().wall;
    now.checked_add(SignedDuration::from_secs(seconds)).unwrap()
}

pub async fn a_request_for_later_reaches_its_node_when_its_time_has_come(world: &World) {
    world.make_node("n1").await;
    let _leader = world.leader();
    let not_before = time_after(world, 4);
    world.ask("a", json!({ "notBefore": not_before })).await;
    world.until_succeeded("a", "Unknown NotBefore").await;
    assert_eq!(world.request().await, None);
    world.until_asked().await;
    assert!(world.clock.now().wall >= not_before);
}

pub async fn what_has_not_begun_by_its_deadline_is_given_up(world: &World) {
    world.make_node("n1").await;
    let _leader = world.leader();
    let deadline = time_after(world, 5);
    world.ask("a", json!({ "deadline": deadline })).await;
    world.until_succeeded("a", "Unknown WaitingForLock").await;
    world.until_succeeded("a", "False DeadlinePassed").await;
    assert!(world.clock.now().wall >= deadline);
    assert_eq!(world.request().await, None);
}

pub async fn what_has_begun_by_its_deadline_is_finished(world: &World) {
    world.make_node("n1").await;
    let _leader = world.leader();
    let deadline = time_after(world, 5);
    world.ask("a", json!({ "deadline": deadline })).await;
    world.until_asked().await;
    world.record("draining").await;
    world.until_succeeded("a", "Unknown DrainingNode").await;
    until("the deadline passes", || async {
        world.clock.now().wall > deadline
    })
    .await;
    world.reboot().await;
    world.until_succeeded("a", "True Rebooted").await;
}

pub async fn a_node_of_another_uid_is_refused_before_anything_begins(world: &World) {
    world.make_node("n1").await;
    let _leader = world.leader();
    world.ask("a", json!({ "nodeUID": "another" })).await;
    world.until_succeeded("a", "False OtherNodeUid").await;
    assert_eq!(world.condition("a", "Accepted").await, "False OtherNodeUid");
    assert_eq!(world.request().await, None);
}

pub async fn one_that_is_made_while_another_runs_waits_for_the_next(world: &World) {
    world.make_node("n1").await;
    let _leader = world.leader();
    world.ask("a", json!({})).await;
    world.until_asked().await;
    world.record("draining").await;
    world.until_succeeded("a", "Unknown DrainingNode").await;
    let later = world.ask("b", json!({})).await;
    world.until_succeeded("b", "Unknown RebootUnderWay").await;
    world.record("rebooting").await;
    world.boot("n1", "boot-2").await;
    world.finish("Rebooted", "boot-2").await;
    world.until_succeeded("a", "True Rebooted").await;
    world.until_asked().await;
    let listed = &world.request().await.unwrap()["nodeReboots"];
    assert_eq!(
        *listed,
        json!([{ "name": world.full_name("b"), "uid": later }])
    );
    world.boot("n1", "boot-1").await;
    world.reboot().await;
    world.until_succeeded("b", "True Rebooted").await;
    assert_eq!(world.status("a").await.attempts.len(), 1);
}

/// Others take False for final and ask again at once.
pub async fn succeeded_is_never_false_while_anything_runs(world: &World) {
    world.make_node("n1").await;
    let _leader = world.leader();
    world.ask("a", json!({})).await;
    let followed = world.follow_result("a").await;
    world.until_succeeded("a", "Unknown WaitingForLock").await;
    world.record("draining").await;
    world.until_succeeded("a", "Unknown DrainingNode").await;
    // A drain that is given up waits again.
    world.record("waiting").await;
    world.until_succeeded("a", "Unknown WaitingForLock").await;
    world.record("draining").await;
    world.record("rebooting").await;
    world.until_succeeded("a", "Unknown RebootingNode").await;
    world.cancel("a").await;
    world.record("returning").await;
    world.until_succeeded("a", "Unknown ReturningNode").await;
    let seen = followed.seen_values();
    assert!(seen.len() >= 4, "{seen:?}");
    assert!(seen.iter().all(|it| it.starts_with("Unknown")), "{seen:?}");
    world.finish("Aborted", "boot-1").await;
    world.until_succeeded("a", "False Aborted").await;
    until("the end is seen", || async {
        followed
            .seen_values()
            .last()
            .is_some_and(|it| it == "False Aborted")
    })
    .await;
    let ends = followed.seen_values().into_iter();
    assert_eq!(ends.filter(|it| !it.starts_with("Unknown")).count(), 1);
}

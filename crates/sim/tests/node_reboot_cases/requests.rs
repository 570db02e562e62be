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
    world.boot_anew().await;
    world.finish_rebooted().await;
    world.until_succeeded("a", "True Rebooted").await;
    world.until_asked().await;
    let listed = &world.request().await.unwrap()["nodeReboots"];
    assert_eq!(
        *listed,
        json!([{ "name": world.full_name("b"), "uid": later }])
    );
    world.reboot().await;
    world.until_succeeded("b", "True Rebooted").await;
    assert_eq!(world.status("a").await.attempts.len(), 1);
}

/// The phases of a reboot that has begun, and what a NodeReboot says in each.
const BEGUN_PHASES: [(&str, &str); 3] = [
    ("draining", "Unknown DrainingNode"),
    ("rebooting", "Unknown RebootingNode"),
    ("returning", "Unknown ReturningNode"),
];

pub async fn a_cancel_in_any_phase_of_a_reboot_lets_it_finish(world: &World) {
    world.make_node("n1").await;
    let _leader = world.leader();
    for (last_phase, _) in BEGUN_PHASES {
        let short = format!("cancelled-{last_phase}");
        reboot_with(world, &short, last_phase, || world.cancel(&short)).await;
        world.until_succeeded(&short, "True Rebooted").await;
    }
}

pub async fn a_deletion_in_any_phase_of_a_reboot_lets_it_finish(world: &World) {
    world.make_node("n1").await;
    let _leader = world.leader();
    for (last_phase, _) in BEGUN_PHASES {
        let short = format!("deleted-{last_phase}");
        reboot_with(world, &short, last_phase, || world.delete(&short)).await;
        until(&format!("{short} is gone"), || async {
            !world.exists(&short).await
        })
        .await;
    }
}

/// A whole reboot for a new NodeReboot; `interfere` runs in one of its phases.
async fn reboot_with<F: Future<Output = ()>>(
    world: &World,
    short: &str,
    in_phase: &str,
    interfere: impl FnOnce() -> F,
) {
    world.ask(short, json!({})).await;
    world.until_asked().await;
    let mut interfere = Some(interfere);
    for (phase, says) in BEGUN_PHASES {
        if phase == "returning" {
            world.boot_anew().await;
        }
        world.record(phase).await;
        world.until_succeeded(short, says).await;
        if phase == in_phase
            && let Some(interfere) = interfere.take()
        {
            interfere().await;
        }
    }
    assert!(world.exists(short).await, "the reboot is not over");
    world.finish_rebooted().await;
}

pub async fn a_cancel_after_the_end_changes_nothing(world: &World) {
    world.make_node("n1").await;
    let _leader = world.leader();
    world.ask("a", json!({})).await;
    world.until_asked().await;
    world.reboot().await;
    world.until_succeeded("a", "True Rebooted").await;
    world.cancel("a").await;
    world.until_leader_has_seen_all("b").await;
    assert_eq!(world.succeeded("a").await, "True Rebooted");
    assert_eq!(world.request().await, None);
}

pub async fn each_attempt_without_success_is_followed_by_the_next_of_three(world: &World) {
    world.make_node("n1").await;
    let _leader = world.leader();
    let success =
        json!({ "conditions": [{ "type": "GpuHealthy", "status": "True" }], "within": "2s" });
    let spec = json!({ "success": success, "escalation": ["Reboot", "Reboot"] });
    world.ask("a", spec.clone()).await;
    for _ in 0..3 {
        world.until_asked().await;
        world.reboot().await;
        world.until_succeeded("a", "Unknown AwaitingSuccess").await;
    }
    world.set_condition("GpuHealthy", "True").await;
    world.until_succeeded("a", "True SuccessReached").await;
    let attempts = world.status("a").await.attempts;
    let outcomes = attempts.iter().map(|it| it.outcome.as_deref());
    let not_reached = Some("SuccessNotReached");
    let expected = [not_reached, not_reached, Some("SuccessReached")];
    assert!(outcomes.eq(expected), "{attempts:?}");
    let boots = attempts.iter().map(|it| it.boot_id_after.as_deref());
    let expected = [Some("boot-2"), Some("boot-3"), Some("boot-4")];
    assert!(boots.eq(expected), "{attempts:?}");
    world.set_condition("GpuHealthy", "False").await;
    world.ask("b", spec).await;
    for _ in 0..3 {
        world.until_asked().await;
        world.reboot().await;
        world.until_succeeded("b", "Unknown AwaitingSuccess").await;
    }
    world.until_succeeded("b", "False SuccessNotReached").await;
    assert_eq!(world.status("b").await.attempts.len(), 3);
    assert_eq!(world.request().await, None);
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

//! The lock's cases on the embedded API server with a paused clock, and the cases that need its
//! faults: lost answers, late duplicates, a compacted history, an outage.

use std::time::Duration;

use dogwatch_k8s::ApiErrorKind;
use dogwatch_k8s::lock::{BidOutcome, GroupSlots, ReleaseOutcome};
use dogwatch_k8s::watch::ObjectEvent;
use dogwatch_kubesim::api::{ApiServer, ApiVerb, Denial, FaultEffect};
use futures::StreamExt as _;
use tokio::time::{Instant, sleep, timeout};

use crate::lock_cases;
use crate::lock_cases::world::{World, at, done, freed, group, until_free, until_held, won};
use crate::support::embedded::{fail, server};

macro_rules! on_embedded {
    ($($name:ident)*) => { $(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            lock_cases::$name(&World::on(server().client_for_user("test")).await).await;
        }
    )* };
}

lock_cases::every_case!(on_embedded);

/// Adds this fault to every write of a Lease.
fn lease_writes(server: &ApiServer, effect: FaultEffect) {
    fail(server, effect, |request| {
        request.resource == "leases" && request.verb == Some(ApiVerb::Patch)
    });
}

#[tokio::test(start_paused = true)]
async fn a_bid_whose_answer_is_lost_is_neither_won_nor_lost_and_the_same_again_settles_it() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    let free = world.free_lease().await;
    lease_writes(&server, FaultEffect::LoseAnswer);
    let record = world.record("a", "coordinator/a");
    let outcome = world.hand("a").bid_for_lease(&free, &record).await;
    assert!(matches!(outcome, BidOutcome::Unknown(_)), "{outcome:?}");
    server.clear_faults();
    let seen = world.lease().await;
    assert_eq!(seen.record.as_ref(), Some(&record), "it had acted");
    assert_eq!(
        won(world.hand("a").bid_for_lease(&seen, &record).await),
        seen
    );
}

#[tokio::test(start_paused = true)]
async fn a_bid_that_never_arrived_is_unknown_too() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    let free = world.free_lease().await;
    lease_writes(&server, FaultEffect::LoseRequest);
    let outcome = world.bid("a", &free).await;
    assert!(matches!(outcome, BidOutcome::Unknown(_)), "{outcome:?}");
    server.clear_faults();
    assert_eq!(world.lease().await, free);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_does_not_hold_a_bidder_for_ever() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    let free = world.free_lease().await;
    lease_writes(&server, FaultEffect::DelayRequest(Duration::from_hours(1)));
    let begun = Instant::now();
    let outcome = world.bid("a", &free).await;
    assert!(matches!(outcome, BidOutcome::Unknown(_)), "{outcome:?}");
    assert!(begun.elapsed() <= dogwatch_k8s::error::REQUEST_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_that_arrives_after_everything_is_over_changes_nothing() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    let free = world.free_lease().await;
    lease_writes(&server, FaultEffect::Duplicate(Duration::from_mins(1)));
    let first = world.win("a", &free).await;
    freed(world.hand("a").release_lease(&first, &done()).await);
    server.clear_faults();
    let second = world.win("b", &world.lease().await).await;
    sleep(Duration::from_mins(5)).await;
    assert_eq!(world.lease().await, second);
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_missing_is_refused_and_nothing_is_written() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    let free = world.free_lease().await;
    server.set_denials(vec![Denial {
        user: None,
        verb: Some(ApiVerb::Patch),
        resource: Some("leases".into()),
    }]);
    let outcome = world.bid("a", &free).await;
    let BidOutcome::Refused(error) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(error.kind(), ApiErrorKind::Forbidden);
    let outcome = world.hand("a").release_lease(&free, &done()).await;
    assert!(matches!(outcome, ReleaseOutcome::Refused(_)), "{outcome:?}");
    assert_eq!(world.lease().await, free);
}

#[tokio::test(start_paused = true)]
async fn a_watch_whose_history_was_compacted_lists_again_and_misses_nothing() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    let free = world.free_lease().await;
    let hand = world.hand("w");
    let mut slots = GroupSlots::new(group());
    let mut watch = Box::pin(hand.watch_slots(&group(), || 0.5));
    until_free(&mut watch, &mut slots, at(1)).await;
    server.cut_watches(None);
    let held = world.win("a", &free).await;
    server.compact_history();
    assert_eq!(until_held(&mut watch, &mut slots, at(2)).await, held);
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_told_and_outlived() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    let free = world.free_lease().await;
    let hand = world.hand("w");
    let mut slots = GroupSlots::new(group());
    let mut watch = Box::pin(hand.watch_slots(&group(), || 0.5));
    until_free(&mut watch, &mut slots, at(1)).await;
    server.set_partitioned("test", true);
    for _ in 0..5 {
        let event = watch.next().await.unwrap();
        assert!(
            slots.observe_event(event, at(2)).is_some(),
            "trouble is told each time"
        );
    }
    assert_eq!(
        slots.current_leases().unwrap(),
        std::slice::from_ref(&free),
        "what was known stays"
    );
    server.set_partitioned("test", false);
    let held = world.win("a", &free).await;
    assert_eq!(until_held(&mut watch, &mut slots, at(3)).await, held);
}

#[tokio::test(start_paused = true)]
async fn an_idle_watch_makes_no_calls_but_its_own_renewal() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    world.free_lease().await;
    let hand = world.hand("w");
    let mut watch = Box::pin(hand.watch_slots(&group(), || 0.5));
    let first = watch.next().await;
    assert!(
        matches!(first, Some(ObjectEvent::Restarted(_))),
        "{first:?}"
    );
    server.clear_audit_log();
    assert!(
        timeout(Duration::from_hours(1), watch.next())
            .await
            .is_err(),
        "nothing happens"
    );
    let asked = server.audit_log();
    assert!(
        asked.iter().all(|entry| entry.verb == Some(ApiVerb::Watch)),
        "{asked:?}"
    );
    assert!(asked.len() <= 3600 / 290 + 2, "{}", asked.len());
}

#[tokio::test(start_paused = true)]
async fn trouble_is_retried_with_pauses_that_grow_to_half_a_minute() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    server.set_denials(vec![Denial {
        user: None,
        verb: Some(ApiVerb::List),
        resource: Some("leases".into()),
    }]);
    let hand = world.hand("w");
    let mut watch = Box::pin(hand.watch_slots(&group(), || 1.0));
    let begun = Instant::now();
    let mut at = Vec::new();
    for _ in 0..9 {
        let event = watch.next().await.unwrap();
        let ObjectEvent::Failed(error) = event else {
            panic!("{event:?}")
        };
        assert_eq!(error.kind(), ApiErrorKind::Forbidden);
        at.push(begun.elapsed().as_millis());
    }
    let pauses: Vec<u128> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(
        pauses,
        [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_every_watch_at_once_is_not_polled() {
    let server = server();
    let world = World::on(server.client_for_user("test")).await;
    world.free_lease().await;
    fail(&server, FaultEffect::Refuse(410), |request| {
        request.verb == Some(ApiVerb::Watch)
    });
    let hand = world.hand("w");
    let mut watch = Box::pin(hand.watch_slots(&group(), || 1.0));
    server.clear_audit_log();
    let _ = timeout(Duration::from_mins(10), async {
        while watch.next().await.is_some() {}
    })
    .await;
    let asked = server.requests_answered();
    assert!(
        server.audit_log().len() < 70,
        "{} of {asked}",
        server.audit_log().len()
    );
}

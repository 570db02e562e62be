//! Cases of the lock: the same functions run on the embedded and on the real API server. Each case
//! is an answer measured on a real server, or a sentence of specification §2.2.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

pub mod world;

use std::time::Duration;

use dogwatch_core::lock::{self, HolderId, HolderNode, ObservedLease};
use dogwatch_core::name::RunId;
use dogwatch_k8s::lock::{BidOutcome, GroupSlots, LeaveReason, ReleaseOutcome};
use serde_json::json;

use world::{World, assert_changed, at, done, freed, group, lost, until_free, until_held, won};

/// Passes every case to a macro that makes a test of it.
macro_rules! every_case {
    ($test:ident) => {
        $test! {
            a_free_slot_is_made_once_and_by_whoever_comes_first
            a_slot_that_lost_its_label_is_found_again
            the_winner_is_written_with_its_record_and_nothing_is_lost_of_it
            a_second_bidder_is_refused_by_the_server_itself
            of_many_bidders_at_once_exactly_one_wins
            a_late_duplicate_of_a_bid_takes_nothing
            a_late_duplicate_of_a_release_frees_nobody_elses_lock
            a_bid_for_a_lease_that_was_deleted_does_not_make_it_anew
            a_bid_for_another_incarnation_of_the_lease_is_refused
            what_a_half_release_left_behind_is_swept_by_the_next_bidder
            a_broken_lock_can_be_taken_by_anybody
            breaking_on_old_evidence_breaks_nothing
            a_new_run_takes_over_and_the_older_one_fails_its_next_write
            giving_up_takes_only_ones_own_run_and_the_last_one_out_frees
            the_same_write_again_changes_nothing
            the_leaver_calls_the_next_and_the_call_hinders_no_bid
            giving_back_over_budget_is_counted_until_somebody_is_done
            a_name_too_long_for_a_manager_locks_all_the_same
            waiting_is_by_watch_and_sees_who_left
            waiters_are_found_by_their_label_in_the_order_of_the_hint
            a_count_sees_every_member_and_every_held_lease
            two_fresh_reads_tell_a_missing_node_and_another_one
        }
    };
}
pub(crate) use every_case;

pub async fn a_free_slot_is_made_once_and_by_whoever_comes_first(world: &World) {
    let free = world.free_lease().await;
    assert_eq!(
        (free.name.as_str(), free.holder.as_ref()),
        ("dogwatch-default-0", None)
    );
    world
        .hand("b")
        .ensure_leases(&group(), 2, &[])
        .await
        .unwrap();
    let leases = world.hand("b").list_slots(&group()).await.unwrap();
    assert_eq!(leases.len(), 2);
    assert_eq!(leases[0], free, "what was there is left alone");
}

pub async fn a_slot_that_lost_its_label_is_found_again(world: &World) {
    world.free_lease().await;
    world
        .patch_lease(json!({ "metadata": { "labels": { "dogwatch.dev/group": null } } }))
        .await;
    let hand = world.hand("a");
    assert_eq!(hand.list_slots(&group()).await.unwrap(), []);
    hand.ensure_leases(&group(), 1, &[]).await.unwrap();
    assert_eq!(hand.list_slots(&group()).await.unwrap().len(), 1);
}

pub async fn the_winner_is_written_with_its_record_and_nothing_is_lost_of_it(world: &World) {
    let free = world.free_lease().await;
    let held = world.win("a", &free).await;
    assert_eq!(held.holder, Some(HolderId::for_node(&world.node_name("a"))));
    assert_eq!(held.record, Some(world.record("a", "coordinator/a")));
    assert_eq!(
        held,
        world.lease().await,
        "the answer is what everybody sees"
    );
}

pub async fn a_second_bidder_is_refused_by_the_server_itself(world: &World) {
    let free = world.free_lease().await;
    let held = world.win("a", &free).await;
    let why = lost(
        world
            .hand("b")
            .bid_for_lease(&free, &world.record("b", "coordinator/b"))
            .await,
    );
    assert!(why.contains("409"), "{why}");
    // Not even a bid that saw the holder and sends the newest resourceVersion wins.
    let why = lost(
        world
            .hand("b")
            .bid_for_lease(&held, &world.record("b", "coordinator/b"))
            .await,
    );
    assert!(
        why.contains(held.holder.as_ref().unwrap().as_str()),
        "names who is in the way: {why}"
    );
    assert_eq!(world.lease().await, held);
}

pub async fn of_many_bidders_at_once_exactly_one_wins(world: &World) {
    let free = world.free_lease().await;
    let bids = (0..16).map(|number| {
        let short = format!("n{number}");
        let (hand, record) = (world.hand(&short), world.record(&short, "coordinator/a"));
        let free = &free;
        async move { matches!(hand.bid_for_lease(free, &record).await, BidOutcome::Won(_)) }
    });
    let outcomes = futures::future::join_all(bids).await;
    assert_eq!(outcomes.iter().filter(|won| **won).count(), 1);
}

pub async fn a_late_duplicate_of_a_bid_takes_nothing(world: &World) {
    let free = world.free_lease().await;
    let hand = world.hand("a");
    let held = world.win("a", &free).await;
    let released = freed(hand.release_lease(&held, &done()).await);
    lost(
        hand.bid_for_lease(&free, &world.record("a", "coordinator/a"))
            .await,
    );
    assert_eq!(world.lease().await, released);
}

pub async fn a_late_duplicate_of_a_release_frees_nobody_elses_lock(world: &World) {
    let free = world.free_lease().await;
    let first = world.win("a", &free).await;
    let released = freed(world.hand("a").release_lease(&first, &done()).await);
    let second = world.win("b", &released).await;
    assert_changed(&world.hand("a").release_lease(&first, &done()).await);
    assert_eq!(world.lease().await, second);
    // Nor does it touch the same holder's next lock.
    let released = freed(world.hand("b").release_lease(&second, &done()).await);
    let third = world.win("a", &released).await;
    assert_changed(&world.hand("a").release_lease(&first, &done()).await);
    assert_eq!(world.lease().await, third);
}

pub async fn a_bid_for_a_lease_that_was_deleted_does_not_make_it_anew(world: &World) {
    let free = world.free_lease().await;
    world.delete_lease(&free).await;
    lost(world.bid("a", &free).await);
    assert_eq!(world.hand("a").list_slots(&group()).await.unwrap(), []);
}

pub async fn a_bid_for_another_incarnation_of_the_lease_is_refused(world: &World) {
    let free = world.free_lease().await;
    world.delete_lease(&free).await;
    let anew = world.free_lease().await;
    let (hand, record) = (world.hand("a"), world.record("a", "coordinator/a"));
    lost(hand.bid_for_lease(&free, &record).await);
    assert_changed(&hand.release_lease(&free, &done()).await);
    // A different UID alone is refused too: 422, it is immutable.
    let mixed = ObservedLease {
        resource_version: anew.resource_version.clone(),
        ..free
    };
    let refused = hand.bid_for_lease(&mixed, &record).await;
    assert!(matches!(refused, BidOutcome::Refused(_)), "{refused:?}");
    let refused = hand.release_lease(&mixed, &done()).await;
    assert!(matches!(refused, ReleaseOutcome::Refused(_)), "{refused:?}");
    assert_eq!(world.lease().await, anew);
}

pub async fn what_a_half_release_left_behind_is_swept_by_the_next_bidder(world: &World) {
    let free = world.free_lease().await;
    world.win("a", &free).await;
    world
        .patch_lease(json!({ "spec": { "holderIdentity": null } }))
        .await;
    let half = world.lease().await;
    assert!(half.leftover && half.holder.is_none(), "{half:?}");
    let unswept = ObservedLease {
        leftover: false,
        ..half.clone()
    };
    let hand = world.hand("b");
    lost(
        hand.bid_for_lease(&unswept, &world.record("b", "coordinator/b"))
            .await,
    );
    let held = won(hand
        .bid_for_lease(&half, &world.record("b", "coordinator/b"))
        .await);
    assert_eq!(held.holder, Some(HolderId::for_node(&world.node_name("b"))));
}

pub async fn a_broken_lock_can_be_taken_by_anybody(world: &World) {
    let free = world.free_lease().await;
    let held = world.win("a", &free).await;
    let broken = freed(world.hand("b").break_lock(&held).await);
    assert_eq!((broken.holder.as_ref(), broken.leftover), (None, false));
    world.win("c", &broken).await;
}

pub async fn breaking_on_old_evidence_breaks_nothing(world: &World) {
    let free = world.free_lease().await;
    let old = world.win("a", &free).await;
    let released = freed(world.hand("a").release_lease(&old, &done()).await);
    let held = world.win("c", &released).await;
    assert_changed(&world.hand("b").break_lock(&old).await);
    assert_eq!(world.lease().await, held);
}

pub async fn a_new_run_takes_over_and_the_older_one_fails_its_next_write(world: &World) {
    let free = world.free_lease().await;
    let hand = world.hand("a");
    let older = world.win("a", &free).await;
    let run = RunId::new("coordinator/b").unwrap();
    let record = lock::adopt_record(&older, &run, world.record("a", "coordinator/b"));
    let newer = won(hand.bid_for_lease(&older, &record).await);
    assert_eq!(newer.record.as_ref().unwrap().runs, [run]);
    assert_changed(&hand.release_lease(&older, &done()).await);
    lost(
        hand.bid_for_lease(&older, older.record.as_ref().unwrap())
            .await,
    );
    assert_eq!(world.lease().await, newer);
}

pub async fn giving_up_takes_only_ones_own_run_and_the_last_one_out_frees(world: &World) {
    let free = world.free_lease().await;
    let hand = world.hand("a");
    let (me, mine) = (
        hand.holder_id().clone(),
        RunId::new("coordinator/a").unwrap(),
    );
    let request = RunId::new("api/x").unwrap();
    let first = world.win("a", &free).await;
    let record = lock::adopt_record(&first, &request, world.record("a", "api/x"));
    let both = won(hand.bid_for_lease(&first, &record).await);
    let lock::LockReleasePlan::RemoveRun { remaining } = lock::plan_release(&both, &me, &mine)
    else {
        panic!("another one relies on it: {both:?}");
    };
    let one = won(hand.remove_run(&both, remaining).await);
    assert_eq!(
        one.record.as_ref().unwrap().runs,
        std::slice::from_ref(&request)
    );
    assert_eq!(
        lock::plan_release(&one, &me, &request),
        lock::LockReleasePlan::Free
    );
    assert_eq!(freed(hand.release_lease(&one, &done()).await).holder, None);
}

pub async fn the_same_write_again_changes_nothing(world: &World) {
    let free = world.free_lease().await;
    let held = world.win("a", &free).await;
    let again = won(world.bid("a", &held).await);
    assert_eq!(
        again, held,
        "so the run id must differ where the last writer must be known"
    );
}

pub async fn the_leaver_calls_the_next_and_the_call_hinders_no_bid(world: &World) {
    let free = world.free_lease().await;
    let held = world.win("a", &free).await;
    let next = vec![
        HolderId::for_node(&world.node_name("b")),
        HolderId::for_node(&world.node_name("c")),
    ];
    let leaving = LeaveReason::Done { next: next.clone() };
    let released = freed(world.hand("a").release_lease(&held, &leaving).await);
    assert_eq!(released.next_waiters, next);
    let taken = world.win("b", &released).await;
    let again = freed(world.hand("b").release_lease(&taken, &done()).await);
    assert_eq!(
        again.next_waiters,
        [],
        "an old call does not outlive the next leaver"
    );
}

pub async fn giving_back_over_budget_is_counted_until_somebody_is_done(world: &World) {
    let mut lease = world.free_lease().await;
    for (short, times) in [("a", 1), ("b", 2)] {
        let held = world.win(short, &lease).await;
        lease = freed(
            world
                .hand(short)
                .release_lease(&held, &LeaveReason::OverBudget)
                .await,
        );
        assert_eq!((lease.yield_count, lease.next_waiters.len()), (times, 0));
    }
    let held = world.win("c", &lease).await;
    let released = freed(world.hand("c").release_lease(&held, &done()).await);
    assert_eq!(released.yield_count, 0);
}

pub async fn a_name_too_long_for_a_manager_locks_all_the_same(world: &World) {
    let free = world.free_lease().await;
    let long = "x".repeat(200);
    let held = world.win(&long, &free).await;
    assert!(held.holder.as_ref().unwrap().as_str().len() <= lock::FIELD_MANAGER_LIMIT);
    let name = lock::holder_node_name(&held).unwrap();
    assert_eq!(name, world.node_name(&long));
}

pub async fn waiting_is_by_watch_and_sees_who_left(world: &World) {
    let free = world.free_lease().await;
    let hand = world.hand("w");
    let mut slots = GroupSlots::new(group());
    let mut watch = Box::pin(hand.watch_slots(&group(), || 0.5));
    let seen = until_free(&mut watch, &mut slots, at(1)).await;
    assert_eq!((&seen, seen.freed_at), (&free, None));
    let held = world.win("a", &free).await;
    assert_eq!(until_held(&mut watch, &mut slots, at(2)).await, held);
    let next = vec![HolderId::for_node(&world.node_name("w"))];
    freed(
        world
            .hand("a")
            .release_lease(&held, &LeaveReason::Done { next: next.clone() })
            .await,
    );
    let seen = until_free(&mut watch, &mut slots, at(3)).await;
    assert_eq!(
        (seen.next_waiters, seen.freed_at),
        (next, Some(Duration::from_secs(3)))
    );
}

fn no_policies() -> dogwatch_core::policy::ClusterPolicies {
    dogwatch_core::policy::ClusterPolicies::Known(Vec::new())
}

pub async fn waiters_are_found_by_their_label_in_the_order_of_the_hint(world: &World) {
    let wait = |since: &str| json!({ "dogwatch.dev/reboot": format!(r#"{{"since":"{since}"}}"#) });
    let waiting = json!({ "dogwatch.dev/reboot": "waiting" });
    let control_plane = json!({ "dogwatch.dev/reboot": "waiting",
        "node-role.kubernetes.io/control-plane": "" });
    world
        .make_node("late", &waiting, &wait("2026-01-01T00:00:09Z"))
        .await;
    world
        .make_node("early", &waiting, &wait("2026-01-01T00:00:01Z"))
        .await;
    world
        .make_node("broken", &waiting, &json!({ "dogwatch.dev/reboot": "{" }))
        .await;
    world
        .make_node("idle", &json!({}), &wait("2026-01-01T00:00:00Z"))
        .await;
    world
        .make_node("cp", &control_plane, &wait("2026-01-01T00:00:00Z"))
        .await;
    let hand = world.hand("leaver");
    let mut waiters = hand.list_waiters(&group(), &no_policies()).await.unwrap();
    waiters.retain(|waiter| waiter.holder.as_str().contains(world.prefix()));
    let order = lock::order_next_waiters(&waiters, hand.holder_id(), None, lock::MAX_NEXT_WAITERS);
    assert_eq!(
        order,
        ["early", "late", "broken"].map(|name| HolderId::for_node(&world.node_name(name)))
    );
}

/// Seven nodes: one that asks, one that is available, three that are unavailable for different
/// reasons, one that counts nowhere, and one of another group.
async fn a_mixed_group(world: &World) {
    let none = json!({});
    let ignored = json!({ "dogwatch.dev/ignore": "true" });
    let control_plane = json!({ "node-role.kubernetes.io/control-plane": "" });
    for (short, labels) in [
        ("me", &none),
        ("fine", &none),
        ("down", &none),
        ("cordoned", &none),
        ("holder", &none),
        ("parts", &ignored),
        ("cp", &control_plane),
    ] {
        world.make_node(short, labels, &none).await;
    }
    for (short, ready, unschedulable) in [
        ("me", "True", false),
        ("fine", "True", false),
        ("down", "Unknown", false),
        ("cordoned", "True", true),
        ("holder", "True", false),
        ("parts", "False", true),
    ] {
        world.make_ready(short, ready, unschedulable).await;
    }
}

pub async fn a_count_sees_every_member_and_every_held_lease(world: &World) {
    a_mixed_group(world).await;
    world
        .hand("me")
        .ensure_leases(&group(), 2, &[])
        .await
        .unwrap();
    let leases = world.hand("me").list_slots(&group()).await.unwrap();
    let mine = world.win("me", &leases[0]).await;
    world.win("holder", &leases[1]).await;
    let mut reads = world
        .hand("me")
        .read_budget_inputs(&mine, &group(), &no_policies())
        .await
        .unwrap();
    reads
        .nodes
        .retain(|row| row.name.as_str().starts_with(world.prefix()));
    assert_eq!(
        reads.nodes.len(),
        6,
        "the control plane is another group: {:?}",
        reads.nodes
    );
    let count = lock::count_unavailable(&reads, world.hand("me").holder_id());
    let out: Vec<String> = count
        .unavailable
        .iter()
        .map(|out| format!("{} {}", out.name.replace(world.prefix(), ""), out.why))
        .collect();
    assert_eq!(
        out,
        [
            "-cordoned unschedulable",
            "-down not ready",
            "-holder holds dogwatch-default-1"
        ]
    );
    assert_eq!(
        (count.for_resource_version, count.members),
        (mine.resource_version, 5)
    );
    assert!(count.higher_slot_undecided);
}

pub async fn two_fresh_reads_tell_a_missing_node_and_another_one(world: &World) {
    let hand = world.hand("judge");
    let name = world.node_name("a");
    assert_eq!(
        hand.read_holder_node(&name).await.unwrap(),
        HolderNode::Gone
    );
    world.make_node("a", &json!({}), &json!({})).await;
    let HolderNode::There { uid } = hand.read_holder_node(&name).await.unwrap() else {
        panic!("it was made");
    };
    let free = world.free_lease().await;
    let held = world.win("a", &free).await;
    let there = HolderNode::There { uid: uid.clone() };
    let reads = lock::HolderReads {
        nodes: [there.clone(), there],
        apart: lock::MIN_HOLDER_READ_INTERVAL,
    };
    let evidence = lock::find_break_evidence(&held, &reads).expect("the lock was taken for uid-a");
    assert!(evidence.to_string().contains(&uid), "{evidence}");
}

//! Cases of the lock API: the same functions run on the embedded and on the real API server. Each
//! case is a sentence of specification §2.7 or §2.2.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

pub mod world;

use std::collections::BTreeSet;
use std::time::Duration;

use dogwatch_controller::lock::service::{
    LockAnswer, LockRequest, LockRequester, LockService as _, UnlockAnswer, WaitMode,
};
use dogwatch_core::fleetlock::fleetlock_client_id;
use dogwatch_core::limit::UnavailabilityLimit;
use dogwatch_core::name::{GroupName, NodeName};
use dogwatch_core::reboot::RebootConfig;
use dogwatch_k8s::lock::{LeaseTakeOutcome, ReleaseOutcome, RemediationLeaseClient};
use serde_json::json;
use tokio::time::{Instant, timeout};

use kube::ResourceExt as _;
use world::{
    PATIENCE, World, all_told, coordinator_in, have, host, is_held, leave, lock, try_lock, unlock,
    within,
};

/// Passes every case to a macro that makes a test of it.
macro_rules! every_api_case {
    ($test:ident) => {
        $test! {
            one_host_holds_and_each_replica_says_so_again
            a_host_that_asks_again_leaves_room_for_as_many_as_before
            a_host_whose_group_has_changed_is_denied_its_old_lease_only_now_and_then
            a_host_that_holds_nothing_may_unlock
            who_does_not_want_to_wait_is_told_who_holds
            waiters_at_one_replica_are_served_in_the_order_they_came
            a_client_that_goes_away_leaves_nothing_and_frees_nothing_that_its_retry_got
            a_fleetlock_group_is_a_lock_of_its_own
            no_host_is_let_go_beside_a_machine_that_is_remediated_whose_node_is_deleted
            a_fleetlock_group_that_nobody_named_makes_no_lease
            a_replicas_own_lease_names_who_waits_and_goes_at_the_end
            a_replica_that_ends_gives_back_what_nobody_was_told
            a_node_is_cordoned_and_drained_before_its_host_is_told_and_comes_back_after
            nobody_elses_cordon_is_removed
            a_drain_that_fails_is_undone_and_answered_with_its_reason
            a_node_that_its_coordinator_has_in_hand_is_refused_untouched
            an_uncordon_during_the_drain_is_a_veto
            a_client_that_goes_away_during_the_drain_leaves_the_node_as_it_was
            a_retry_takes_the_drain_over_and_the_first_call_may_go_away
            an_unlock_elsewhere_ends_a_drain_under_way
            a_node_that_is_deleted_during_its_drain_is_not_told_as_held
            a_host_whose_node_was_deleted_for_its_remediation_waits_until_it_is_back
            a_host_that_becomes_a_node_while_it_waits_is_written_on_its_lease_as_that_node
            an_unlock_uncordons_the_node_of_the_lock_although_its_host_is_not_found_any_more
            a_host_whose_machine_id_another_node_has_too_is_refused
        }
    };
}
pub(crate) use every_api_case;

fn settles(answer: &LockAnswer) -> bool {
    matches!(answer, LockAnswer::Busy { .. })
}

pub async fn one_host_holds_and_each_replica_says_so_again(world: &World) {
    let (one, two) = (world.replica(), world.replica());
    let (a, b) = (host("a"), host("b"));
    have(&one, &a).await;
    for replica in [&one, &two, &one, &two, &one] {
        have(replica, &a).await;
        assert!(settles(&try_lock(replica, &b).await));
    }
    let held = world.held().await;
    assert_eq!(held.len(), 1);
    assert!(held[0].0 == "api/a" && all_told(&held[0].1), "{held:?}");
    assert!(
        held[0].1.len() <= 4,
        "repeating does not fill the record: {held:?}"
    );
    leave(&two, &a).await;
    world.until_free().await;
    have(&two, &b).await;
    leave(&one, &b).await;
}

pub async fn a_host_that_asks_again_leaves_room_for_as_many_as_before(world: &World) {
    world.add_ready_nodes(9).await;
    let fifth = || RebootConfig {
        max_unavailable: UnavailabilityLimit::Percent(20),
        ..RebootConfig::default()
    };
    let (one, two) = (world.replica_with(fifth()), world.replica_with(fifth()));
    let (a, b) = (host("a"), host("b"));
    for replica in [&one, &two, &one] {
        have(replica, &a).await;
        assert_eq!(world.maxima().await, [2], "a fifth of ten nodes");
    }
    have(&two, &b).await;
    leave(&one, &a).await;
    leave(&one, &b).await;
}

pub async fn a_host_whose_group_has_changed_is_denied_its_old_lease_only_now_and_then(
    world: &World,
) {
    let one = world.replica();
    let client = host(&world.base.node);
    world.hold_in_the_old_group().await;
    let LockAnswer::Busy { why } = try_lock(&one, &client).await else {
        panic!("the request of the replica that died is still there")
    };
    assert!(why.contains("now belongs to group default"), "{why}");

    let mut versions = BTreeSet::from([world.old_lease().await.resource_version]);
    let waiting = tokio::spawn(lock(&one, &client));
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        versions.insert(world.old_lease().await.resource_version);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Two tries at once and one after 5 s; each writes the request's id and removes it again.
    assert!((2..=7).contains(&versions.len()), "{versions:?}");
    let own = world.replicas().await.remove(0);
    let told = own.annotations().get("dogwatch.dev/waiting-hosts");
    assert!(
        told.is_some_and(|text| text.contains("LockHeldByOther")),
        "{told:?}"
    );

    // As the healer does.
    let lease = world.old_lease().await;
    let freed = world.locks_of_node().break_lock(&lease).await;
    assert!(matches!(freed, ReleaseOutcome::Freed(_)), "{freed:?}");
    assert!(is_held(&waiting.await.unwrap()));
    leave(&one, &client).await;
}

pub async fn a_host_that_holds_nothing_may_unlock(world: &World) {
    let one = world.replica();
    have(&one, &host("a")).await;
    leave(&one, &host("b")).await;
    leave(&one, &host("b")).await;
    assert_eq!(world.held().await.len(), 1, "nobody frees another's lock");
    leave(&one, &host("a")).await;
    leave(&one, &host("a")).await;
}

pub async fn who_does_not_want_to_wait_is_told_who_holds(world: &World) {
    let one = world.replica();
    have(&one, &host("a")).await;
    let LockAnswer::Busy { why } = try_lock(&one, &host("b")).await else {
        panic!("a holds it")
    };
    assert!(why.contains("api/a"), "{why}");
    leave(&one, &host("a")).await;
    assert!(is_held(&try_lock(&one, &host("b")).await));
    leave(&one, &host("b")).await;
}

pub async fn waiters_at_one_replica_are_served_in_the_order_they_came(world: &World) {
    let served = order_of_six_at_two_replicas(world).await;
    let of_replica = |odd: usize| served.iter().filter(move |number| **number % 2 == odd);
    assert!(
        of_replica(0).is_sorted() && of_replica(1).is_sorted(),
        "{served:?}"
    );
}

/// Six clients ask in turn while the lock is held, the even ones at one replica and the odd ones at
/// another. Returns the order in which they got the lock.
pub async fn order_of_six_at_two_replicas(world: &World) -> Vec<usize> {
    let replicas = [world.replica(), world.replica()];
    have(&replicas[0], &host("first")).await;
    let (told, mut order) = tokio::sync::mpsc::unbounded_channel();
    for number in 0..6_usize {
        let (replica, told) = (replicas[number % 2].clone(), told.clone());
        let client = host(&format!("h{number}"));
        let waiting = replica.count_waiting();
        let asked = replica.clone();
        tokio::spawn(async move {
            have(&asked, &client).await;
            told.send(number).unwrap();
            leave(&asked, &client).await;
        });
        within(async {
            while replica.count_waiting() == waiting {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        // Waiters are ordered by arrival in fractions of a second; replicas publish their waiters
        // once a second.
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    tokio::time::sleep(Duration::from_millis(2500)).await;
    leave(&replicas[1], &host("first")).await;
    let mut served = Vec::new();
    for _ in 0..6 {
        served.push(within(order.recv()).await.unwrap());
    }
    world.until_free().await;
    served
}

pub async fn a_client_that_goes_away_leaves_nothing_and_frees_nothing_that_its_retry_got(
    world: &World,
) {
    let (one, two) = (world.replica(), world.replica());
    let client = host("a");
    for millis in (0..60).step_by(3) {
        let first = one.lock_host(LockRequest {
            client: client.clone(),
            wait: WaitMode::Always,
        });
        let gone = timeout(Duration::from_millis(millis), first);
        let (gone, retry) = tokio::join!(gone, lock(&two, &client));
        assert!(is_held(&retry), "{millis}: {retry:?}");
        let told = |held: &[(String, Vec<String>)]| held.len() == 1 && all_told(&held[0].1);
        world
            .until_held("the one that went away left its id", told)
            .await;
        let told_first = gone.is_ok_and(|answer| is_held(&answer));
        leave(if told_first { &one } else { &two }, &client).await;
        assert_eq!(world.held().await, [], "{millis}");
    }
    for millis in (0..60).step_by(3) {
        let first = one.lock_host(LockRequest {
            client: client.clone(),
            wait: WaitMode::Always,
        });
        match timeout(Duration::from_millis(millis), first).await {
            Ok(_) => leave(&two, &client).await,
            Err(_) => world.until_free().await,
        }
    }
}

pub async fn no_host_is_let_go_beside_a_machine_that_is_remediated_whose_node_is_deleted(
    world: &World,
) {
    let one = world.replica();
    let fleetlock = dogwatch_controller::lock::service::LockRequester::FleetLock {
        group: "workers".into(),
        id: "x".into(),
    };
    let remedy = RemediationLeaseClient::new(world.base.client.clone(), &world.base.namespace);
    // No Node of this name exists.
    let node = NodeName::new("deleted").unwrap();
    let take = async |group: Option<GroupName>| {
        let now = jiff::Timestamp::UNIX_EPOCH;
        let taken = remedy
            .take_lease(&node, false, group, "node/deleted", now)
            .await;
        let LeaseTakeOutcome::Held(held) = taken.unwrap() else {
            panic!("nobody else holds it")
        };
        held
    };
    // A host whose group is unknown counts in each group.
    let held = take(None).await;
    for client in [&host("a"), &fleetlock] {
        let LockAnswer::Busy { why } = try_lock(&one, client).await else {
            panic!("{client}: both are out")
        };
        assert!(why.contains("dogwatch-remedy-deleted"), "{why}");
    }
    remedy.free_lease(&held).await.unwrap();
    let held = take(Some(GroupName::default_group())).await;
    assert!(settles(&try_lock(&one, &host("a")).await));
    have(&one, &fleetlock).await;
    leave(&one, &fleetlock).await;
    remedy.free_lease(&held).await.unwrap();
    have(&one, &host("a")).await;
    leave(&one, &host("a")).await;
}

pub async fn a_fleetlock_group_is_a_lock_of_its_own(world: &World) {
    let one = world.replica();
    let client =
        |group: &str, id: &str| dogwatch_controller::lock::service::LockRequester::FleetLock {
            group: group.into(),
            id: id.into(),
        };
    let clients = [client("Eu", "x"), client("eu", "x"), client("us.west", "x")];
    for client in &clients {
        have(&one, client).await;
    }
    assert!(
        settles(&try_lock(&one, &client("Eu", "X")).await),
        "ids are case-sensitive"
    );
    let names: Vec<String> = world
        .leases()
        .await
        .into_iter()
        .map(|lease| lease.name)
        .collect();
    assert!(names.contains(&"dogwatch-eu-0".to_owned()), "{names:?}");
    assert_eq!(
        names
            .iter()
            .filter(|name| name.starts_with("dogwatch-sha256-"))
            .count(),
        2
    );
    for client in &clients {
        leave(&one, client).await;
    }
}

/// Clients choose the names of FleetLock groups, and each name would leave a Lease forever.
pub async fn a_fleetlock_group_that_nobody_named_makes_no_lease(world: &World) {
    let client = |group: &str| dogwatch_controller::lock::service::LockRequester::FleetLock {
        group: group.into(),
        id: "x".into(),
    };
    let named = world.replica_serving(&["storage"]);
    let any = world.replica_serving(&["*"]);
    let attempts = [
        (&named, "g1"),
        (&named, "Storage"),
        (&named, "default"),
        (&any, "default"),
        (&any, "control-plane"),
    ];
    for (replica, group) in attempts {
        for answer in [
            try_lock(replica, &client(group)).await,
            lock(replica, &client(group)).await,
        ] {
            let LockAnswer::Refused { why } = answer else {
                panic!("{group}: {answer:?}")
            };
            assert!(why.contains("--fleetlock-groups"), "{why}");
        }
        // A client that holds nothing may release, whatever its group is.
        leave(replica, &client(group)).await;
    }
    assert_eq!(world.leases().await, []);
    have(&named, &client("storage")).await;
    have(&any, &client("g1")).await;
    leave(&named, &client("storage")).await;
    leave(&any, &client("g1")).await;
}

pub async fn a_replicas_own_lease_names_who_waits_and_goes_at_the_end(world: &World) {
    let one = world.replica();
    have(&one, &host("a")).await;
    let waiting = tokio::spawn(lock(&one, &host("b")));
    let named = async {
        loop {
            let replicas = world.replicas().await;
            let own = replicas.first().map(|own| own.annotations().clone());
            let text = own.unwrap_or_default();
            let waiting = text.get("dogwatch.dev/waiting");
            let told = text.get("dogwatch.dev/waiting-hosts");
            let told = told.is_some_and(|text| {
                text.contains("api/b") && text.contains("LockHeldByOther") && text.contains("api/a")
            });
            if waiting.is_some_and(|text| text.contains("api/b")) && told {
                return replicas;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let replicas = within(named).await;
    assert_eq!(replicas.len(), 1);
    let labels = replicas[0].metadata.labels.clone().unwrap();
    assert_eq!(labels["dogwatch.dev/reboot"], "waiting");
    leave(&one, &host("a")).await;
    assert!(is_held(&waiting.await.unwrap()));
    leave(&one, &host("b")).await;
    assert!(one.shutdown(PATIENCE).await);
    assert_eq!(world.replicas().await.len(), 0);
}

pub async fn a_replica_that_ends_gives_back_what_nobody_was_told(world: &World) {
    let (one, two) = (world.replica(), world.replica());
    have(&one, &host("told")).await;
    let waits = tokio::spawn(lock(&one, &host("waits")));
    while one.count_waiting() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(one.shutdown(PATIENCE).await);
    let answer = waits.await.unwrap();
    assert!(
        matches!(answer, LockAnswer::Unavailable { .. }),
        "{answer:?}"
    );
    assert!(matches!(
        lock(&one, &host("late")).await,
        LockAnswer::Unavailable { .. }
    ));
    let held = world.held().await;
    assert!(
        held.len() == 1 && held[0].0 == "api/told",
        "what was told stays: {held:?}"
    );
    leave(&two, &host("told")).await;
}

pub async fn a_node_is_cordoned_and_drained_before_its_host_is_told_and_comes_back_after(
    world: &World,
) {
    let (one, two) = (world.replica(), world.replica());
    world.base.pod("web", json!({})).await;
    let client = host(&world.base.node);
    have(&one, &client).await;
    assert_eq!(world.base.pods().await, [] as [&str; 0]);
    let (closed, note) = world.closed().await;
    assert!(closed);
    assert_eq!(note.unwrap()["cordonedByUs"], true);
    have(&two, &client).await;
    leave(&two, &client).await;
    assert_eq!(world.closed().await, (false, None));
    world.until_free().await;
}

pub async fn nobody_elses_cordon_is_removed(world: &World) {
    let one = world.replica();
    world
        .patch_node(json!({"spec": {"unschedulable": true}}))
        .await;
    let client = host(&world.base.node);
    have(&one, &client).await;
    assert_eq!(world.closed().await.1.unwrap()["cordonedByUs"], false);
    leave(&one, &client).await;
    assert_eq!(world.closed().await, (true, None));
}

fn hasty() -> RebootConfig {
    RebootConfig {
        // Long enough for a list of the node's pods on a busy machine: the answer contains their
        // number.
        drain_timeout: Duration::from_secs(10),
        ..RebootConfig::default()
    }
}

pub async fn a_drain_that_fails_is_undone_and_answered_with_its_reason(world: &World) {
    let one = world.replica_with(hasty());
    world.base.budget("web", "web", 0).await;
    world
        .base
        .pod("web", json!({"metadata": {"labels": {"app": "web"}}}))
        .await;
    let client = host(&world.base.node);
    let LockAnswer::DrainFailed { why } = lock(&one, &client).await else {
        panic!("its budget allows nothing")
    };
    assert!(
        why.contains("not drained within 10s: 0 pods gone, 1 to go"),
        "{why}"
    );
    assert_eq!(world.closed().await, (false, None));
    assert_eq!(world.held().await, []);
    assert_eq!(world.base.pods().await, ["web"]);
}

pub async fn a_node_that_its_coordinator_has_in_hand_is_refused_untouched(world: &World) {
    let one = world.replica();
    let client = host(&world.base.node);
    for phase in ["draining", "rebooting", "returning"] {
        world.patch_node(coordinator_in(phase)).await;
        let before = world.node().await.metadata.resource_version;
        let answer = lock(&one, &client).await;
        assert!(
            matches!(answer, LockAnswer::Refused { .. }),
            "{phase}: {answer:?}"
        );
        assert_eq!(world.node().await.metadata.resource_version, before);
        assert_eq!(world.held().await, []);
    }
    world.patch_node(coordinator_in("waiting")).await;
    have(&one, &client).await;
    leave(&one, &client).await;
}

/// A node that cannot be drained, and a call that is draining it.
async fn stuck(
    world: &World,
    replica: &dogwatch_controller::lock::engine::LockEngine,
) -> tokio::task::JoinHandle<LockAnswer> {
    world.base.budget("web", "web", 0).await;
    world
        .base
        .pod("web", json!({"metadata": {"labels": {"app": "web"}}}))
        .await;
    let call = tokio::spawn(lock(replica, &host(&world.base.node)));
    world.until_closed(true).await;
    call
}

pub async fn an_uncordon_during_the_drain_is_a_veto(world: &World) {
    let one = world.replica();
    let call = stuck(world, &one).await;
    world
        .patch_node(json!({"spec": {"unschedulable": null}}))
        .await;
    let answer = call.await.unwrap();
    let LockAnswer::DrainFailed { why } = &answer else {
        panic!("{answer:?}")
    };
    assert!(why.contains("veto"), "{why}");
    assert_eq!(world.closed().await, (false, None));
    assert_eq!(world.held().await, []);
}

pub async fn a_client_that_goes_away_during_the_drain_leaves_the_node_as_it_was(world: &World) {
    let one = world.replica();
    let call = stuck(world, &one).await;
    call.abort();
    world.until_free().await;
    assert_eq!(world.closed().await, (false, None));
}

pub async fn a_retry_takes_the_drain_over_and_the_first_call_may_go_away(world: &World) {
    let (one, two) = (world.replica(), world.replica());
    let first = stuck(world, &one).await;
    let retry = tokio::spawn(lock(&two, &host(&world.base.node)));
    let both = |held: &[(String, Vec<String>)]| held.len() == 1 && held[0].1.len() == 2;
    world.until_held("the retry writes its id", both).await;
    first.abort();
    let alone = |held: &[(String, Vec<String>)]| held.len() == 1 && held[0].1.len() == 1;
    world
        .until_held("the first one takes its id away", alone)
        .await;
    assert!(world.closed().await.0, "the retry relies on the cordon");
    world.base.remove_budget("web").await;
    assert!(is_held(&retry.await.unwrap()));
    assert_eq!(world.closed().await.1.unwrap()["cordonedByUs"], true);
    leave(&one, &host(&world.base.node)).await;
    assert_eq!(world.closed().await, (false, None));
}

pub async fn an_unlock_elsewhere_ends_a_drain_under_way(world: &World) {
    let (one, two) = (world.replica(), world.replica());
    world.base.budget("web", "web", 0).await;
    world
        .base
        .pod("web", json!({"metadata": {"labels": {"app": "web"}}}))
        .await;
    let client = host(&world.base.node);
    let call = tokio::spawn(try_lock(&one, &client));
    world.until_closed(true).await;
    assert!(matches!(
        unlock(&two, &client).await,
        UnlockAnswer::Free { .. }
    ));
    let answer = call.await.unwrap();
    assert!(!is_held(&answer), "{answer:?}");
    world.until_free().await;
    assert_eq!(world.closed().await, (false, None));
}

pub async fn a_node_that_is_deleted_during_its_drain_is_not_told_as_held(world: &World) {
    let one = world.replica();
    let call = stuck(world, &one).await;
    world.delete_node().await;
    let answer = call.await.unwrap();
    let LockAnswer::DrainFailed { why } = &answer else {
        panic!("its pods were not seen to go: {answer:?}")
    };
    assert!(why.contains("was deleted before it was drained"), "{why}");
    world.until_free().await;
}

pub async fn a_host_whose_node_was_deleted_for_its_remediation_waits_until_it_is_back(
    world: &World,
) {
    let one = world.replica();
    let client = host(&world.base.node);
    world.begin_remediation().await;
    world.delete_node().await;
    let LockAnswer::Busy { why } = try_lock(&one, &client).await else {
        panic!("nobody would drain the node that comes back in a moment")
    };
    assert!(why.contains("is being remediated"), "{why}");
    assert_eq!(world.held().await, []);
    world.end_remediation().await;
    have(&one, &client).await;
    leave(&one, &client).await;
}

pub async fn a_host_that_becomes_a_node_while_it_waits_is_written_on_its_lease_as_that_node(
    world: &World,
) {
    let one = world.replica();
    let client = host(&world.base.node);
    world.delete_node().await;
    have(&one, &host("a")).await;
    let waiting = tokio::spawn(lock(&one, &client));
    within(async {
        while one.count_waiting() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    world.create_node_again().await;
    leave(&one, &host("a")).await;
    assert!(is_held(&waiting.await.unwrap()));
    let leases = world.leases().await.into_iter();
    let named: Vec<_> = leases.filter_map(|lease| lease.record?.node).collect();
    assert_eq!(named, [NodeName::new(world.base.node.as_str()).unwrap()]);
    assert!(world.closed().await.0);
    leave(&one, &client).await;
    assert_eq!(world.closed().await, (false, None));
}

const MACHINE_ID: &str = "0123456789abcdef0123456789abcdef";

/// The client that Zincati is on the machine with [`MACHINE_ID`].
fn zincati() -> LockRequester {
    LockRequester::FleetLock {
        group: "workers".into(),
        id: fleetlock_client_id(MACHINE_ID).unwrap(),
    }
}

pub async fn an_unlock_uncordons_the_node_of_the_lock_although_its_host_is_not_found_any_more(
    world: &World,
) {
    let (drains, only_locks) = (
        world.fleetlock_replica(true),
        world.fleetlock_replica(false),
    );
    let new_id = MACHINE_ID.replace('0', "f");
    for (unlocks, machine_id) in [(&only_locks, MACHINE_ID), (&drains, new_id.as_str())] {
        world.set_machine_id(&world.base.node, MACHINE_ID).await;
        have(&drains, &zincati()).await;
        assert!(world.closed().await.0);
        world.set_machine_id(&world.base.node, machine_id).await;
        leave(unlocks, &zincati()).await;
        assert_eq!(world.closed().await, (false, None), "{machine_id}");
        world.until_free().await;
    }
}

pub async fn a_host_whose_machine_id_another_node_has_too_is_refused(world: &World) {
    let one = world.fleetlock_replica(true);
    world.set_machine_id(&world.base.node, MACHINE_ID).await;
    have(&one, &zincati()).await;
    world.add_ready_nodes(1).await;
    let other = format!("{}-0", world.base.node);
    world.set_machine_id(&other, MACHINE_ID).await;
    let refusal = async || {
        let answer = lock(&one, &zincati()).await;
        let LockAnswer::Refused { why } = answer else {
            panic!("either host might reboot undrained: {answer:?}");
        };
        why
    };
    let why = refusal().await;
    assert!(
        why.contains(&world.base.node) && why.contains(&other),
        "{why}"
    );
    assert!(world.closed().await.0, "the lock that was told stays");
    leave(&one, &zincati()).await;
    assert_eq!(world.closed().await, (false, None));
    refusal().await;
    assert_eq!(world.closed().await, (false, None));
    assert_eq!(world.held().await, []);
}

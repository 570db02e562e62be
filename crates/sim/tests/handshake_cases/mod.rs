//! Planned reboots and remediations respect each other, and other operators see our reboots: the
//! same functions run on the embedded and on the real API server. Source: specification §2.2, §4.4.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

pub mod world;

use std::time::Duration;

use dogwatch_core::lock::BudgetVerdict;
use dogwatch_k8s::lock::{LeaseFreeOutcome, LeaseTakeOutcome, ReleaseOutcome};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use world::{World, control_plane, held};

/// Passes every case to a macro that makes a test of it.
macro_rules! every_case {
    ($test:ident) => {
        $test! {
            a_remediation_holds_its_lease_at_once_and_done_again_it_writes_nothing
            a_lease_is_made_free_and_never_deleted_and_only_as_it_was_seen
            another_remediation_of_the_same_node_takes_over_and_the_older_one_frees_nothing
            a_lease_taken_again_later_is_not_freed_by_a_late_call
            nodes_that_are_out_already_keep_their_leases_beside_each_other
            a_lease_that_somebody_else_holds_is_refused
            a_nodes_number_makes_no_slot_of_its_lease_and_every_budget_counts_it
            a_machine_that_is_remediated_counts_until_its_lease_is_freed_though_its_node_is_deleted
            a_remediated_node_that_held_the_slot_counts_also_once_its_slot_is_broken
            a_remediation_whose_record_names_no_group_counts_in_every_group
            a_control_plane_node_is_not_fenced_beside_a_planned_reboot_of_another_one
            no_control_plane_node_reboots_beside_the_remediation_of_another_one
            a_remediation_that_went_ahead_is_not_given_up_for_one_who_came_later
            what_crashed_between_its_lease_and_its_look_looks_again
            others_are_told_while_a_node_reboots_and_no_longer
            marks_of_others_are_left_alone_and_a_lease_is_taken_once_it_is_over
            a_dead_leaders_marks_are_taken_off_by_the_next_one
            a_node_that_does_not_come_back_is_theirs_after_its_timeout
        }
    };
}
pub(crate) use every_case;

const CP: &str = "control-plane";

pub async fn a_remediation_holds_its_lease_at_once_and_done_again_it_writes_nothing(world: &World) {
    let first = held(world.take("n1", false, "machine/ns/m").await);
    assert_eq!(first.subject.as_deref(), Some("machine/ns/m"));
    let lease = world.remedy_lease("n1").await;
    let spec = lease.spec.clone().unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("remedy"));
    let text = &lease.annotations()["dogwatch.dev/holder"];
    let record: Value = serde_json::from_str(text).unwrap();
    assert_eq!(
        record,
        json!({ "node": world.node_name("n1").as_str(), "subject": "machine/ns/m",
            "controlPlane": false, "group": "default", "since": "1970-01-01T00:00:00Z" })
    );
    assert_eq!(held(world.take("n1", false, "machine/ns/m").await), first);
    assert_eq!(world.remedy_lease("n1").await, lease);
    assert_eq!(world.remedy().list_held().await.unwrap(), [first]);
}

pub async fn a_lease_is_made_free_and_never_deleted_and_only_as_it_was_seen(world: &World) {
    let first = held(world.take("n1", false, "node/n1").await);
    let uid = world.remedy_lease("n1").await.uid();
    let remedy = world.remedy();
    assert_eq!(
        remedy.free_lease(&first).await.unwrap(),
        LeaseFreeOutcome::Done
    );
    assert_eq!(remedy.list_held().await.unwrap(), []);
    let free = world.remedy_lease("n1").await;
    assert_eq!(free.uid(), uid);
    let spec = free.spec.clone().unwrap();
    assert_eq!((spec.holder_identity, spec.acquire_time), (None, None));
    assert!(!free.annotations().contains_key("dogwatch.dev/holder"));

    let second = held(world.take("n1", false, "node/n1").await);
    assert_eq!(
        remedy.free_lease(&first).await.unwrap(),
        LeaseFreeOutcome::Changed
    );
    assert_eq!(
        remedy.list_held().await.unwrap(),
        [second],
        "a late duplicate"
    );
}

pub async fn a_lease_taken_again_later_is_not_freed_by_a_late_call(world: &World) {
    let first = held(world.take("n1", false, "node/n1").await);
    let (name, later) = (world.node_name("n1"), Timestamp::from_second(1).unwrap());
    let remedy = world.remedy();
    let again = remedy.take_lease(&name, false, None, "node/n1", later);
    let again = held(again.await.unwrap());
    assert_eq!(
        remedy.free_lease(&first).await.unwrap(),
        LeaseFreeOutcome::Changed
    );
    assert_eq!(remedy.list_held().await.unwrap(), [again]);
}

pub async fn nodes_that_are_out_already_keep_their_leases_beside_each_other(world: &World) {
    for node in ["cp1", "cp2"] {
        world.make_node(node, &control_plane(), None).await;
    }
    world.win("cp2", CP).await;
    let (remedy, now) = (world.remedy(), Timestamp::UNIX_EPOCH);
    for (number, node) in ["cp1", "cp2"].into_iter().enumerate() {
        let name = world.node_name(node);
        let taken = remedy.take_lease_of_out_node(&name, true, None, "node/x", now);
        let LeaseTakeOutcome::HeldWithConflict { held, .. } = taken.await.unwrap() else {
            panic!("both are out")
        };
        assert_eq!((&held.node, held.alone), (&name, false));
        let all = remedy.list_held().await.unwrap();
        assert!(all.len() == number + 1 && all.contains(&held), "{all:?}");
    }
}

pub async fn another_remediation_of_the_same_node_takes_over_and_the_older_one_frees_nothing(
    world: &World,
) {
    let first = held(world.take("n1", false, "machine/ns/m").await);
    let second = held(world.take("n1", false, "request/ns/r").await);
    assert_eq!(second.subject.as_deref(), Some("request/ns/r"));
    assert_eq!(
        world.remedy().free_lease(&first).await.unwrap(),
        LeaseFreeOutcome::Changed,
        "it is another's by now"
    );
    assert_eq!(world.remedy().list_held().await.unwrap(), [second]);
}

pub async fn a_lease_that_somebody_else_holds_is_refused(world: &World) {
    let first = held(world.take("n1", false, "node/n1").await);
    world.remedy().free_lease(&first).await.unwrap();
    let params = PatchParams::default();
    let body = Patch::Merge(json!({ "spec": { "holderIdentity": "somebody" } }));
    let patched = world.leases().patch(&first.lease, &params, &body).await;
    let patched = patched.unwrap();
    let LeaseTakeOutcome::Refused { by } = world.take("n1", false, "node/n1").await else {
        panic!("taken from somebody")
    };
    assert!(by.contains("somebody"), "{by}");
    assert_eq!(world.remedy_lease("n1").await, patched);
    assert_eq!(world.remedy().list_held().await.unwrap(), []);
}

pub async fn a_nodes_number_makes_no_slot_of_its_lease_and_every_budget_counts_it(world: &World) {
    world.make_node("worker-0", &json!({}), None).await;
    world.make_node("n2", &json!({}), None).await;
    held(world.take("worker-0", false, "machine/ns/m").await);
    let lease = world.win("n2", "default").await;
    let (count, _) = world.count("n2", &lease, "default").await;
    let name = world.node_name("worker-0");
    let ours = count.unavailable.iter();
    let mut ours = ours.filter(|out| out.name == name.as_str());
    let why = format!("holds dogwatch-remedy-{name}");
    assert_eq!(ours.next().unwrap().why, why);
    let slots = world.hand("n2").list_all_slots().await.unwrap();
    assert_eq!(slots, [lease]);
}

pub async fn a_machine_that_is_remediated_counts_until_its_lease_is_freed_though_its_node_is_deleted(
    world: &World,
) {
    for node in ["n1", "n2"] {
        world.make_node(node, &json!({}), None).await;
    }
    let remedy = held(world.take("n1", false, "machine/ns/m").await);
    world.delete_node("n1").await;
    let lease = world.win("n2", "default").await;
    let out = world.counted("n2", &lease, "default", "n1").await;
    assert_eq!(out, Some(format!("holds {}", remedy.lease)));
    let other = world.win("n2", "other").await;
    assert_eq!(world.counted("n2", &other, "other", "n1").await, None);
    // Its kubelet has registered, but the Node is not Ready for long enough.
    world.make_node("n1", &json!({}), None).await;
    let out = world.counted("n2", &lease, "default", "n1").await;
    assert_eq!(out, Some(format!("holds {}", remedy.lease)));
    world.remedy().free_lease(&remedy).await.unwrap();
    assert_eq!(world.counted("n2", &lease, "default", "n1").await, None);
}

pub async fn a_remediated_node_that_held_the_slot_counts_also_once_its_slot_is_broken(
    world: &World,
) {
    for node in ["n1", "n2"] {
        world.make_node(node, &json!({}), None).await;
    }
    let slot = world.win("n1", "default").await;
    let remedy = held(world.take("n1", false, "machine/ns/m").await);
    world.delete_node("n1").await;
    let broken = world.hand("n2").break_lock(&slot).await;
    assert!(matches!(broken, ReleaseOutcome::Freed(_)), "{broken:?}");
    let lease = world.win("n2", "default").await;
    let out = world.counted("n2", &lease, "default", "n1").await;
    assert_eq!(out, Some(format!("holds {}", remedy.lease)));
}

pub async fn a_remediation_whose_record_names_no_group_counts_in_every_group(world: &World) {
    for node in ["n1", "n2"] {
        world.make_node(node, &json!({}), None).await;
    }
    let remedy = held(world.take("n1", false, "machine/ns/m").await);
    world.delete_node("n1").await;
    let lease = world.win("n2", "other").await;
    let out = Some(format!("holds {}", remedy.lease));
    let counted = || world.counted("n2", &lease, "other", "n1");
    assert_eq!(counted().await, None, "it is of another group");
    // A record as an older version wrote it, and one that is unreadable.
    let older = json!({ "node": world.node_name("n1").as_str(), "subject": "machine/ns/m",
        "controlPlane": false, "since": "1970-01-01T00:00:00Z" });
    for record in [older.to_string(), "{".to_owned()] {
        let body = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "annotations": { "dogwatch.dev/holder": record } },
            "spec": { "holderIdentity": "remedy", "acquireTime": "1970-01-01T00:00:00.000000Z" } });
        let (params, body) = (PatchParams::apply("remedy"), Patch::Apply(body));
        let patched = world.leases().patch(&remedy.lease, &params, &body).await;
        patched.unwrap();
        assert_eq!(counted().await, out, "{record}");
    }
    // A new take that knows the group writes it.
    held(world.take("n1", false, "machine/ns/m").await);
    assert_eq!(counted().await, None);
}

pub async fn a_control_plane_node_is_not_fenced_beside_a_planned_reboot_of_another_one(
    world: &World,
) {
    for node in ["cp1", "cp2"] {
        world.make_node(node, &control_plane(), None).await;
    }
    // The group's name does not matter: a policy whose selector names the role also makes it a
    // control-plane group.
    for group in [CP, "masters"] {
        let slot = world.win("cp2", group).await;
        let LeaseTakeOutcome::Refused { by } = world.take("cp1", true, "node/cp1").await else {
            panic!("both are out")
        };
        assert!(by.contains(world.node_name("cp2").as_str()), "{by}");
        assert_eq!(
            world.remedy().list_held().await.unwrap(),
            [],
            "it waits for none"
        );
        // Its own planned reboot does not block it.
        let own = held(world.take("cp2", true, "node/cp2").await);
        world.remedy().free_lease(&own).await.unwrap();
        // It does not block a worker.
        let worker = held(world.take("w1", false, "node/w1").await);
        world.remedy().free_lease(&worker).await.unwrap();
        let hand = world.hand("cp2");
        let done = dogwatch_k8s::lock::LeaveReason::Done { next: Vec::new() };
        hand.release_lease(&slot, &done).await;
        let now = held(world.take("cp1", true, "node/cp1").await);
        world.remedy().free_lease(&now).await.unwrap();
    }
}

pub async fn no_control_plane_node_reboots_beside_the_remediation_of_another_one(world: &World) {
    for node in ["cp1", "cp2"] {
        world.make_node(node, &control_plane(), None).await;
    }
    let remedy = held(world.take("cp1", true, "node/cp1").await);
    let slot = world.win("cp2", CP).await;
    // Even if two nodes may be unavailable.
    let (_, verdict) = world.count("cp2", &slot, CP).await;
    assert!(
        matches!(verdict, BudgetVerdict::YieldOverBudget { .. }),
        "{verdict:?}"
    );
    world.remedy().free_lease(&remedy).await.unwrap();
    let worker = held(world.take("w1", false, "node/w1").await);
    let (_, verdict) = world.count("cp2", &slot, CP).await;
    assert_eq!(verdict, BudgetVerdict::Go);
    world.remedy().free_lease(&worker).await.unwrap();
}

pub async fn a_remediation_that_went_ahead_is_not_given_up_for_one_who_came_later(world: &World) {
    for node in ["cp1", "cp2"] {
        world.make_node(node, &control_plane(), None).await;
    }
    let first = held(world.take("cp1", true, "node/cp1").await);
    // The coordinator will count, and then give the lock back.
    world.win("cp2", CP).await;
    assert_eq!(held(world.take("cp1", true, "node/cp1").await), first);
}

pub async fn what_crashed_between_its_lease_and_its_look_looks_again(world: &World) {
    for node in ["cp1", "cp2"] {
        world.make_node(node, &control_plane(), None).await;
    }
    let slot = world.win("cp2", CP).await;
    let worker = held(world.take("cp1", false, "node/cp1").await);
    assert_eq!(worker.subject.as_deref(), Some("node/cp1"));
    // As a crash leaves it: the lock is taken, and nobody has checked yet whether the reboot may
    // begin.
    let LeaseTakeOutcome::Refused { .. } = world.take("cp1", true, "node/cp1").await else {
        panic!("both are out")
    };
    assert_eq!(world.remedy().list_held().await.unwrap(), []);
    let done = dogwatch_k8s::lock::LeaveReason::Done { next: Vec::new() };
    world.hand("cp2").release_lease(&slot, &done).await;
    held(world.take("cp1", true, "node/cp1").await);
}

async fn is_told(world: &World, short: &str) -> bool {
    let lease = world.node_lease(short).await;
    let holder = lease.and_then(|lease| lease.spec?.holder_identity);
    let skip = world.skip(short).await;
    holder.as_deref() == Some("dogwatch.dev") && skip.as_deref() == Some("dogwatch.dev")
}

async fn is_untold(world: &World, short: &str) -> bool {
    world.node_lease(short).await.is_none() && world.skip(short).await.is_none()
}

pub async fn others_are_told_while_a_node_reboots_and_no_longer(world: &World) {
    let uid = world.make_node("n1", &json!({}), Some("draining")).await;
    world.make_node("n2", &json!({}), None).await;
    for machine in ["n1", "n2"] {
        world.make_machine(machine, &json!({})).await;
    }
    let leader = world.leader();
    world.set_phase("n1", Some("rebooting")).await;
    world
        .until("others are told", || is_told(world, "n1"))
        .await;
    let lease = world.node_lease("n1").await.unwrap();
    let owner = &lease.owner_references()[0];
    assert_eq!((owner.kind.as_str(), &owner.uid), ("Node", &uid));
    let spec = lease.spec.unwrap();
    let length = SignedDuration::from_secs(spec.lease_duration_seconds.unwrap().into());
    let ends = spec.renew_time.unwrap().0 + length;
    let left = Duration::try_from(ends.duration_since(world.clock.now().wall)).unwrap();
    let timeout = world.flags.reboot_timeout;
    assert!(
        left <= timeout + Duration::from_secs(30) && left > timeout / 2,
        "{left:?}"
    );
    assert!(is_untold(world, "n2").await, "it does not reboot");
    let page = leader.metrics.render_page();
    assert!(page.contains("dogwatch_handshake_nodes 1"), "{page}");
    // Ready since then: the node has returned.
    world.set_phase("n1", Some("returning")).await;
    world
        .until("nobody is kept off it", || is_untold(world, "n1"))
        .await;
}

pub async fn marks_of_others_are_left_alone_and_a_lease_is_taken_once_it_is_over(world: &World) {
    for node in ["n1", "n2"] {
        world.make_node(node, &json!({}), Some("rebooting")).await;
    }
    let theirs = json!({ "cluster.x-k8s.io/skip-remediation": "maintenance" });
    world.make_machine("n1", &theirs).await;
    world.make_machine("n2", &json!({})).await;
    let now = world.clock.now().wall;
    let hour = SignedDuration::from_hours(1);
    let holder = "node-healthcheck";
    world.make_node_lease("n1", holder, now, 3600).await;
    world.make_node_lease("n2", holder, now - hour, 60).await;
    let before = world.node_lease("n1").await;
    let _leader = world.leader();
    world
        .until("what is free is marked", || is_told(world, "n2"))
        .await;
    let taken = world.node_lease("n2").await.unwrap().spec.unwrap();
    assert_eq!(taken.lease_transitions, Some(1));
    for node in ["n1", "n2"] {
        world.set_phase(node, None).await;
    }
    world
        .until("ours are taken off", || is_untold(world, "n2"))
        .await;
    assert_eq!(world.node_lease("n1").await, before);
    assert_eq!(world.skip("n1").await.as_deref(), Some("maintenance"));
}

pub async fn a_dead_leaders_marks_are_taken_off_by_the_next_one(world: &World) {
    for node in ["n1", "n2"] {
        world.make_node(node, &json!({}), Some("rebooting")).await;
        world.make_machine(node, &json!({})).await;
    }
    let first = world.leader();
    for node in ["n1", "n2"] {
        world
            .until("others are told", || is_told(world, node))
            .await;
    }
    drop(first);
    world.set_phase("n1", None).await;
    let second = world.leader();
    world
        .until("what is over is taken off", || is_untold(world, "n1"))
        .await;
    assert!(is_told(world, "n2").await, "it reboots still");
    drop(second);
    // Its Node was deleted meanwhile, and its record with it.
    let name = world.node_name("n2");
    let (nodes, params) = (world.nodes(), DeleteParams::default());
    nodes.delete(name.as_str(), &params).await.unwrap();
    let _third = world.leader();
    world.until("whoever led", || is_untold(world, "n2")).await;
}

pub async fn a_node_that_does_not_come_back_is_theirs_after_its_timeout(world: &World) {
    world.make_node("n1", &json!({}), Some("rebooting")).await;
    world.make_machine("n1", &json!({})).await;
    let patient = world.leader();
    world
        .until("others are told", || is_told(world, "n1"))
        .await;
    drop(patient);
    let world = &World {
        client: world.client.clone(),
        leading: world.leading.clone(),
        home: world.home.clone(),
        clock: world.clock.clone(),
        flags: dogwatch_core::reboot::RebootConfig {
            reboot_timeout: Duration::from_secs(1),
            ..world.flags.clone()
        },
    };
    let _leader = world.leader();
    world
        .until("and then it is failed", || is_untold(world, "n1"))
        .await;
}

//! Cases of schedules: the same functions run on the embedded and on the real API server. Each case
//! is a sentence of specification §5 or a promise of §1.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

pub mod world;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use world::World;

/// Passes every case to a macro that makes a test of it.
macro_rules! every_case {
    ($test:ident) => {
        $test! {
            at_the_appointed_time_each_target_is_asked_in_its_own_way_and_a_record_is_left
            a_leader_that_died_in_the_middle_is_carried_on_and_nobody_is_asked_twice
            who_is_suspended_deleted_or_moved_before_its_time_asks_nobody
            a_suspension_that_is_removed_brings_back_no_time_of_before
            what_was_missed_is_said_and_reboots_nobody
            two_schedules_of_one_moment_ask_a_common_node_once
            only_dogwatchs_own_namespace_reaches_nodes_and_no_schedule_reaches_other_namespaces_hosts
            who_cannot_be_asked_is_named_and_holds_nobody_up
            a_host_that_may_carry_a_node_or_is_not_provisioned_is_not_switched_off
            of_two_hosts_that_claim_one_node_only_the_older_has_it_rebooted
            a_node_that_was_made_anew_since_its_time_came_is_not_asked_again
            a_request_for_later_is_left_and_not_taken_for_one_of_this_time
            where_the_kind_is_installed_each_node_gets_a_node_reboot_and_its_end_is_recorded
            a_leader_that_died_before_the_mark_makes_no_second_node_reboot
            a_name_that_somebody_else_has_taken_is_said_and_holds_nobody_up
        }
    };
}
pub(crate) use every_case;

const MARK: &str = "dogwatch.dev/scheduled";
const POWER: &str = "reboot.metal3.io";

fn selector(world: &World) -> Value {
    json!({ "selector": { "matchLabels": { "pool": world.home } } })
}

pub async fn at_the_appointed_time_each_target_is_asked_in_its_own_way_and_a_record_is_left(
    world: &World,
) {
    let home = &world.home;
    let own = json!({ "dogwatch.dev/reboot-requested": r#"{"requester":"me"}"# });
    world.make_node("n1", &json!({})).await;
    world.make_node("n2", &own).await;
    let carries = json!({ "dogwatch.dev/node": world.node_name("n1") });
    world.make_host(home, "h1", &carries).await;
    world.make_host(home, "h2", &json!({})).await;
    let leader = world.leader();
    let far = world.at(SignedDuration::from_hours(1));
    let spec = json!({ "at": far.to_string(), "reason": "kernel", "mode": "hard",
        "nodes": selector(world), "hosts": { "names": ["h1", "h2"] } });
    let uid = world.make_schedule(home, "monthly", &spec).await;
    let at = waits_then_comes_soon(world, "monthly", far).await;
    let records = world.records(home, "monthly", 1).await;
    assert!(world.clock.now().wall >= at);
    let record = &records[0];
    assert_eq!(
        (record.at, record.outcome.as_str()),
        (at, "Requested"),
        "{record:?}"
    );
    assert_eq!(
        (record.requested, record.already_requested, record.failed),
        (2, 1, 0)
    );
    let asked = world.request_on("n1").await.unwrap();
    assert_eq!(asked["requester"], format!("rebootschedule/{home}/monthly"));
    assert_eq!(asked["reason"], format!("kernel (scheduled for {at})"));
    assert_eq!(world.request_on("n2").await.unwrap()["requester"], "me");
    assert_eq!(world.on_host(home, "h1", POWER).await, None);
    assert_eq!(
        world.on_host(home, "h2", POWER).await.unwrap(),
        r#"{"mode":"hard"}"#
    );
    let marked = [
        world.on_node("n1", MARK).await,
        world.on_node("n2", MARK).await,
        world.on_host(home, "h2", MARK).await,
    ];
    for mark in marked {
        let mark: Value = serde_json::from_str(&mark.unwrap()).unwrap();
        assert_eq!(mark[&uid]["at"], at.to_string(), "{mark}");
    }
    let said = [("Normal".to_owned(), "Requested".to_owned())];
    world
        .until("it is said", || async {
            world.said(home, "monthly").await == said
        })
        .await;
    let page = leader.metrics.render_page();
    let ended = "dogwatch_schedule_occurrences_total{outcome=\"Requested\"} 1";
    assert!(page.contains(ended), "{page}");
}

/// The schedule waits for a distant time and issues no request; then its spec gets a time that
/// comes soon.
async fn waits_then_comes_soon(world: &World, name: &str, far: Timestamp) -> Timestamp {
    let home = &world.home;
    world
        .until("it waits", || async {
            world.status(home, name).await.next_occurrence == Some(far)
        })
        .await;
    assert_eq!(world.request_on("n1").await, None, "before its time");
    let at = world.at(SignedDuration::from_secs(3));
    let soon = json!({ "at": at.to_string() });
    world.change(home, name, &soon).await;
    at
}

pub async fn a_leader_that_died_in_the_middle_is_carried_on_and_nobody_is_asked_twice(
    world: &World,
) {
    let home = &world.home;
    world.make_node("n1", &json!({})).await;
    world.make_node("n2", &json!({})).await;
    world.make_node("n3", &json!({})).await;
    let at = world.at(SignedDuration::from_secs(-30));
    let spec = json!({ "at": at.to_string(), "nodes": selector(world) });
    let uid = world.make_schedule(home, "monthly", &spec).await;
    // The previous leader has written the intention, asked n1, which has rebooted since, and noted
    // n3, whose own request was served since; then it died.
    let begun = world.at(SignedDuration::ZERO).to_string();
    let current = json!({ "at": at.to_string(), "begun": begun });
    world
        .write_status("monthly", &json!({ "current": current }))
        .await;
    let mark = |noted: bool| {
        let by = format!("{home}/monthly");
        let mark = json!({ uid.as_str(): { "by": by, "at": at.to_string(), "noted": noted } });
        Value::String(mark.to_string())
    };
    world.annotate("n1", MARK, &mark(false)).await;
    world.annotate("n3", MARK, &mark(true)).await;
    let _leader = world.leader();
    let records = world.records(home, "monthly", 1).await;
    assert_eq!(records[0].outcome, "Requested");
    assert_eq!((records[0].requested, records[0].already_requested), (2, 1));
    assert_eq!(world.request_on("n1").await, None);
    assert!(world.request_on("n2").await.is_some());
    assert_eq!(world.request_on("n3").await, None);
}

pub async fn who_is_suspended_deleted_or_moved_before_its_time_asks_nobody(world: &World) {
    let home = &world.home;
    let _leader = world.leader();
    // The ten calls up to the last of these changes must be made by then.
    let at = world.at(SignedDuration::from_secs(20));
    for name in ["suspended", "deleted", "moved", "kept"] {
        world.make_node(name, &json!({})).await;
        let spec = json!({ "at": at.to_string(), "nodes": { "names": [world.node_name(name)] } });
        world.make_schedule(home, name, &spec).await;
    }
    world
        .change(home, "suspended", &json!({ "suspend": true }))
        .await;
    world.delete(home, "deleted").await;
    let later = world.at(SignedDuration::from_hours(1));
    world
        .change(home, "moved", &json!({ "at": later.to_string() }))
        .await;
    world.records(home, "kept", 1).await;
    assert!(world.request_on("kept").await.is_some());
    for name in ["suspended", "deleted", "moved"] {
        assert_eq!(world.request_on(name).await, None, "{name}");
    }
    world
        .until("they say what they do", || async {
            let moved = world.status(home, "moved").await.next_occurrence;
            let suspended = world.status(home, "suspended").await.conditions;
            let suspended = suspended.iter().any(|one| one.reason == "Suspended");
            moved == Some(later) && suspended
        })
        .await;
    // A single time that was missed is made up within the deadline.
    world
        .change(home, "suspended", &json!({ "suspend": false }))
        .await;
    world.records(home, "suspended", 1).await;
    assert!(world.request_on("suspended").await.is_some());
}

/// A merge patch that only removes a field sets no time in the managed fields.
pub async fn a_suspension_that_is_removed_brings_back_no_time_of_before(world: &World) {
    let home = &world.home;
    world.make_node("n1", &json!({})).await;
    let _leader = world.leader();
    let soon = world.at(SignedDuration::from_secs(75)).as_second();
    let start = Timestamp::from_second(soon - soon % 60).unwrap();
    let recurrence = json!({ "start": start.strftime("%H:%M").to_string() });
    let spec = json!({ "recurrence": recurrence, "nodes": selector(world) });
    world.make_schedule(home, "daily", &spec).await;
    let next_is = async |next: Option<Timestamp>| {
        let has_next = || async { world.status(home, "daily").await.next_occurrence == next };
        world.until("the next occurrence is known", has_next).await;
    };
    next_is(Some(start)).await;
    let suspended = json!({ "suspend": true });
    world.change(home, "daily", &suspended).await;
    next_is(None).await;
    let has_passed = || async { world.clock.now().wall > start + SignedDuration::from_secs(2) };
    world.until("the time has passed", has_passed).await;
    world
        .change(home, "daily", &json!({ "suspend": null }))
        .await;
    next_is(Some(start + SignedDuration::from_hours(24))).await;
    let status = world.status(home, "daily").await;
    assert_eq!((status.current, status.history), (None, Vec::new()));
    assert_eq!(world.request_on("n1").await, None);
}

pub async fn what_was_missed_is_said_and_reboots_nobody(world: &World) {
    let home = &world.home;
    world.make_node("n1", &json!({})).await;
    let at = world.at(SignedDuration::from_hours(-2));
    let spec = json!({ "at": at.to_string(), "nodes": selector(world) });
    world.make_schedule(home, "late", &spec).await;
    let leader = world.leader();
    let records = world.records(home, "late", 1).await;
    assert_eq!((records[0].at, records[0].outcome.as_str()), (at, "Missed"));
    let warning = [("Warning".to_owned(), "Missed".to_owned())];
    world
        .until("it is said", || async {
            world.said(home, "late").await == warning
        })
        .await;
    let status = world.status(home, "late").await;
    let last = status
        .conditions
        .iter()
        .find(|one| one.type_ == "LastOccurrenceIssued");
    let last = last.unwrap();
    assert_eq!(
        (last.status.as_str(), last.reason.as_str()),
        ("False", "Missed")
    );
    assert_eq!(world.request_on("n1").await, None);
    let page = leader.metrics.render_page();
    let alarm =
        format!("dogwatch_schedule_last_occurrence_issued{{namespace=\"{home}\",name=\"late\"}} 0");
    assert!(page.contains(&alarm), "{page}");
    // The next leader says it again, unless it was said: it looks whose the Event of that name is.
    world.take_event_names(home, "late").await;
    drop(leader);
    let _next = world.leader();
    let again = [warning[0].clone(), warning[0].clone()];
    world
        .until("it is said beside somebody else's Event", || async {
            world.said(home, "late").await == again
        })
        .await;
}

pub async fn two_schedules_of_one_moment_ask_a_common_node_once(world: &World) {
    let home = &world.home;
    world.make_node("n1", &json!({})).await;
    let _leader = world.leader();
    let at = world.soon();
    let spec = json!({ "at": at.to_string(), "nodes": selector(world) });
    let first = world.make_schedule(home, "first", &spec).await;
    let second = world.make_schedule(home, "second", &spec).await;
    let mut told = (0, 0);
    for name in ["first", "second"] {
        let records = world.records(home, name, 1).await;
        assert_eq!(records[0].outcome, "Requested");
        told = (
            told.0 + records[0].requested,
            told.1 + records[0].already_requested,
        );
    }
    assert_eq!(told, (1, 1));
    let marks = world.on_node("n1", MARK).await.unwrap();
    assert!(marks.contains(&first) && marks.contains(&second), "{marks}");
}

pub async fn only_dogwatchs_own_namespace_reaches_nodes_and_no_schedule_reaches_other_namespaces_hosts(
    world: &World,
) {
    let (home, racks) = (&world.home, &world.racks);
    world.make_node("n1", &json!({})).await;
    world.make_host(home, "h1", &json!({})).await;
    world.make_host(racks, "h1", &json!({})).await;
    let at = world.at(SignedDuration::from_secs(-1));
    let hosts = json!({ "at": at.to_string(), "hosts": { "selector": {} } });
    let mut nodes = hosts.clone();
    nodes["nodes"] = selector(world);
    world.make_schedule(racks, "hosts", &hosts).await;
    world.make_schedule(racks, "nodes", &nodes).await;
    let _leader = world.leader();
    let records = world.records(racks, "hosts", 1).await;
    assert_eq!(
        (records[0].requested, records[0].outcome.as_str()),
        (1, "Requested")
    );
    assert_eq!(
        world.on_host(racks, "h1", POWER).await.unwrap(),
        r#"{"mode":"soft"}"#
    );
    assert_eq!(world.on_host(home, "h1", POWER).await, None);
    world
        .until("it is refused", || async {
            let conditions = world.status(racks, "nodes").await.conditions;
            let refused = conditions.iter().find(|one| one.type_ == "Accepted");
            refused.is_some_and(|one| {
                one.status == "False" && one.message.contains("spec.nodes: only a schedule in")
            })
        })
        .await;
    assert_eq!(world.request_on("n1").await, None);
}

pub async fn who_cannot_be_asked_is_named_and_holds_nobody_up(world: &World) {
    let home = &world.home;
    world.make_node("n1", &json!({})).await;
    let at = world.at(SignedDuration::from_secs(-1));
    let names = json!({ "names": [world.node_name("n1"), "no-such-node"] });
    let spec = json!({ "at": at.to_string(), "nodes": names, "hosts": { "names": ["gone"] } });
    world.make_schedule(home, "some", &spec).await;
    let _leader = world.leader();
    let records = world.records(home, "some", 1).await;
    let record = &records[0];
    assert_eq!(
        (record.outcome.as_str(), record.requested, record.failed),
        ("PartlyRequested", 1, 2)
    );
    assert_eq!(record.targets[0].name, "no-such-node");
    assert!(
        record.message.contains("BareMetalHost gone"),
        "{}",
        record.message
    );
    assert!(world.request_on("n1").await.is_some());
}

pub async fn a_host_that_may_carry_a_node_or_is_not_provisioned_is_not_switched_off(world: &World) {
    let racks = &world.racks;
    for name in ["plain", "used", "spare"] {
        world.make_host(racks, name, &json!({})).await;
    }
    let consumer = json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "Metal3Machine", "namespace": racks, "name": "m1" });
    world
        .change_host(
            racks,
            "used",
            &json!({ "spec": { "consumerRef": consumer } }),
        )
        .await;
    let spare = json!({ "provisioning": { "state": "available" } });
    world.change_host_status(racks, "spare", &spare).await;
    let at = world.at(SignedDuration::from_secs(-1));
    let spec = json!({ "at": at.to_string(), "hosts": { "selector": {} } });
    world.make_schedule(racks, "all", &spec).await;
    let _leader = world.leader();
    let records = world.records(racks, "all", 1).await;
    let record = &records[0];
    assert_eq!(
        (record.outcome.as_str(), record.requested, record.failed),
        ("PartlyRequested", 1, 1),
        "{record:?}"
    );
    let why = format!("Metal3Machine {racks}/m1 uses it");
    assert!(record.message.contains(&why), "{}", record.message);
    assert!(world.on_host(racks, "plain", POWER).await.is_some());
    for name in ["used", "spare"] {
        assert_eq!(world.on_host(racks, name, POWER).await, None, "{name}");
    }
}

pub async fn of_two_hosts_that_claim_one_node_only_the_older_has_it_rebooted(world: &World) {
    let (home, racks) = (&world.home, &world.racks);
    world.make_node("n1", &json!({})).await;
    let carries = json!({ "dogwatch.dev/node": world.node_name("n1") });
    world.make_host(home, "older", &carries).await;
    // Two schedules of the same second are ordered by UID, which nobody chooses.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    world.make_host(racks, "newer", &carries).await;
    let at = world.at(SignedDuration::from_secs(-1));
    let spec = |name: &str| json!({ "at": at.to_string(), "hosts": { "names": [name] } });
    world.make_schedule(racks, "newer", &spec("newer")).await;
    let leader = world.leader();
    let records = world.records(racks, "newer", 1).await;
    assert_eq!(records[0].outcome, "Failed");
    let why = format!("so does that of host {home}/older, which is older");
    let message = &records[0].message;
    assert!(message.contains(&why), "{message}");
    assert_eq!(world.request_on("n1").await, None);
    world.make_schedule(home, "older", &spec("older")).await;
    world.records(home, "older", 1).await;
    assert!(world.request_on("n1").await.is_some());
    drop(leader);
}

pub async fn a_node_that_was_made_anew_since_its_time_came_is_not_asked_again(world: &World) {
    let home = &world.home;
    world.make_node("n1", &json!({})).await;
    // The unreadable request on n2 keeps the occurrence open until somebody repairs it.
    world.make_node("n2", &json!({ MARK: "?" })).await;
    let at = world.at(SignedDuration::from_secs(-1));
    let names = [world.node_name("n1"), world.node_name("n2")];
    let spec = json!({ "at": at.to_string(), "nodes": { "names": names } });
    world.make_schedule(home, "some", &spec).await;
    let _leader = world.leader();
    world
        .until("it is asked", || async {
            world.request_on("n1").await.is_some()
        })
        .await;
    // The node hung in that reboot and was fenced, and its Node was deleted; the new Node has no
    // mark.
    world.delete_node("n1").await;
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    world.make_node("n1", &json!({})).await;
    // A read is cached for 10 s.
    tokio::time::sleep(std::time::Duration::from_secs(11)).await;
    world.annotate("n2", MARK, &Value::Null).await;
    let records = world.records(home, "some", 1).await;
    assert_eq!(
        world.request_on("n1").await,
        None,
        "it was rebooted already"
    );
    assert!(world.request_on("n2").await.is_some());
    let message = &records[0].message;
    assert!(message.contains("has booted since"), "{message}");
}

pub async fn a_request_for_later_is_left_and_not_taken_for_one_of_this_time(world: &World) {
    let home = &world.home;
    let later = world.at(SignedDuration::from_hours(48)).to_string();
    let own = json!({ "requester": "me", "notBefore": later }).to_string();
    world
        .make_node("n1", &json!({ "dogwatch.dev/reboot-requested": own }))
        .await;
    world.make_node("n2", &json!({})).await;
    let at = world.at(SignedDuration::from_secs(-1));
    let spec = json!({ "at": at.to_string(), "nodes": selector(world) });
    world.make_schedule(home, "some", &spec).await;
    let _leader = world.leader();
    world
        .until("the other one is asked", || async {
            world.request_on("n2").await.is_some()
        })
        .await;
    let status = world.status(home, "some").await;
    assert!(
        status.current.is_some() && status.history.is_empty(),
        "{status:?}"
    );
    assert_eq!(world.request_on("n1").await.unwrap()["requester"], "me");
    // The request of the other requester is removed, so the schedule asks the node after all.
    world.serve("n1").await;
    let records = world.records(home, "some", 1).await;
    assert_eq!(
        (records[0].outcome.as_str(), records[0].requested),
        ("Requested", 2)
    );
}

pub async fn where_the_kind_is_installed_each_node_gets_a_node_reboot_and_its_end_is_recorded(
    world: &World,
) {
    let home = &world.home;
    world.install_node_reboots().await;
    let own = json!({ "dogwatch.dev/reboot-requested": r#"{"requester":"me"}"# });
    world.make_node("n1", &json!({})).await;
    // Somebody else's request is joined.
    world.make_node("n2", &own).await;
    let at = world.at(SignedDuration::from_secs(-1));
    let spec = json!({ "at": at.to_string(), "reason": "kernel", "nodes": selector(world) });
    let uid = world.make_schedule(home, "monthly", &spec).await;
    let leader = world.leader();
    let records = world.records(home, "monthly", 1).await;
    let record = &records[0];
    assert_eq!((record.requested, record.already_requested), (2, 0));
    assert_eq!(
        world.request_on("n1").await,
        None,
        "nobody carries them here"
    );
    let made = world.node_reboots(&uid).await;
    assert_eq!(made.len(), 2, "{made:?}");
    for (one, node) in made.iter().zip(["n1", "n2"]) {
        let spec = &one.spec;
        assert_eq!(spec.node_name, world.node_name(node));
        assert_eq!(
            spec.requester,
            Some(format!("rebootschedule/{home}/monthly"))
        );
        assert_eq!(spec.reason, Some(format!("kernel (scheduled for {at})")));
        let mark: Value = serde_json::from_str(&world.on_node(node, MARK).await.unwrap()).unwrap();
        assert_eq!(mark[&uid]["nodeReboot"], one.name_any(), "{mark}");
    }
    world.end_node_reboot(&made[0], "True", "Rebooted").await;
    world.end_node_reboot(&made[1], "False", "NodeGone").await;
    let reboots = world.reboots_ended(home, "monthly").await;
    assert_eq!(
        (
            reboots.made,
            reboots.succeeded,
            reboots.failed,
            reboots.open
        ),
        (2, 1, 1, 0)
    );
    assert_eq!(reboots.failures[0].node_reboot, made[1].name_any());
    let page = leader.metrics.render_page();
    let counted = "dogwatch_schedule_requests_total{kind=\"Node\",result=\"requested\"} 2";
    let once = "dogwatch_schedule_occurrences_total{outcome=\"Requested\"} 1";
    for line in [counted, once] {
        assert!(page.contains(line), "{line}: {page}");
    }
}

pub async fn a_leader_that_died_before_the_mark_makes_no_second_node_reboot(world: &World) {
    let home = &world.home;
    world.install_node_reboots().await;
    world.make_node("n1", &json!({})).await;
    let at = world.at(SignedDuration::from_secs(-30));
    let spec = json!({ "at": at.to_string(), "nodes": selector(world) });
    let uid = world.make_schedule(home, "monthly", &spec).await;
    let first = world.leader();
    world.records(home, "monthly", 1).await;
    drop(first);
    // The first leader had made the NodeReboot, which has ended since, and no more.
    let made = world.node_reboots(&uid).await;
    world.end_node_reboot(&made[0], "True", "Rebooted").await;
    world.annotate("n1", MARK, &Value::Null).await;
    let begun = world.at(SignedDuration::ZERO).to_string();
    let current = json!({ "at": at.to_string(), "begun": begun });
    let status = json!({ "current": current, "history": null });
    world.write_status("monthly", &status).await;
    let _second = world.leader();
    let records = world.records(home, "monthly", 1).await;
    assert_eq!((records[0].requested, records[0].failed), (1, 0));
    let reboots = world.reboots_ended(home, "monthly").await;
    assert_eq!((reboots.made, reboots.succeeded), (1, 1));
    let again = world.node_reboots(&uid).await;
    assert_eq!(again.len(), 1, "{again:?}");
    assert_eq!(again[0].uid(), made[0].uid());
    assert!(world.on_node("n1", MARK).await.is_some());
}

pub async fn a_name_that_somebody_else_has_taken_is_said_and_holds_nobody_up(world: &World) {
    let home = &world.home;
    world.install_node_reboots().await;
    world.make_node("n1", &json!({})).await;
    world.make_node("n2", &json!({})).await;
    let at = world.at(SignedDuration::from_secs(-1));
    let spec = json!({ "at": at.to_string(), "startingDeadline": "1m", "nodes": selector(world) });
    // Names are not secret: the first occurrence shows them.
    let uid = world.make_schedule(home, "monthly", &spec).await;
    let first = world.leader();
    world.records(home, "monthly", 1).await;
    drop(first);
    let made = world.node_reboots(&uid).await;
    for one in &made {
        world.delete_node_reboot(one).await;
    }
    world.make_strange_node_reboot(&made[0]).await;
    for node in ["n1", "n2"] {
        world.annotate(node, MARK, &Value::Null).await;
    }
    let begun = world.at(SignedDuration::ZERO).to_string();
    let current = json!({ "at": at.to_string(), "begun": begun });
    let status = json!({ "current": current, "history": null });
    world.write_status("monthly", &status).await;
    let _second = world.leader();
    world
        .until("the other one has its NodeReboot", || async {
            world.node_reboots(&uid).await.len() == 1
        })
        .await;
    world
        .change(home, "monthly", &json!({ "suspend": true }))
        .await;
    let records = world.records(home, "monthly", 1).await;
    let record = &records[0];
    assert_eq!((record.requested, record.failed), (1, 1), "{record:?}");
    let why = format!("NodeReboot {} exists", made[0].name_any());
    assert!(record.message.contains(&why), "{}", record.message);
}

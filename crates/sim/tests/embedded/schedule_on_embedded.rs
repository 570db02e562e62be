//! The cases of schedules on the embedded API server with a paused clock, and the cases that need
//! its faults, or days to pass.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dogwatch_kubesim::api::{ApiServer, ApiVerb, FaultEffect, RequestInfo};
use jiff::{SignedDuration, Timestamp};
use kube::api::PatchParams;
use serde_json::json;

use crate::schedule_cases;
use crate::schedule_cases::world::World;
use crate::support::embedded::{clock_from, die_at, fail, server_from};

async fn world() -> (ApiServer, World) {
    let epoch = "2026-03-01T00:00:00Z".parse().unwrap();
    let server = server_from(epoch);
    let mut world = World::on(server.client_for_user("test"), clock_from(epoch)).await;
    world.leading = server.client_for_user("leader");
    (server, world)
}

macro_rules! on_embedded {
    ($($name:ident)*) => { $(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            let (_server, world) = world().await;
            schedule_cases::$name(&world).await;
        }
    )* };
}

schedule_cases::every_case!(on_embedded);

fn is_write(request: &RequestInfo) -> bool {
    request.user == "leader" && request.verb == Some(ApiVerb::Patch)
}

/// For each write of a leader: the leader is killed right after it, or the answer is lost, or the
/// write itself is. Meanwhile the nodes serve their requests.
#[tokio::test(start_paused = true)]
async fn whichever_write_is_the_last_of_a_leader_each_node_reboots_once() {
    for effect in [FaultEffect::LoseAnswer, FaultEffect::LoseRequest] {
        for last in 0..6 {
            let (server, world) = world().await;
            let nodes = ["n1", "n2", "n3"];
            for node in nodes {
                world.make_node(node, &json!({})).await;
            }
            let at = world.at(SignedDuration::from_secs(-1));
            let names: Vec<String> = nodes.iter().map(|node| world.node_name(node)).collect();
            let spec = json!({ "at": at.to_string(), "nodes": { "names": names } });
            world.make_schedule(&world.home, "monthly", &spec).await;

            let sent = die_at(&server, last, effect.clone(), is_write);
            let first = world.leader();
            // Five writes complete the work.
            let enough = last.min(4) + 1;
            world
                .until("it has come so far", || async {
                    sent.load(Ordering::Relaxed) >= enough
                })
                .await;
            drop(first);
            server.clear_faults();

            let mut rebooted = BTreeSet::new();
            for node in nodes {
                if world.request_on(node).await.is_some() {
                    world.serve(node).await;
                    rebooted.insert(node);
                }
            }
            let _second = world.leader();
            let records = world.records(&world.home, "monthly", 1).await;
            assert_eq!(
                (records[0].requested, records[0].outcome.as_str()),
                (3, "Requested")
            );
            for node in nodes {
                let asked_now = world.request_on(node).await.is_some();
                assert_ne!(
                    asked_now,
                    rebooted.contains(node),
                    "{effect:?} {last} {node}"
                );
            }
        }
    }
}

fn is_write_or_creation(request: &RequestInfo) -> bool {
    let creates = request.verb == Some(ApiVerb::Create) && request.resource == "nodereboots";
    is_write(request) || creates && request.user == "leader"
}

/// The same where NodeReboots are made, which end meanwhile: each is there once.
#[tokio::test(start_paused = true)]
async fn whichever_write_is_the_last_of_a_leader_each_node_gets_one_node_reboot() {
    for effect in [FaultEffect::LoseAnswer, FaultEffect::LoseRequest] {
        for last in 0..8 {
            let (server, world) = world().await;
            world.install_node_reboots().await;
            let nodes = ["n1", "n2"];
            for node in nodes {
                world.make_node(node, &json!({})).await;
            }
            let at = world.at(SignedDuration::from_secs(-1));
            let names: Vec<String> = nodes.iter().map(|node| world.node_name(node)).collect();
            let spec = json!({ "at": at.to_string(), "nodes": { "names": names } });
            let uid = world.make_schedule(&world.home, "monthly", &spec).await;

            let sent = die_at(&server, last, effect.clone(), is_write_or_creation);
            let first = world.leader();
            // The beginning, two NodeReboots, two marks, the record.
            let enough = last.min(5) + 1;
            world
                .until("it has come so far", || async {
                    sent.load(Ordering::Relaxed) >= enough
                })
                .await;
            drop(first);
            server.clear_faults();

            let early = world.node_reboots(&uid).await;
            for one in &early {
                world.end_node_reboot(one, "True", "Rebooted").await;
            }
            let _second = world.leader();
            let records = world.records(&world.home, "monthly", 1).await;
            let record = &records[0];
            assert_eq!((record.requested, record.failed), (2, 0), "{record:?}");
            let made = world.node_reboots(&uid).await;
            assert_eq!(made.len(), 2, "{effect:?} {last}");
            for one in &early {
                assert!(made.iter().any(|it| it.metadata.uid == one.metadata.uid));
            }
            for one in &made {
                world.end_node_reboot(one, "True", "Rebooted").await;
            }
            let reboots = world.reboots_ended(&world.home, "monthly").await;
            assert_eq!((reboots.made, reboots.succeeded), (2, 2), "{reboots:?}");
        }
    }
}

/// A webhook that refuses NodeReboots has its reasons: there is no way around it.
#[tokio::test(start_paused = true)]
async fn a_node_whose_node_reboot_is_refused_is_not_asked_by_annotation() {
    let (server, world) = world().await;
    world.install_node_reboots().await;
    world.make_node("n1", &json!({})).await;
    let at = world.at(SignedDuration::from_secs(-1));
    let spec = json!({ "at": at.to_string(), "nodes": { "names": [world.node_name("n1")] } });
    world.make_schedule(&world.home, "some", &spec).await;
    fail(&server, FaultEffect::Refuse(403), |request| {
        is_write_or_creation(request) && request.verb == Some(ApiVerb::Create)
    });
    let _leader = world.leader();
    tokio::time::sleep(Duration::from_hours(2)).await;
    let records = world.records(&world.home, "some", 1).await;
    assert_eq!(
        (records[0].outcome.as_str(), records[0].failed),
        ("Failed", 1)
    );
    let message = &records[0].message;
    assert!(
        message.contains("NodeReboot cannot be created"),
        "{message}"
    );
    assert_eq!(world.request_on("n1").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_recurrence_asks_at_each_of_its_times_and_only_then() {
    let (_server, world) = world().await;
    world.make_node("n1", &json!({})).await;
    // Clocks go forward on 29 March at 02:00 in Berlin.
    let spec = json!({ "recurrence": { "start": "02:30", "excludedDates": ["2026-03-04"] },
        "timeZone": "Europe/Berlin", "nodes": { "names": [world.node_name("n1")] } });
    world.make_schedule(&world.home, "daily", &spec).await;
    let _leader = world.leader();
    let mut times: Vec<String> = Vec::new();
    let end: Timestamp = "2026-03-31T00:00:00Z".parse().unwrap();
    while world.clock.now().wall < end {
        if let Some(request) = world.request_on("n1").await {
            let reason = request["reason"].as_str().unwrap().to_owned();
            let asked = reason.split("2026-").nth(1).unwrap();
            times.push(asked[..11].to_owned());
            world.serve("n1").await;
        }
        tokio::time::sleep(Duration::from_hours(1)).await;
    }
    assert_eq!(times.len(), 29, "{times:?}");
    assert_eq!(
        &times[..4],
        ["03-01T01:30", "03-02T01:30", "03-03T01:30", "03-05T01:30"]
    );
    assert_eq!(&times[27..], ["03-29T01:00", "03-30T00:30"]);
    let history = world.status(&world.home, "daily").await.history;
    assert_eq!(history.len(), 10);
    assert!(history.iter().all(|record| record.outcome == "Requested"));
}

#[tokio::test(start_paused = true)]
async fn a_target_that_cannot_be_written_delays_only_itself_and_is_asked_once_it_can_be() {
    let (server, world) = world().await;
    for node in ["n1", "n2"] {
        world.make_node(node, &json!({})).await;
    }
    let at = world.at(SignedDuration::from_secs(-1));
    let names = [world.node_name("n1"), world.node_name("n2")];
    let spec = json!({ "at": at.to_string(), "nodes": { "names": names } });
    world.make_schedule(&world.home, "some", &spec).await;
    let spec = json!({ "at": at.to_string(), "nodes": { "names": ["missing"] } });
    world.make_schedule(&world.home, "other", &spec).await;
    let broken = world.node_name("n1");
    fail(&server, FaultEffect::Refuse(403), move |request| {
        is_write(request) && request.name == broken
    });
    let _leader = world.leader();
    world.records(&world.home, "other", 1).await;
    world
        .until("the other is asked", || async {
            world.request_on("n2").await.is_some()
        })
        .await;
    assert!(world.status(&world.home, "some").await.current.is_some());
    server.clear_faults();
    let records = tokio::time::timeout(Duration::from_mins(6), async {
        while world.status(&world.home, "some").await.history.is_empty() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        world.records(&world.home, "some", 1).await
    });
    assert_eq!(records.await.unwrap()[0].requested, 2);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_installed_later_is_found_and_one_taken_out_is_no_alarm() {
    let (_server, world) = world().await;
    let kinds: kube::Api<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    > = kube::Api::all(world.client.clone());
    let name = dogwatch_api::reboot_schedule::CRD_NAME;
    kinds
        .delete(name, &kube::api::DeleteParams::default())
        .await
        .unwrap();
    let _leader = world.leader();
    tokio::time::sleep(Duration::from_mins(10)).await;
    let kind = serde_json::from_value(dogwatch_api::reboot_schedule::schedule_crd()).unwrap();
    kinds
        .create(&kube::api::PostParams::default(), &kind)
        .await
        .unwrap();
    world.make_node("n1", &json!({})).await;
    let at = world.at(SignedDuration::from_secs(-1));
    let spec = json!({ "at": at.to_string(), "nodes": { "names": [world.node_name("n1")] } });
    world.make_schedule(&world.home, "monthly", &spec).await;
    world.records(&world.home, "monthly", 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_quiet_schedule_makes_no_calls_and_its_controller_writes_what_stands_there_never_again() {
    let (server, world) = world().await;
    let spec = json!({ "recurrence": { "days": ["Sat"], "start": "03:00" },
        "nodes": { "selector": {} } });
    world.make_schedule(&world.home, "weekly", &spec).await;
    let _leader = world.leader();
    world
        .until("it waits", || async {
            world
                .status(&world.home, "weekly")
                .await
                .next_occurrence
                .is_some()
        })
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.clear_audit_log();
    tokio::time::sleep(Duration::from_hours(5)).await;
    let log = server.audit_log();
    let calls = log
        .iter()
        .filter(|entry| entry.user == "leader" && entry.verb != Some(ApiVerb::Watch));
    assert_eq!(calls.count(), 0);
}

/// The CustomResourceDefinition is of an older version.
#[tokio::test(start_paused = true)]
async fn a_status_field_that_the_definition_drops_is_said_and_not_written_at_full_speed() {
    let (server, world) = world().await;
    let kinds: kube::Api<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    > = kube::Api::all(world.client.clone());
    let mut older = dogwatch_api::reboot_schedule::schedule_crd();
    let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
    let fields = older.pointer_mut(status).unwrap().as_object_mut().unwrap();
    fields.remove("specSince").unwrap();
    let body = kube::api::Patch::Merge(json!({ "spec": older["spec"] }));
    let (name, params) = (
        dogwatch_api::reboot_schedule::CRD_NAME,
        PatchParams::default(),
    );
    kinds.patch(name, &params, &body).await.unwrap();
    let writes = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&writes);
    server.set_faults(move |request| {
        let is_counted = is_write(request) && request.resource == "rebootschedules";
        count.fetch_add(u32::from(is_counted), Ordering::Relaxed);
        Vec::new()
    });
    let far = world.at(SignedDuration::from_hours(24));
    let spec = json!({ "at": far.to_string(), "nodes": { "names": ["n1"] } });
    world.make_schedule(&world.home, "some", &spec).await;
    let _leader = world.leader();
    tokio::time::sleep(Duration::from_mins(5)).await;
    let writes = writes.load(Ordering::Relaxed);
    assert!((2..30).contains(&writes), "{writes}");
    let warning = ("Warning".to_owned(), "CRDDropsStatus".to_owned());
    assert!(world.said(&world.home, "some").await.contains(&warning));
}

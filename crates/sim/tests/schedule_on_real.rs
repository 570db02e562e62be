//! The cases of schedules on a real API server, with exactly the rights that are shipped and all
//! admission policies active; and tests of the kind's definition.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod heal_rights;
#[allow(dead_code, reason = "each test binary uses its part")]
mod schedule_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use dogwatch_runtime::clock::ProcessClock;
use dogwatch_testbed::{UsedRights, rights_in_manifests, shared_control_plane};
use serde_json::{Value, json};

use schedule_cases as cases;
use schedule_cases::world::World;
use support::real::{
    ALONE, HOSTS_ROLE, ROLES, alone_on_real, apply_in, asked_by_controller, client,
};

cases::every_case!(alone_on_real);

async fn world() -> World {
    let mut world = World::on(client().await, ProcessClock::system_clock()).await;
    let here = format!("namespace: {}\n", world.home);
    let role = HOSTS_ROLE.replace("namespace: dogwatch\n", &here);
    for namespace in [&world.home, &world.racks] {
        apply_in(namespace, &role).await;
    }
    world.leading = heal_rights::controller(&world.home).await;
    world
}

/// Checks that nothing was refused in this case and, after the last case, that every right was
/// used.
async fn after(world: &World) {
    static USED: UsedRights = UsedRights::none();
    let shipped = rights_in_manifests(&[ROLES, HOSTS_ROLE], |why| why.contains("schedule:"));
    assert!(shipped.len() > 7, "{shipped:?}");
    let unsaid = USED.record_test(&asked_by_controller(&world.home).await, CASES, &shipped);
    // A comment beside the right names schedules.
    assert!(
        unsaid.is_empty(),
        "not said to be for schedules: {unsaid:?}"
    );
}

/// A spec, the field of the refusal, and a part of its message.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        r#"{"nodes": {"names": ["n1"]}}"#,
        "spec",
        "write either at or recurrence",
    ),
    (
        r#"{"at": "2026-12-24T03:00", "recurrence": {"start": "03:00"}, "nodes": {"names": ["n1"]}}"#,
        "spec",
        "write either at or recurrence",
    ),
    (
        r#"{"at": "2026-12-24T03:00"}"#,
        "spec",
        "write nodes or hosts",
    ),
    (
        r#"{"at": "2026-12-24T03:00", "nodes": {}}"#,
        "spec.nodes",
        "at least 1",
    ),
    (
        r#"{"at": "tomorrow", "nodes": {"names": ["n1"]}}"#,
        "spec.at",
        "write a time like",
    ),
    (
        r#"{"at": "2026-12-24", "nodes": {"names": ["n1"]}}"#,
        "spec.at",
        "write a time like",
    ),
    (
        r#"{"at": "2026-12-24T03:00:00Z", "timeZone": "Europe/Berlin", "nodes": {"names": ["n1"]}}"#,
        "spec",
        "leave out timeZone, or the offset",
    ),
    (
        r#"{"at": "2026-12-24T03:00+01:00", "timeZone": "Europe/Berlin", "nodes": {"names": ["n1"]}}"#,
        "spec",
        "leave out timeZone, or the offset",
    ),
    (
        r#"{"recurrence": {}, "nodes": {"names": ["n1"]}}"#,
        "spec.recurrence.start",
        "Required",
    ),
    (
        r#"{"recurrence": {"start": "3:00"}, "nodes": {"names": ["n1"]}}"#,
        "spec.recurrence.start",
        "write a time of day",
    ),
    (
        r#"{"recurrence": {"start": "03:00", "days": ["Sat"], "rrule": "FREQ=DAILY"}, "nodes": {"names": ["n1"]}}"#,
        "spec.recurrence",
        "write either days or rrule",
    ),
    (
        r#"{"recurrence": {"start": "03:00", "rrule": "FREQ=HOURLY"}, "nodes": {"names": ["n1"]}}"#,
        "spec.recurrence.rrule",
        "FREQ=DAILY",
    ),
    (
        r#"{"at": "2026-12-24T03:00", "startingDeadline": "10s", "nodes": {"names": ["n1"]}}"#,
        "spec.startingDeadline",
        "at least 1m",
    ),
    (
        r#"{"at": "2026-12-24T03:00", "startingDeadline": "soon", "nodes": {"names": ["n1"]}}"#,
        "spec.startingDeadline",
        "write a duration like",
    ),
    (
        r#"{"at": "2026-12-24T03:00", "mode": "hard", "nodes": {"names": ["n1"]}}"#,
        "spec",
        "leave out mode",
    ),
    (
        r#"{"at": "2026-12-24T03:00", "mode": "gentle", "hosts": {"names": ["h1"]}}"#,
        "spec.mode",
        "soft",
    ),
    (
        r#"{"at": "2026-12-24T03:00", "hosts": {"names": ["H 1"]}}"#,
        "spec.hosts.names[0]",
        "write a name",
    ),
    (
        r#"{"at": "2026-12-24T03:00", "hosts": {"names": ["h1", "h1"]}}"#,
        "spec.hosts.names[1]",
        "Duplicate",
    ),
    (
        r#"{"at": "2026-12-24T03:00", "nodes": {"selector": {"pool": "a"}}}"#,
        "spec.nodes.selector.pool",
        "unknown field",
    ),
];

const TAKEN: &[&str] = &[
    r#"{"at": "2026-12-24T03:00:00Z", "nodes": {"selector": {}}}"#,
    r#"{"at": "2026-12-24T03:00:00+01:00", "hosts": {"names": ["h1"]}, "mode": "hard"}"#,
    r#"{"at": "2026-12-24T03:00", "timeZone": "Europe/Berlin", "nodes": {"names": ["n1"]}}"#,
    r#"{"recurrence": {"start": "03:00"}, "nodes": {"names": ["n1"]}, "startingDeadline": "1h30m"}"#,
    r#"{"recurrence": {"start": "03:00", "rrule": "DTSTART:20260101\nFREQ=WEEKLY;INTERVAL=2"},
        "timeZone": "UTC", "suspend": true, "hosts": {"selector": {"matchLabels": {"rack": "1"}}}}"#,
];

#[tokio::test]
async fn bad_input_is_refused_with_the_field_named_and_good_input_is_understood() {
    let _alone = ALONE.lock().await;
    let world = World::on(client().await, ProcessClock::system_clock()).await;
    let home = &world.home;
    let admit = async |spec: &str| {
        let spec: Value = serde_json::from_str(spec).unwrap();
        let schedule = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "RebootSchedule",
            "metadata": { "name": "x", "namespace": home }, "spec": spec });
        let path = format!(
            "/apis/dogwatch.dev/v1alpha1/namespaces/{home}/rebootschedules?dryRun=All&fieldValidation=Strict"
        );
        let request = http::Request::post(path)
            .header("content-type", "application/json")
            .body(schedule.to_string().into_bytes())
            .unwrap();
        world.client.request::<Value>(request).await
    };
    for (spec, field, says) in REFUSED {
        let Err(kube::Error::Api(status)) = admit(spec).await else {
            panic!("taken: {spec}");
        };
        let said = &status.message;
        assert!(
            said.contains(field) && said.contains(says),
            "{spec}: {said}"
        );
    }
    for spec in TAKEN {
        let taken = admit(spec).await.unwrap();
        let object = serde_json::from_value(taken).unwrap();
        let schedule = dogwatch_k8s::schedule::convert_schedule(&object, home);
        assert!(schedule.plan.is_ok(), "{spec}: {:?}", schedule.plan);
    }
}

#[tokio::test]
async fn the_table_says_what_people_look_for() {
    let _alone = ALONE.lock().await;
    let world = World::on(client().await, ProcessClock::system_clock()).await;
    let spec = json!({ "at": "2001-01-01T00:00:00Z", "suspend": false, "reason": "kernel",
        "nodes": { "names": ["n1"] } });
    world.make_schedule(&world.home, "late", &spec).await;
    let _leader = world.leader();
    world.records(&world.home, "late", 1).await;
    let namespace = format!("--namespace={}", world.home);
    let get = ["get", "rbs", "-o", "wide", namespace.as_str()];
    let table = shared_control_plane()
        .await
        .run_kubectl(&get, "")
        .await
        .unwrap();
    for word in [
        "NEXT",
        "LAST",
        "OUTCOME",
        "Missed",
        "SUSPENDED",
        "false",
        "Completed",
        "kernel",
    ] {
        assert!(table.contains(word), "{word}: {table}");
    }
    world.end().await;
}

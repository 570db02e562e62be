//! The cases of schedules on a real API server: with the rights that are shipped, no more and no less,
//! and with all admission policies in force; and what the server makes of the kind.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod heal_rights;
#[allow(dead_code, reason = "each test binary uses its part")]
mod schedule_cases;

use std::collections::BTreeSet;
use std::path::Path;

use dogwatch_process::clock::Clock;
use dogwatch_testbed::{AuditEntry, rights_in, shared};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use schedule_cases::world::World;

const ROLES: &str = include_str!("../../../deploy/base/controller-rbac.yaml");
const HOSTS_ROLE: &str = include_str!("../../../deploy/hosts/rbac.yaml");

/// One after the other: a leader sees every schedule of the cluster.
static ALONE: Mutex<()> = Mutex::const_new(());

/// What all cases so far have used, and how many they were.
static USED: std::sync::Mutex<(BTreeSet<String>, usize)> =
    std::sync::Mutex::new((BTreeSet::new(), 0));

macro_rules! on_real {
    ($($name:ident)*) => { $(
        #[tokio::test]
        async fn $name() {
            let _alone = ALONE.lock().await;
            let world = world().await;
            schedule_cases::$name(&world).await;
            world.end().await;
            after(&world.home).await;
        }
    )*
        const CASES: usize = [$(stringify!($name)),*].len();
    };
}

schedule_cases::every_case!(on_real);

async fn world() -> World {
    let client = client_by(shared().await.kubeconfig()).await;
    let mut world = World::on(client, Clock::system()).await;
    let role = HOSTS_ROLE.replace(
        "namespace: dogwatch\n",
        &format!("namespace: {}\n", world.home),
    );
    for namespace in [&world.home, &world.racks] {
        let namespace = format!("--namespace={namespace}");
        let apply = ["apply", "-f", "-", namespace.as_str()];
        shared().await.run_kubectl(&apply, &role).await.unwrap();
    }
    world.leading = heal_rights::controller(&world.home).await;
    world
}

async fn client_by(path: &Path) -> kube::Client {
    let kubeconfig = kube::config::Kubeconfig::read_from(path).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    kube::Client::try_from(config).unwrap()
}

/// Nothing was refused in this case; and once all have run, no right of schedules was unused.
async fn after(namespace: &str) {
    let user = format!("system:serviceaccount:{namespace}:dogwatch-controller");
    let mut entries = shared().await.audit().await.unwrap();
    entries.retain(|entry| entry.user == user);
    let refused: Vec<&AuditEntry> = entries.iter().filter(|entry| entry.code == 403).collect();
    assert!(
        refused.is_empty(),
        "what is shipped does not let it work: {refused:#?}"
    );
    let (used, all) = {
        let mut used = USED.lock().unwrap();
        used.0.extend(entries.iter().map(AuditEntry::right));
        used.1 += 1;
        (used.0.clone(), used.1 == CASES)
    };
    let shipped = rights_in(&[ROLES, HOSTS_ROLE], |why| why.contains("schedule:"));
    assert!(shipped.len() > 7, "{shipped:?}");
    let unused: Vec<&String> = shipped.difference(&used).collect();
    assert!(!all || unused.is_empty(), "unused: {unused:?}");
    // A right that schedules use says so beside it.
    let unsaid: Vec<&String> = used.difference(&shipped).collect();
    assert!(
        unsaid.is_empty(),
        "not said to be for schedules: {unsaid:?}"
    );
}

/// A spec, the field that is named, and what is said.
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
    let world = World::on(
        client_by(shared().await.kubeconfig()).await,
        Clock::system(),
    )
    .await;
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
        let schedule = dogwatch_k8s::schedule::convert(&object, home);
        assert!(schedule.plan.is_ok(), "{spec}: {:?}", schedule.plan);
    }
}

#[tokio::test]
async fn the_table_says_what_people_look_for() {
    let _alone = ALONE.lock().await;
    let world = World::on(
        client_by(shared().await.kubeconfig()).await,
        Clock::system(),
    )
    .await;
    let spec = json!({ "at": "2001-01-01T00:00:00Z", "suspend": false, "reason": "kernel",
        "nodes": { "names": ["n1"] } });
    world.make_schedule(&world.home, "late", &spec).await;
    let _leader = world.leader();
    world.records(&world.home, "late", 1).await;
    let namespace = format!("--namespace={}", world.home);
    let get = ["get", "rbs", "-o", "wide", namespace.as_str()];
    let table = shared().await.run_kubectl(&get, "").await.unwrap();
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

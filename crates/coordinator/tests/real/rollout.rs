//! The shape of a rollout: several coordinators, and the controller that writes how far it is.
//! Source: specification §10.4; promise S1.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::read::{annotation, condition, object_version, record};
use crate::support::world::Seen;
use crate::support::{Cluster, Controller, Machine, OnCommand, Setting, objects};

const POLICY: &str = "workers";
const MOST: usize = 3;
const SOAK: SignedDuration = SignedDuration::from_secs(5);

async fn create_policy(cluster: &Cluster, spec: Value) {
    let policy = objects::reboot_policy(POLICY, &spec);
    cluster.api.create(objects::POLICIES, &policy).await;
}

/// Machines that boot when the test says so.
async fn held_machines(cluster: &Cluster, count: usize) -> Vec<Machine> {
    let mut machines = Vec::new();
    for _ in 0..count {
        let setting = Setting::default().on_command(OnCommand::Nothing);
        machines.push(cluster.machine(setting).await);
    }
    machines
}

/// Waits until this number of nodes is to be rebooted, and their commands have run.
async fn until_rebooting<'a>(
    cluster: &Cluster,
    machines: &'a [Machine],
    count: usize,
) -> Vec<&'a Machine> {
    let what = format!("{count} nodes are rebooting");
    let is_rebooting = |seen: &Seen, machine: &Machine| {
        let record = seen.node(machine.name()).and_then(record);
        record.is_some_and(|record| record["phase"] == "rebooting")
    };
    let found = |seen: &Seen| {
        let rebooting = machines
            .iter()
            .filter(|machine| is_rebooting(seen, machine));
        let rebooting: Vec<&Machine> = rebooting.collect();
        (rebooting.len() == count).then_some(rebooting)
    };
    let rebooting = cluster.world.until(&what, found).await;
    for machine in &rebooting {
        machine.until_commands(1).await;
    }
    rebooting
}

/// Waits until the node has said this, which may be over already.
async fn until_said(cluster: &Cluster, machine: &Machine, reason: &str) {
    let what = format!("{} says {reason}", machine.name());
    let found = |seen: &Seen| {
        let mut states = seen.history.iter().filter(|it| it.name == machine.name());
        let said = |node: &Value| {
            condition(node, "MaintenancePlanned").is_some_and(|it| it["reason"] == reason)
        };
        states
            .any(|change| change.object.as_ref().is_some_and(said))
            .then_some(())
    };
    cluster.world.until(&what, found).await;
}

async fn bring_back(machines: &[&Machine]) {
    for machine in machines {
        machine.reboot().await;
    }
    for machine in machines {
        machine.until_back().await;
        assert_eq!((machine.commands(), machine.most_attempts()), (1, 1));
    }
}

/// In whole microseconds, as the controller's times.
async fn end_of_reboot(machine: &Machine) -> Timestamp {
    let last = annotation(&machine.node().await, "dogwatch.dev/last-reboot");
    let last = last.expect("it has been rebooted");
    let finished: Timestamp = last["finished"]
        .as_str()
        .expect("a time")
        .parse()
        .expect("a time");
    Timestamp::from_microsecond(finished.as_microsecond()).expect("in range")
}

fn rollout_of(policy: &Value) -> &Value {
    &policy["status"]["rollout"]
}

/// How many nodes the rollout lets begin.
fn allowed_by(policy: &Value) -> usize {
    let rollout = rollout_of(policy);
    match rollout["phase"].as_str() {
        Some("Canary") => 1,
        Some("Ramping") => rollout["limit"].as_u64().map_or(MOST, |limit| {
            usize::try_from(limit).expect("a small number")
        }),
        _ => 0,
    }
}

/// Fails if a node was cordoned while the rollout let fewer begin than are out with it.
fn assert_shape_kept(seen: &Seen) {
    let (mut out, mut allowed) = (BTreeSet::new(), 0);
    for change in seen.in_order(&["nodes", "rebootpolicies"]) {
        let object = change.object.as_ref().expect("asked for");
        if change.kind == "rebootpolicies" {
            allowed = allowed_by(object);
        } else if object["spec"]["unschedulable"] != true {
            out.remove(&change.name);
        } else if out.insert(&change.name) {
            assert!(out.len() <= allowed, "{out:?} with {allowed} allowed");
        }
    }
}

/// The time at which the soak was to end, and the drains that began after it, in their order.
fn soak_and_begins(seen: &Seen) -> (Timestamp, Vec<Timestamp>) {
    let time = |value: &Value| value.as_str()?.parse::<Timestamp>().ok();
    let mut ends = None;
    let mut begins = Vec::new();
    let mut draining = BTreeSet::new();
    for change in seen.in_order(&["nodes", "rebootpolicies"]) {
        let object = change.object.as_ref().expect("asked for");
        ends = ends.or_else(|| time(&rollout_of(object)["soakEnds"]));
        let record = record(object).filter(|record| record["phase"] == "draining");
        if let (Some(_), Some(record)) = (ends, record)
            && draining.insert(&change.name)
        {
            begins.push(time(&record["since"]).expect("a time"));
        }
    }
    (ends.expect("there was a soak"), begins)
}

#[tokio::test]
async fn a_canary_goes_first_nothing_begins_in_its_soak_and_then_the_ramp_grows() {
    let cluster = Cluster::new().await;
    let canary = json!({ "nodes": 1, "soak": "5s" });
    let rollout = json!({ "canary": canary, "ramp": [1, 2] });
    create_policy(
        &cluster,
        json!({ "maxUnavailable": MOST, "rollout": rollout }),
    )
    .await;
    let _controller = Controller::start(&cluster).await;
    let machines = held_machines(&cluster, 5).await;
    let (first, last) = machines.split_at(3);
    for machine in first {
        machine.touch("new kernel");
    }
    let canary = until_rebooting(&cluster, first, 1).await;
    let others = |machine: &&Machine| machine.name() != canary[0].name();
    let others: Vec<&Machine> = first.iter().filter(others).collect();
    for machine in &others {
        until_said(&cluster, machine, "AwaitingCanary").await;
    }
    bring_back(&canary).await;
    let returned = end_of_reboot(canary[0]).await;
    for machine in &others {
        until_said(&cluster, machine, "RolloutSoaking").await;
    }
    // The second of them takes the lock as soon as the first one frees it, and so still alone:
    // before the controller has counted the success.
    for _ in &others {
        let alone = until_rebooting(&cluster, first, 1).await;
        until_followed(&cluster, alone[0]).await;
        bring_back(&alone).await;
    }
    until_limit(&cluster, 2).await;
    for machine in last {
        machine.touch("new kernel");
    }
    let together = until_rebooting(&cluster, last, 2).await;
    bring_back(&together).await;

    cluster.world.now(assert_shape_kept);
    let (soak_ends, begins) = cluster.world.now(soak_and_begins);
    assert_eq!(begins.len(), 4);
    assert!(
        soak_ends.duration_since(returned) >= SOAK,
        "{soak_ends} is too soon after {returned}"
    );
    assert!(begins[0] >= soak_ends, "{} < {soak_ends}", begins[0]);
    for machine in &machines {
        // A coordinator that ends has written its last line.
        machine.take_coordinator().await.terminate().await;
    }
    assert_eq!(cluster.recount_history(&machines).await, [5, 5]);
}

/// Waits until the controller has noted this reboot: one that began and ended before that counts
/// for no ramp.
async fn until_followed(cluster: &Cluster, machine: &Machine) {
    let found = |seen: &Seen| {
        let under_way = rollout_of(seen.policy(POLICY)?)["underWay"].as_array()?;
        let mut nodes = under_way.iter().map(|one| &one["node"]);
        nodes.any(|name| name == machine.name()).then_some(())
    };
    let what = format!("the rollout follows {}", machine.name());
    cluster.world.until(&what, found).await;
}

async fn until_limit(cluster: &Cluster, limit: u32) {
    let found = |seen: &Seen| (rollout_of(seen.policy(POLICY)?)["limit"] == limit).then_some(());
    let what = format!("the ramp's number {limit}");
    cluster.world.until(&what, found).await;
}

/// Waits for this status of the policy's condition `Halted`; returns the policy.
async fn until_halted(cluster: &Cluster, status: &str) -> Value {
    let found = |seen: &Seen| {
        let policy = seen.policy(POLICY)?;
        let halted = condition(policy, "Halted")?;
        (halted["status"] == status).then(|| policy.clone())
    };
    let what = format!("Halted={status}");
    cluster.world.until(&what, found).await
}

#[tokio::test]
async fn a_reboot_that_fails_halts_the_rollout_until_it_is_resumed() {
    let cluster = Cluster::new().await;
    let spec = json!({
        "maxUnavailable": 2,
        "reboot": { "timeout": "2s", "attempts": 1 },
        "rollout": { "haltAfterFailures": 1 },
    });
    create_policy(&cluster, spec).await;
    let _controller = Controller::start(&cluster).await;
    let failing = &held_machines(&cluster, 1).await[0];
    let next = cluster.machine(Setting::default()).await;
    failing.touch("new kernel");
    failing
        .until_condition("MaintenanceInProgress", "True", "RebootFailed")
        .await;
    let policy = until_halted(&cluster, "True").await;
    let failure = format!("1 failure: {} RebootFailed", failing.name());
    let halt = &rollout_of(&policy)["halted"];
    assert_eq!(halt["reason"], failure);
    let told = |seen: &Seen| {
        let events = seen.events_of(POLICY).into_iter();
        let mut events = events.filter(|(reason, _)| reason == "TooManyFailures");
        events.find(|(_, message)| message.contains("dogwatch resume workers"))
    };
    cluster.world.until("an Event of the halt", told).await;

    // The group has room for it: the halt alone holds it up.
    next.touch("new kernel");
    let message = next
        .until_condition("MaintenancePlanned", "False", "RolloutHalted")
        .await;
    assert!(message.contains("dogwatch resume workers"), "{message}");
    failing.reboot().await;
    failing.until_back().await;
    let policy = until_halted(&cluster, "True").await;
    assert_eq!(&rollout_of(&policy)["halted"], halt, "another halt");
    assert_eq!(next.commands(), 0);

    // As `dogwatch resume` writes it; that program is run by `crates/cli/tests/controller`.
    let resumed = json!({ "dogwatch.dev/rollout-resumed": halt["since"] });
    let patch = json!({ "metadata": { "annotations": resumed } });
    let path = format!("{}/{POLICY}", objects::POLICIES);
    let resumed = object_version(&cluster.api.merge(&path, &patch).await);
    next.until_back().await;
    until_halted(&cluster, "False").await;
    let begun = cluster.world.now(|seen| first_cordon_of(seen, &next));
    assert!(begun > resumed, "it began before the policy was resumed");
}

fn first_cordon_of(seen: &Seen, machine: &Machine) -> u64 {
    let mut states = seen.in_order(&["nodes"]).into_iter();
    let cordoned = states.find_map(|change| {
        let node = change.object.as_ref()?;
        let is_cordoned = node["spec"]["unschedulable"] == true;
        (change.name == machine.name() && is_cordoned).then(|| object_version(node))
    });
    cordoned.expect("it was rebooted")
}

/// Four nodes that all want a reboot, under a policy of half of them and of this number.
async fn reboot_half_or(number: usize, at_once: usize) {
    let cluster = Cluster::new().await;
    create_policy(
        &cluster,
        json!({ "maxUnavailable": "50%", "maxUnavailableNodes": number }),
    )
    .await;
    let machines = held_machines(&cluster, 4).await;
    for machine in &machines {
        machine.touch("new kernel");
    }
    for _ in 0..machines.len() / at_once {
        let rebooting = until_rebooting(&cluster, &machines, at_once).await;
        bring_back(&rebooting).await;
    }
    cluster.assert_never_more_out_than(at_once);
}

#[tokio::test]
async fn of_a_percentage_and_a_number_a_smaller_number_rules() {
    reboot_half_or(1, 1).await;
}

#[tokio::test]
async fn of_a_percentage_and_a_number_a_smaller_percentage_rules() {
    reboot_half_or(3, 2).await;
}

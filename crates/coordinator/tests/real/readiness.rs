//! Back means usable: `return.ready`. Source: specification §10.3; promise S6.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::read::{condition, is_free, record};
use crate::support::{Cluster, Machine, OnCommand, Setting, objects};

const LEASE: &str = "dogwatch-gpu-0";
const GPU: &str = "example.com/gpu";
const STARTING: &str = "example.com/starting";
const HEALTHY: &str = "GpuHealthy";

/// A machine whose policy has this `return`. It boots when the test says so.
async fn machine_with_return(on_return: Value) -> (Cluster, Machine) {
    let cluster = Cluster::new().await;
    let policy = objects::reboot_policy("gpu", &json!({ "return": on_return }));
    cluster.api.create(objects::POLICIES, &policy).await;
    let setting = Setting::default().on_command(OnCommand::Nothing);
    let machine = cluster.machine(setting).await;
    (cluster, machine)
}

async fn until_reboot_command(machine: &Machine) {
    machine.touch("driver");
    machine.until_commands(1).await;
}

fn gpu_count(count: u32) -> Value {
    json!({ "capacity": { GPU: count.to_string() }, "allocatable": { GPU: count.to_string() } })
}

/// What a health checker writes at this time.
fn health_report(status: &str, at: Timestamp) -> Value {
    let time = at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    json!({ "conditions": [{
        "type": HEALTHY, "status": status, "reason": "Checked", "message": "by a health checker",
        "lastTransitionTime": time, "lastHeartbeatTime": time,
    }] })
}

/// The times of conditions have whole seconds, so that one of this second may be from before the
/// boot.
fn next_second() -> Timestamp {
    Timestamp::now() + SignedDuration::from_secs(1)
}

/// Waits until it is said that the node is not usable, and why; the node keeps cordon and lock.
async fn until_unmet(cluster: &Cluster, machine: &Machine, why: &str) {
    machine
        .until_told("MaintenanceInProgress", "True", "ReadyChecksUnmet", why)
        .await;
    assert_out(cluster, machine).await;
}

async fn assert_out(cluster: &Cluster, machine: &Machine) {
    let node = machine.node().await;
    assert_eq!(node["spec"]["unschedulable"], true);
    let record = record(&node).expect("its reboot is not over");
    assert_eq!(record["phase"], "returning");
    let holder = cluster.world.now(|seen| {
        let lease = seen.lease(LEASE).expect("its group's Lease");
        lease["spec"]["holderIdentity"].clone()
    });
    assert_eq!(holder, format!("node/{}", machine.name()));
}

/// Waits until the node is back, and checks in each state of it that it was not uncordoned before
/// it was usable.
async fn until_back_once_usable(
    cluster: &Cluster,
    machine: &Machine,
    is_usable: impl Fn(&Value) -> bool,
) {
    machine.until_back().await;
    cluster
        .world
        .until("the lock is free", |seen| {
            is_free(seen.lease(LEASE)?).then_some(())
        })
        .await;
    let uncordoned = cluster.world.now(|seen| {
        let states = seen.in_order(&["nodes"]).into_iter();
        let states = states.filter(|change| change.name == machine.name());
        let states = states.filter_map(|change| change.object.as_ref());
        let returning = |node: &&Value| record(node).is_some_and(|it| it["phase"] == "returning");
        let uncordoned = states.filter(returning);
        uncordoned
            .filter(|node| node["spec"]["unschedulable"] != true)
            .map(&is_usable)
            .collect::<Vec<bool>>()
    });
    assert!(!uncordoned.is_empty(), "the uncordon was not seen");
    assert!(
        uncordoned.iter().all(|usable| *usable),
        "uncordoned too early"
    );
    assert_eq!(machine.commands(), 1);
}

#[tokio::test]
async fn a_node_stays_out_until_a_health_checker_has_written_its_condition_in_this_boot() {
    let check = json!({ "condition": { "type": HEALTHY, "status": "True" } });
    let (cluster, machine) = machine_with_return(json!({ "ready": [check] })).await;
    machine
        .patch_status(&health_report("True", Timestamp::now()))
        .await;
    until_reboot_command(&machine).await;
    machine.reboot().await;
    until_unmet(
        &cluster,
        &machine,
        "GpuHealthy was not updated since the boot",
    )
    .await;
    let now = next_second();
    machine.patch_status(&health_report("True", now)).await;
    let written = now.as_second();
    until_back_once_usable(&cluster, &machine, |node| {
        let healthy = condition(node, HEALTHY).expect("nobody removes it");
        let time = healthy["lastHeartbeatTime"].as_str();
        let time = time.and_then(|time| time.parse::<Timestamp>().ok());
        time.expect("a time").as_second() == written
    })
    .await;
}

#[tokio::test]
async fn a_node_stays_out_until_its_startup_taint_is_gone() {
    let (cluster, machine) =
        machine_with_return(json!({ "ready": [{ "noTaint": STARTING }] })).await;
    until_reboot_command(&machine).await;
    let taint = json!({ "key": STARTING, "effect": "NoSchedule" });
    let taints = |taints: Value| json!({ "spec": { "taints": taints } });
    machine.patch_node(&taints(json!([taint]))).await;
    machine.reboot().await;
    until_unmet(
        &cluster,
        &machine,
        "the Node has taint example.com/starting",
    )
    .await;
    machine.patch_node(&taints(json!(null))).await;
    until_back_once_usable(&cluster, &machine, |node| {
        !node["spec"]["taints"].to_string().contains(STARTING)
    })
    .await;
}

#[tokio::test]
async fn a_node_stays_out_until_its_resource_is_allocatable_again() {
    let (cluster, machine) = machine_with_return(json!({ "ready": [{ "resource": GPU }] })).await;
    machine.patch_status(&gpu_count(8)).await;
    until_reboot_command(&machine).await;
    machine.patch_status(&gpu_count(0)).await;
    machine.reboot().await;
    until_unmet(&cluster, &machine, "no allocatable example.com/gpu").await;
    machine.patch_status(&gpu_count(8)).await;
    until_back_once_usable(&cluster, &machine, has_gpus).await;
}

fn has_gpus(node: &Value) -> bool {
    node["status"]["allocatable"][GPU] == "8"
}

#[tokio::test]
async fn past_its_time_a_node_that_is_not_usable_keeps_cordon_and_lock_and_it_is_said() {
    let ready = json!([{ "resource": GPU }]);
    let kept = json!({ "ready": ready, "readyTimeout": "2s", "onReadyTimeout": "Keep" });
    let (cluster, machine) = machine_with_return(kept).await;
    let next = cluster.machine(Setting::default()).await;
    next.patch_status(&gpu_count(8)).await;
    until_reboot_command(&machine).await;
    next.touch("driver");
    machine.reboot().await;
    let message = machine
        .until_condition("MaintenanceInProgress", "True", "ReadyChecksTimedOut")
        .await;
    let words = "not usable within 2s: the Node has no allocatable example.com/gpu";
    assert!(message.contains(words), "{message}");
    assert!(message.contains("cordon and lock stay"), "{message}");
    machine.until_event("ReadyChecksTimedOut", &[words]).await;
    assert_out(&cluster, &machine).await;
    next.until_condition("MaintenancePlanned", "False", "LockHeldByOther")
        .await;
    assert_eq!(next.commands(), 0);

    // It is kept and not given up: the node goes on when it is usable after all.
    machine.patch_status(&gpu_count(8)).await;
    machine.until_back().await;
    next.until_back().await;
    cluster.assert_never_more_out_than(1);
}

#[tokio::test]
async fn past_its_time_a_node_that_is_not_usable_is_uncordoned_where_that_was_chosen() {
    let ready = json!([{ "resource": GPU }]);
    let proceed = json!({ "ready": ready, "readyTimeout": "2s", "onReadyTimeout": "Proceed" });
    let (cluster, machine) = machine_with_return(proceed).await;
    until_reboot_command(&machine).await;
    machine.reboot().await;
    machine
        .until_condition("MaintenanceInProgress", "True", "ReadyChecksUnmet")
        .await;
    machine.until_back().await;
    let words = "not usable within 2s: the Node has no allocatable example.com/gpu";
    machine.until_event("ReadyChecksTimedOut", &[words]).await;
    assert!(!has_gpus(&machine.node().await));
    cluster
        .world
        .until("the lock is free", |seen| {
            is_free(seen.lease(LEASE)?).then_some(())
        })
        .await;
}

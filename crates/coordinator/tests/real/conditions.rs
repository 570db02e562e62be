//! The conditions that other tools write on the same Node (KEP-5683). Source: specification §10.6;
//! promise S3.

use serde_json::{Value, json};

use crate::support::read::condition;
use crate::support::{Cluster, Machine, OnCommand, Setting};

fn set_by_other(kind: &str) -> Value {
    let time = "2026-01-02T03:04:05Z";
    json!({
        "type": kind, "status": "True", "reason": "VendorUpgrade", "message": "by another tool",
        "lastTransitionTime": time, "lastHeartbeatTime": time,
    })
}

/// A machine on whose Node another tool has set these conditions, and whose drain has begun and is
/// blocked.
async fn draining_machine(cluster: &Cluster, taken: [&str; 2]) -> Machine {
    let setting = Setting::default().on_command(OnCommand::Nothing);
    let machine = cluster.machine(setting).await;
    let conditions = taken.map(set_by_other);
    machine
        .patch_status(&json!({ "conditions": conditions }))
        .await;
    cluster.block_drain_of(&machine).await;
    machine.touch("new kernel");
    machine
}

/// Every state of this condition since another tool has set it.
fn states_since_set(cluster: &Cluster, machine: &Machine, kind: &str) -> Vec<Value> {
    cluster.world.now(|seen| {
        let states = seen.in_order(&["nodes"]).into_iter();
        let states = states.filter(|change| change.name == machine.name());
        let states = states.filter_map(|change| change.object.as_ref());
        let states = states.map(|node| condition(node, kind).cloned().unwrap_or_default());
        states.skip_while(Value::is_null).collect()
    })
}

#[tokio::test]
async fn a_condition_of_another_tool_is_left_alone_and_ours_is_told_beside_it() {
    let cluster = Cluster::new().await;
    // The ones that usually say what the coordinator does while it drains, and while it reboots.
    let taken = ["DrainInProgress", "MaintenanceInProgress"];
    let machine = draining_machine(&cluster, taken).await;
    machine
        .until_told("MaintenancePlanned", "True", "DrainBlocked", "/db")
        .await;
    cluster.unblock().await;
    machine
        .until_condition("MaintenancePlanned", "True", "AwaitingReboot")
        .await;
    machine.until_commands(1).await;
    machine
        .until_condition("Drained", "True", "Rebooting")
        .await;
    machine.reboot().await;
    // Not `until_back`: these conditions of the other tool stay True.
    machine
        .until_condition("MaintenancePlanned", "False", "Rebooted")
        .await;
    machine
        .until_condition("Drained", "False", "Rebooted")
        .await;
    for kind in taken {
        let states = states_since_set(&cluster, &machine, kind);
        assert!(states.len() > 5, "{states:?}");
        let touched = states.iter().find(|state| **state != set_by_other(kind));
        assert_eq!(touched, None);
    }
    assert_eq!(machine.node().await["spec"]["unschedulable"], Value::Null);
}

#[tokio::test]
async fn where_other_tools_have_set_all_conditions_of_a_phase_the_usual_one_gives_a_sign_of_life() {
    let cluster = Cluster::new().await;
    let taken = ["MaintenancePlanned", "DrainInProgress"];
    let machine = draining_machine(&cluster, taken).await;
    machine
        .until_told("DrainInProgress", "True", "DrainBlocked", "/db")
        .await;
    let states = states_since_set(&cluster, &machine, "MaintenancePlanned");
    assert!(
        states
            .iter()
            .all(|it| *it == set_by_other("MaintenancePlanned"))
    );
    // What was overwritten is ours now, and ends with the reboot.
    cluster.unblock().await;
    machine.until_commands(1).await;
    machine.reboot().await;
    machine
        .until_condition("DrainInProgress", "False", "Rebooted")
        .await;
}

//! A soft reboot of systemd, which keeps the kernel and the boot id: systemd's count over a real
//! dbus-daemon. Source: specification §10.6; promise S4.

use serde_json::json;

use crate::support::{Cluster, Machine, OnCommand, Setting, SystemBus, objects};

/// A machine whose reboot command is logind, which makes only what the test says.
async fn machine_with_bus(cluster: &Cluster) -> (Machine, SystemBus) {
    let flags = [
        "--reboot-method=logind",
        "--host-root={host}",
        "--sentinel=/run/reboot-needed",
    ];
    let setting = Setting::flags(flags).on_command(OnCommand::Nothing);
    let machine = cluster.machine_without_coordinator(setting).await;
    let bus = SystemBus::start(&machine).await;
    machine.start_coordinator().await;
    (machine, bus)
}

#[tokio::test]
async fn a_soft_reboot_is_told_apart_and_only_a_new_boot_brings_the_node_back() {
    let cluster = Cluster::new().await;
    let (machine, bus) = machine_with_bus(&cluster).await;
    machine.touch("new kernel");
    machine.until_commands(1).await;
    machine
        .until_condition("MaintenanceInProgress", "True", "AwaitingReboot")
        .await;
    bus.soft_reboot(&machine).await;
    let message = machine
        .until_condition("MaintenanceInProgress", "True", "SoftRebootOnly")
        .await;
    assert!(message.contains("reboot.acceptSoft"), "{message}");
    machine
        .until_event("SoftRebootOnly", &["soft reboot"])
        .await;
    assert_eq!(machine.node().await["spec"]["unschedulable"], true);

    machine.reboot().await;
    let last = machine.until_back().await;
    assert_ne!(last["oldBootId"], last["newBootId"]);
    assert_eq!(machine.commands(), 1);
}

#[tokio::test]
async fn a_soft_reboot_brings_the_node_back_where_the_policy_accepts_it() {
    let cluster = Cluster::new().await;
    let accepts = json!({ "reboot": { "acceptSoft": true } });
    let policy = objects::reboot_policy("soft", &accepts);
    cluster.api.create(objects::POLICIES, &policy).await;
    let (machine, bus) = machine_with_bus(&cluster).await;
    machine.touch("new userspace");
    machine.until_commands(1).await;
    machine
        .until_condition("MaintenanceInProgress", "True", "AwaitingReboot")
        .await;
    bus.soft_reboot(&machine).await;
    let last = machine.until_back().await;
    assert_eq!(
        (&last["oldBootId"], &last["soft"]),
        (&last["newBootId"], &json!(true))
    );
    // The sentinel is still there, and causes no other one.
    machine
        .until_condition("SentinelSurvivedReboot", "True", "SentinelSurvivedReboot")
        .await;
    assert_eq!(machine.commands(), 1);
}

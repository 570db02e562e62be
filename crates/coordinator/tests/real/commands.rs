//! Reboot commands that do not reboot. Source: specification §2.4.

use crate::support::read::record;
use crate::support::{Cluster, Machine, OnCommand, Setting};

#[tokio::test]
async fn a_command_that_does_not_exist_is_undone_with_its_reason() {
    let cluster = Cluster::new().await;
    let machine = cluster
        .machine(Setting::flags(["--reboot-command={host}/no-such-program"]))
        .await;
    machine.touch("new kernel");
    let record = machine.until_undone().await;
    assert_eq!(record["failures"], 1);
    let event = machine
        .until_event("RebootCommandNotStarted", &["no-such-program"])
        .await;
    assert!(event.contains("correct --reboot-command"), "{event}");
    let condition = machine
        .until_condition("MaintenancePlanned", "False", "BackingOff")
        .await;
    assert!(condition.contains("no-such-program"), "{condition}");
}

/// A shell command that reports to the machine and then runs `what`.
fn then(what: &str) -> String {
    format!("--reboot-command=sh -c 'echo reboot >{{host}}/power; {what}'")
}

#[tokio::test]
async fn a_command_that_fails_is_said_and_waited_for() {
    let cluster = Cluster::new().await;
    let setting = Setting::flags([&then("echo no power to do so >&2; exit 3")])
        .on_command(OnCommand::Nothing);
    let machine = cluster.machine(setting).await;
    machine.touch("new kernel");
    let message = machine
        .until_condition("MaintenanceInProgress", "True", "RebootCommandFailed")
        .await;
    assert!(message.contains("exit status: 3"), "{message}");
    machine
        .until_event(
            "RebootCommandFailed",
            &["exit status: 3", "no power to do so"],
        )
        .await;
    still_out(&machine).await;
    machine.reboot().await;
    machine.until_back().await;
    assert_eq!(machine.commands(), 1);
}

#[tokio::test]
async fn a_command_that_never_returns_is_waited_for_and_never_ends_the_coordinator() {
    let cluster = Cluster::new().await;
    let setting =
        Setting::flags([&then("read nothing <{host}/never")]).on_command(OnCommand::Nothing);
    let machine = cluster.machine_without_coordinator(setting).await;
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        machine.file("never"),
        rustix::fs::Mode::RWXU,
    )
    .expect("a fifo");
    machine.start_coordinator().await;
    machine.touch("new kernel");
    machine.until_commands(1).await;
    machine
        .until_condition("MaintenanceInProgress", "True", "AwaitingReboot")
        .await;
    still_out(&machine).await;
    machine.reboot().await;
    machine.until_back().await;
    // Lets the command end, which outlives its coordinator.
    std::fs::write(machine.file("never"), "").expect("somebody reads");
}

#[tokio::test]
async fn when_no_attempt_is_left_cordon_and_lock_stay_and_it_is_said() {
    let cluster = Cluster::new().await;
    let setting = Setting::flags(["--reboot-timeout=1s", "--reboot-attempts=2"])
        .on_command(OnCommand::Nothing);
    let machine = cluster.machine(setting).await;
    machine.touch("new kernel");
    let message = machine
        .until_condition("MaintenanceInProgress", "True", "RebootFailed")
        .await;
    assert!(message.contains("dogwatch abort"), "{message}");
    machine.until_event("RebootFailed", &["2 attempts"]).await;
    // The command was started, but a shell on a busy machine may run its first line later.
    machine.until_commands(2).await;
    assert_eq!(machine.commands(), 2);
    still_out(&machine).await;
    // The shutdown that was scheduled for later happens after all.
    machine.reboot().await;
    machine.until_back().await;
}

/// Cordoned, with its record, and the coordinator still runs.
async fn still_out(machine: &Machine) {
    let node = machine.node().await;
    assert_eq!(node["spec"]["unschedulable"], true);
    assert_eq!(record(&node).expect("a record")["phase"], "rebooting");
    assert!(machine.coordinator_runs().await, "{}", machine.log().text());
}

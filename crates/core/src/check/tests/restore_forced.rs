//! Forced work in a store that went back in time.

use std::sync::Arc;

use dogwatch_api::node_reboot::RebootMethod;

use super::*;
use crate::explain::host_testkit::host;
use crate::explain::testkit::{answered_reboot, at, boot, fleet, node, requested_reboot};
use crate::explain::{ObservedController, RemediationReportInput};
use crate::node_reboot::ObservedNodeReboot;
use crate::power::{HostSnapshot, PowerState};
use crate::remediation::{
    HeldRemediationLease, KeyOwner, MachineApi, MachineName, ObjectName, ObservedMachine,
    RemediationSnapshot,
};

/// Machine m1 of Node n1 on host metal/h1.
fn machine(is_marked: bool) -> ObservedMachine {
    ObservedMachine {
        name: MachineName {
            api: MachineApi::OpenShift,
            object: ObjectName::new("machines", "m1"),
        },
        uid: "uid-m1".into(),
        resource_version: "1".into(),
        deleting: false,
        need: is_marked.then(String::new),
        host: Some("metal/h1".into()),
        infra: None,
        provider_id: None,
        node: Some("n1".into()),
        control_plane: false,
        cluster: None,
        paused: false,
        cluster_paused: false,
        conditions: Vec::new(),
    }
}

fn its_host() -> HostSnapshot {
    HostSnapshot {
        consumer: Some(crate::power::HostConsumer {
            group: "machine.openshift.io".into(),
            kind: "Machine".into(),
            namespace: "machines".into(),
            name: "m1".into(),
        }),
        ..host("h1")
    }
}

fn world(
    machine: ObservedMachine,
    host: HostSnapshot,
    node: ObservedNode,
) -> RemediationReportInput {
    RemediationReportInput {
        snapshot: RemediationSnapshot {
            machines: [(machine.name.clone(), Arc::new(machine))].into(),
            hosts: [(host.name.clone(), Arc::new(host))].into(),
            nodes: [(node.name.clone(), Arc::new(node))].into(),
            synced: true,
            ..RemediationSnapshot::default()
        },
        policies: ClusterPolicies::default(),
        control_plane_lock: None,
        controller: ObservedController::Unknown,
    }
}

fn found_in(input: RemediationReportInput) -> Vec<String> {
    let work = ForcedWork {
        remediations: Ok(Some(Box::new(input))),
        node_reboots: Ok(Vec::new()),
    };
    lines(&find_restore_contradictions(
        &fleet(vec![node("n1")], vec![]),
        &work,
        now(100),
    ))
}

fn failed() -> ObservedNode {
    ObservedNode {
        ready: false,
        ..node("n1")
    }
}

#[test]
fn a_machine_at_work_contradicts_nothing() {
    assert_eq!(
        found_in(world(machine(false), its_host(), node("n1"))),
        [""; 0]
    );
}

#[test]
fn a_mark_on_the_machine_of_a_healthy_node_is_told() {
    let told = found_in(world(machine(true), its_host(), node("n1")));
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(
        told[0].starts_with("warns machine/machines/m1: a remediation is under way (")
            && told[0].ends_with(
                "host metal/h1), but Node n1 is Ready, in boot old-boot: its host may be powered off"
            ),
        "{told:#?}"
    );
}

#[test]
fn a_remediation_that_the_world_does_not_contradict_is_told_to_be_checked() {
    let told = found_in(world(machine(true), its_host(), failed()));
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(
        told[0].starts_with("unknown machine/machines/m1: ")
            && told[0].contains("check that its machine has failed"),
        "{told:#?}"
    );
}

#[test]
fn a_key_that_nobody_asks_for_a_recorded_off_and_a_held_lease_are_told() {
    let mut keyed = its_host();
    let key = KeyOwner::Machine("uid-m1".into());
    let (name, value) = (key.annotation_name(), key.annotation_value());
    keyed.annotations.insert(name, value);
    let told = found_in(world(machine(false), keyed, node("n1")));
    assert!(
        told.iter()
            .any(|line| line.starts_with("warns machine/machines/m1: ")),
        "{told:#?}"
    );
    let mut off = its_host();
    off.status.power.state = Some(PowerState::Off);
    off.status.power.off_confirmed_at = Some(at(40));
    assert_eq!(
        found_in(world(machine(false), off.clone(), node("n1"))),
        [
            "warns host/metal/h1: recorded as off since 1970-01-01 00:00:40Z, but Node n1 is Ready, in boot old-boot"
        ]
    );
    assert_eq!(found_in(world(machine(false), off, failed())), [""; 0]);
    let mut held = world(machine(false), its_host(), node("n1"));
    let lease = HeldRemediationLease {
        subject: Some("machine/machines/m1".into()),
        ..HeldRemediationLease::default()
    };
    held.snapshot.leases = [(node("n1").name, lease)].into();
    assert_eq!(
        found_in(held),
        [
            "warns Lease dogwatch-remedy-n1: held for Node n1 by the remediation of machine/machines/m1, which is not under way"
        ]
    );
}

#[test]
fn what_cannot_be_read_is_told_and_is_no_contradiction() {
    let work = ForcedWork {
        remediations: Err("forbidden".into()),
        node_reboots: Err("forbidden".into()),
    };
    let all = find_restore_contradictions(&fleet(vec![node("n1")], vec![]), &work, now(100));
    assert_eq!(
        lines(&all),
        [
            "unknown NodeReboots: could not be read: forbidden",
            "unknown remediations: could not be read: forbidden"
        ]
    );
    assert!(all.iter().all(|finding| finding.is_unread));
}

fn begun(boot_before: &str) -> ObservedNodeReboot {
    let mut reboot = answered_reboot(requested_reboot("nr", "n1"), ("AskingNode", "asks"));
    let attempt = serde_json::json!({
        "method": RebootMethod::Reboot, "startedAt": at(50), "bootIDBefore": boot_before,
    });
    reboot.status.attempts = vec![serde_json::from_value(attempt).unwrap()];
    reboot
}

#[test]
fn a_node_reboot_that_has_begun_and_of_which_its_node_shows_nothing_is_told() {
    let told = |reboot: ObservedNodeReboot| {
        let work = ForcedWork {
            remediations: Ok(None),
            node_reboots: Ok(vec![Arc::new(reboot)]),
        };
        let mut rebooted = node("n1");
        rebooted.boot_id = Some(boot("new-boot"));
        let fleet = fleet(vec![rebooted], vec![]);
        lines(&find_restore_contradictions(&fleet, &work, now(100)))
    };
    assert_eq!(
        told(begun("old-boot")),
        [
            "warns nodereboot/nr: asked Node n1 for method Reboot at 1970-01-01 00:00:50Z, but the Node runs another boot than the one that it was to end"
        ]
    );
    assert_eq!(
        told(begun("new-boot")),
        [
            "warns nodereboot/nr: asked Node n1 for method Reboot at 1970-01-01 00:00:50Z, but the Node shows nothing of it"
        ]
    );
    assert_eq!(
        told(requested_reboot("nr", "n1")),
        [""; 0],
        "nothing has begun"
    );
}

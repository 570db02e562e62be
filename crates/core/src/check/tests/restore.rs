use super::*;
use crate::explain::testkit::{boot, fleet, free, held, in_phase, node, waiting};
use crate::reboot::{
    LastReboot, ParsedAnnotation, RebootOutcome, RebootPhase, RebootTrigger, TriggerFingerprint,
};

fn found(nodes: Vec<ObservedNode>, leases: Vec<LeaseRow>) -> Vec<String> {
    lines(&planned_alone(nodes, leases))
}

fn planned_alone(nodes: Vec<ObservedNode>, leases: Vec<LeaseRow>) -> Vec<CheckFinding> {
    let nothing = ForcedWork {
        remediations: Ok(None),
        node_reboots: Ok(Vec::new()),
    };
    find_restore_contradictions(&fleet(nodes, leases), &nothing, now(100))
}

fn draining(name: &str) -> ObservedNode {
    in_phase(name, RebootPhase::Draining, 5, ("Draining", "1 to go"))
}

#[test]
fn a_cluster_that_agrees_with_itself_has_no_contradictions() {
    let nodes = vec![draining("n1"), waiting("n2", 9), node("n3")];
    assert_eq!(found(nodes, vec![held(0, "n1", 5), free(1)]), [""; 0]);
}

#[test]
fn a_held_lease_that_its_node_knows_nothing_of_is_told() {
    let mut reborn = draining("n1");
    reborn.uid = "another".into();
    for (node, text) in [
        (
            node("n1"),
            "held for Node n1, which has no reboot under way",
        ),
        (node("n9"), "held for Node n1, which does not exist"),
        (
            reborn,
            "held for a Node n1 with UID uid-n1; the current one has UID another",
        ),
    ] {
        let told = found(vec![node], vec![held(0, "n1", 5)]);
        assert!(
            told.contains(&format!("warns Lease dogwatch-default-0: {text}")),
            "{told:#?}"
        );
    }
}

#[test]
fn the_fix_for_a_lease_of_a_host_that_is_no_node_is_a_whole_command_line() {
    let mut row = held(0, "n1", 5);
    row.lease.holder = Some(crate::lock::HolderId::new("fleetlock/host-7").unwrap());
    row.lease.record = None;
    let all = planned_alone(vec![node("n1")], vec![row]);
    assert_eq!(all.len(), 1, "{all:#?}");
    let fix = all[0].fix.as_deref().unwrap();
    assert!(
        fix.ends_with(": dogwatch unlock dogwatch-default-0 --force --reason WHY"),
        "{fix}"
    );
}

#[test]
fn a_record_whose_lease_is_not_held_is_told() {
    let told = found(vec![draining("n1")], vec![free(0)]);
    assert_eq!(
        told,
        ["warns Node n1: is draining with Lease dogwatch-default-0, which it does not hold"]
    );
    let told = found(
        vec![draining("n1")],
        vec![held(0, "n1", 5), held(1, "n1", 5)],
    );
    assert!(
        told.contains(&"warns Lease dogwatch-default-1: held by node/n1, whose record names dogwatch-default-0".to_owned()),
        "{told:#?}"
    );
}

#[test]
fn boot_ids_that_contradict_the_phase_are_told() {
    for (phase, boot_id, contradicts) in [
        (RebootPhase::Draining, "old-boot", false),
        (RebootPhase::Draining, "newer", true),
        (RebootPhase::Rebooting, "old-boot", false),
        (RebootPhase::Rebooting, "newer", true),
        (RebootPhase::Returning, "newer", false),
        (RebootPhase::Returning, "old-boot", true),
    ] {
        let mut node = in_phase("n1", phase, 5, ("Draining", ""));
        node.boot_id = Some(boot(boot_id));
        let told = found(vec![node], vec![held(0, "n1", 5)]);
        assert_eq!(
            !told.is_empty(),
            contradicts,
            "{phase:?} {boot_id}: {told:#?}"
        );
    }
}

#[test]
fn a_cordon_that_is_gone_a_label_left_behind_and_a_served_request_are_told() {
    let mut open = draining("n1");
    open.unschedulable = false;
    let told = found(vec![open], vec![held(0, "n1", 5)]);
    assert_eq!(
        told,
        ["warns Node n1: is draining and should have Dogwatch's cordon, but has none"]
    );
    let mut labelled = node("n1");
    labelled.waiting_label = true;
    assert_eq!(
        found(vec![labelled], vec![]),
        ["warns Node n1: labelled as waiting, but no reboot is under way"]
    );
    let print = TriggerFingerprint("{}".into());
    let mut served = node("n1");
    served.request_fingerprint = Some(print.clone());
    served.last_reboot = ParsedAnnotation::Is(LastReboot {
        outcome: RebootOutcome::Rebooted,
        planned: jiff::Timestamp::UNIX_EPOCH,
        finished: jiff::Timestamp::UNIX_EPOCH,
        old_boot_id: boot("a"),
        new_boot_id: boot("b"),
        trigger: RebootTrigger {
            source: "request".into(),
            reason: String::new(),
            requester: None,
            ..RebootTrigger::default()
        },
        fingerprints: [("request".to_owned(), print)].into(),
        began: std::collections::BTreeMap::new(),
        rebooted: None,
        soft: false,
    });
    assert_eq!(
        found(vec![served], vec![]),
        ["warns Node n1: has a reboot request that was already served"]
    );
}

#[test]
fn more_nodes_out_than_a_holder_agreed_to_is_the_first_thing_told() {
    let mut second = draining("n2");
    if let ParsedAnnotation::Is(record) = &mut second.record {
        record.lease = Some("dogwatch-default-1".into());
    }
    let nodes = vec![draining("n1"), second];
    let told = found(nodes, vec![held(0, "n1", 5), held(1, "n2", 5)]);
    assert_eq!(
        told,
        ["blocks group default: 2 slots are held by unavailable nodes, and a holder allows 1"]
    );
}

//! What the world contradicts after the store went back in time: etcd restored from a backup.
//! Source: specification §1, last line.

use super::finding::{Finding, Severity};
use crate::explain::{Fleet, LeaseRow};
use crate::lock::{self, HolderId};
use crate::reboot::{NodeSeen, Parsed, Phase, Record};

/// Every contradiction between Leases, records and Nodes. Empty: none was found.
///
/// What a coordinator or the healer settles by itself is told as well: right after a restore one
/// wants to know of it before anything moves.
pub fn after_restore(fleet: &Fleet) -> Vec<Finding> {
    let mut found: Vec<Finding> = fleet
        .leases
        .iter()
        .filter_map(|row| lease(fleet, row))
        .collect();
    found.extend(fleet.nodes.iter().flat_map(|node| of_node(fleet, node)));
    found.extend(over_budget(fleet));
    found.sort();
    found
}

/// A held Lease whose holder's Node does not say the same.
fn lease(fleet: &Fleet, row: &LeaseRow) -> Option<Finding> {
    let lease = &row.lease;
    let holder = lease.holder.as_ref()?;
    let contradicted = |what: String| {
        Finding::new(Severity::Warns, format!("Lease {}", lease.name), what)
            .fix(format!("dogwatch unlock {}", lease.name))
    };
    let node = match fleet.holder(lease) {
        None => {
            let text = format!("held by {holder}, which is no Node: does it know that it holds?");
            let found = Finding::new(Severity::Unknown, format!("Lease {}", lease.name), text);
            return Some(
                found.fix("ask its host; dogwatch unlock --force --reason WHY if it does not"),
            );
        }
        Some(Err(name)) => {
            return Some(contradicted(format!(
                "held for Node {name}, which does not exist"
            )));
        }
        Some(Ok(node)) => node,
    };
    let record = lease.record.as_ref();
    if let Some(uid) = record.and_then(|record| record.node_uid.as_ref())
        && *uid != node.uid
    {
        return Some(contradicted(format!(
            "held for a Node {} of UID {uid}; the one that is there has {}",
            node.name, node.uid
        )));
    }
    match &node.record {
        Parsed::Absent if !node.api_lock => Some(contradicted(format!(
            "held for Node {}, which has no reboot under way",
            node.name
        ))),
        Parsed::Is(record) if names_other(record, &lease.name) => Some(contradicted(format!(
            "held by {holder}, whose record names {}",
            record.lease.as_deref().unwrap_or("none")
        ))),
        Parsed::Absent | Parsed::Is(_) | Parsed::Bad { .. } => None,
    }
}

/// While it waits, a Lease may have been won and not been written down yet.
fn names_other(record: &Record, lease: &str) -> bool {
    match (&record.lease, record.phase) {
        (Some(named), _) => named != lease,
        (None, Phase::Waiting) => false,
        (None, Phase::Draining | Phase::Rebooting | Phase::Returning) => true,
    }
}

fn of_node(fleet: &Fleet, node: &NodeSeen) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut add = |what: String, fix: String| {
        let finding = Finding::new(Severity::Warns, format!("Node {}", node.name), what);
        found.push(finding.fix(fix));
    };
    let explain = format!("dogwatch explain {}", node.name);
    match &node.record {
        Parsed::Bad { why } => add(
            format!("annotation dogwatch.dev/reboot cannot be read: {why}"),
            explain.clone(),
        ),
        Parsed::Absent if node.waiting_label => add(
            "labelled as waiting, and no reboot is under way".into(),
            format!("kubectl label node {} dogwatch.dev/reboot-", node.name),
        ),
        Parsed::Absent => {}
        Parsed::Is(record) => {
            let stop = format!(
                "{explain}; if it is not to go on: dogwatch abort {}",
                node.name
            );
            for what in of_record(fleet, node, record) {
                add(what, stop.clone());
            }
        }
    }
    if served_request(node) {
        add(
            "carries a reboot request that was served before".into(),
            format!(
                "kubectl annotate node {} dogwatch.dev/reboot-requested-",
                node.name
            ),
        );
    }
    found
}

fn of_record(fleet: &Fleet, node: &NodeSeen, record: &Record) -> Vec<String> {
    let mut wrong = Vec::new();
    let phase = record.phase.as_str();
    let holder = HolderId::node(&node.name);
    if let Some(named) = &record.lease
        && !fleet
            .leases
            .iter()
            .any(|row| row.lease.name == *named && row.lease.holder.as_ref() == Some(&holder))
    {
        wrong.push(format!(
            "is {phase} with Lease {named}, which it does not hold"
        ));
    }
    if record.lease.is_none() && record.phase != Phase::Waiting {
        wrong.push(format!("is {phase} without a Lease"));
    }
    if let Some(boot) = node.boot_id.as_ref() {
        let booted = *boot != record.boot_id;
        match (record.phase, booted) {
            (Phase::Waiting | Phase::Draining, true) => wrong.push(format!(
                "is {phase} to end boot {}, and runs boot {boot}: it was rebooted already",
                record.boot_id
            )),
            (Phase::Rebooting, true) => wrong.push(format!(
                "is rebooting, and runs boot {boot} already: it is on its way back"
            )),
            (Phase::Returning, false) => wrong.push(format!(
                "is returning, and the kubelet has posted no boot but {boot}, which was to be ended"
            )),
            (Phase::Returning, true)
            | (Phase::Waiting | Phase::Draining | Phase::Rebooting, false) => {}
        }
    }
    if record.cordoned_by_us && !node.unschedulable {
        wrong.push(format!(
            "is {phase} with a cordon of ours that is not there"
        ));
    }
    wrong
}

fn served_request(node: &NodeSeen) -> bool {
    let (Some(print), Some(last)) = (&node.request_fingerprint, node.last.get()) else {
        return false;
    };
    last.fingerprints.get("request") == Some(print)
}

/// More held slots than any of their holders may have agreed to.
fn over_budget(fleet: &Fleet) -> Vec<Finding> {
    let mut groups: Vec<_> = fleet.leases.iter().map(|row| &row.group).collect();
    groups.sort();
    groups.dedup();
    groups
        .into_iter()
        .filter_map(|group| {
            let held: Vec<&LeaseRow> = fleet
                .leases
                .iter()
                .filter(|row| row.group == *group && row.lease.holder.is_some())
                .collect();
            let record = |row: &&LeaseRow| row.lease.record.as_ref().map(|record| record.max);
            let least = held.iter().filter_map(record).min()?;
            let out = held.iter().filter(|row| cordoned(fleet, row)).count();
            (out > usize::try_from(least).unwrap_or(usize::MAX)).then(|| {
                let text = format!(
                    "{out} slots are held by nodes that are out, and a holder allows {least}"
                );
                Finding::new(Severity::Blocks, format!("group {group}"), text)
                    .fix("dogwatch pause --all, then look at each holder: dogwatch status")
            })
        })
        .collect()
}

/// A winner that has not cordoned yet may still give back.
fn cordoned(fleet: &Fleet, row: &LeaseRow) -> bool {
    match lock::holder_node_name(&row.lease).and_then(|name| fleet.node(&name)) {
        Some(node) => node.unschedulable,
        None => true,
    }
}

//! Finds records that contradict the cluster after etcd was restored from a backup. Source:
//! specification §1, last line.

use dogwatch_api::node_reboot::RebootMethod;

use super::finding::{CheckFinding, FindingSeverity};
use super::restore_forced::{self, ForcedWork};
use crate::Now;
use crate::explain::{FleetSnapshot, LeaseRow};
use crate::lock::{self, HolderId};
use crate::reboot::{ObservedNode, ParsedAnnotation, RebootPhase, RebootRecord};

/// Every contradiction between Leases, records, hosts and Nodes, every remediation that is under way
/// by the records, and what could not be read. Empty if there is none.
///
/// Also reports what a coordinator, the healer or the remediator will fix by itself: right after a
/// restore an operator wants to know of it before anything changes.
pub fn find_restore_contradictions(
    fleet: &FleetSnapshot,
    forced: &ForcedWork,
    now: Now,
) -> Vec<CheckFinding> {
    let mut found: Vec<CheckFinding> = fleet
        .leases
        .iter()
        .filter_map(|row| find_in_lease(fleet, row))
        .collect();
    found.extend(
        fleet
            .iter_nodes()
            .flat_map(|node| find_in_node(fleet, node)),
    );
    found.extend(find_over_budget(fleet));
    found.extend(restore_forced::find_in_forced_work(fleet, forced, now));
    found.sort();
    found
}

/// A held Lease that contradicts its holder's Node.
fn find_in_lease(fleet: &FleetSnapshot, row: &LeaseRow) -> Option<CheckFinding> {
    let lease = &row.lease;
    let holder = lease.holder.as_ref()?;
    let contradicted = |what: String| {
        CheckFinding::new(
            FindingSeverity::Warns,
            format!("Lease {}", lease.name),
            what,
        )
        .with_fix(format!("dogwatch unlock {}", lease.name))
    };
    let node = match fleet.holder_node(lease) {
        None => {
            let text = format!(
                "held by {holder}, which is not a Node: check that the holder knows that it holds the lock"
            );
            let found = CheckFinding::new(
                FindingSeverity::Unknown,
                format!("Lease {}", lease.name),
                text,
            );
            return Some(found.with_fix(format!(
                "ask its host; if the host does not hold it: dogwatch unlock {} --force --reason WHY",
                lease.name
            )));
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
            "held for a Node {} with UID {uid}; the current one has UID {}",
            node.name, node.uid
        )));
    }
    match &node.record {
        ParsedAnnotation::Absent if !node.api_lock => Some(contradicted(format!(
            "held for Node {}, which has no reboot under way",
            node.name
        ))),
        ParsedAnnotation::Is(record) if names_other_lease(record, &lease.name) => {
            Some(contradicted(format!(
                "held by {holder}, whose record names {}",
                record.lease.as_deref().unwrap_or("none")
            )))
        }
        ParsedAnnotation::Absent | ParsedAnnotation::Is(_) | ParsedAnnotation::Bad { .. } => None,
    }
}

/// In phase `waiting` a node may have taken a Lease that its record does not name yet.
fn names_other_lease(record: &RebootRecord, lease: &str) -> bool {
    match (&record.lease, record.phase) {
        (Some(named), _) => named != lease,
        (None, RebootPhase::Waiting) => false,
        (
            None,
            RebootPhase::Draining
            | RebootPhase::Holding
            | RebootPhase::Rebooting
            | RebootPhase::Returning,
        ) => true,
    }
}

fn find_in_node(fleet: &FleetSnapshot, node: &ObservedNode) -> Vec<CheckFinding> {
    let mut found = Vec::new();
    let mut add = |what: String, fix: String| {
        let finding =
            CheckFinding::new(FindingSeverity::Warns, format!("Node {}", node.name), what);
        found.push(finding.with_fix(fix));
    };
    let explain = format!("dogwatch explain {}", node.name);
    match &node.record {
        ParsedAnnotation::Bad { why } => add(
            format!("annotation dogwatch.dev/reboot cannot be read: {why}"),
            explain.clone(),
        ),
        ParsedAnnotation::Absent if node.waiting_label => add(
            "labelled as waiting, but no reboot is under way".into(),
            format!("kubectl label node {} dogwatch.dev/reboot-", node.name),
        ),
        ParsedAnnotation::Absent => {}
        ParsedAnnotation::Is(record) => {
            let stop = format!("{explain}; to stop it: dogwatch abort {}", node.name);
            for what in find_in_record(fleet, node, record) {
                add(what, stop.clone());
            }
        }
    }
    if has_served_request(node) {
        add(
            "has a reboot request that was already served".into(),
            format!(
                "kubectl annotate node {} dogwatch.dev/reboot-requested-",
                node.name
            ),
        );
    }
    found
}

fn find_in_record(
    fleet: &FleetSnapshot,
    node: &ObservedNode,
    record: &RebootRecord,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let phase = record.phase.as_str();
    let holder = HolderId::for_node(&node.name);
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
    if record.lease.is_none() && record.phase != RebootPhase::Waiting {
        wrong.push(format!("is {phase} without a Lease"));
    }
    if let Some(boot) = node.boot_id.as_ref() {
        let booted = *boot != record.boot_id;
        match (record.phase, booted) {
            (RebootPhase::Waiting | RebootPhase::Draining, true) if record.ends_with_new_boot() => wrong.push(format!(
                "is {phase} to end boot {}, but runs boot {boot}: it has already been rebooted",
                record.boot_id
            )),
            (RebootPhase::Rebooting, true) => wrong.push(format!(
                "is rebooting, but already runs boot {boot}: it is returning"
            )),
            (RebootPhase::Returning, false) if !record.soft && record.trigger.method != RebootMethod::Hold => wrong.push(format!(
                "is returning, but the kubelet reports no boot except {boot}, which the reboot was to end"
            )),
            (
                RebootPhase::Waiting
                | RebootPhase::Draining
                | RebootPhase::Holding
                | RebootPhase::Returning,
                _,
            )
            | (RebootPhase::Rebooting, false) => {}
        }
    }
    if record.cordoned_by_us && !node.unschedulable {
        wrong.push(format!(
            "is {phase} and should have Dogwatch's cordon, but has none"
        ));
    }
    wrong
}

fn has_served_request(node: &ObservedNode) -> bool {
    let (Some(print), Some(last)) = (&node.request_fingerprint, node.last_reboot.get()) else {
        return false;
    };
    last.fingerprints.get("request") == Some(print)
}

/// More held slots than any of their holders may have agreed to.
fn find_over_budget(fleet: &FleetSnapshot) -> Vec<CheckFinding> {
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
            let out = held
                .iter()
                .filter(|row| is_holder_cordoned(fleet, row))
                .count();
            (out > usize::try_from(least).unwrap_or(usize::MAX)).then(|| {
                let text = format!(
                    "{out} slots are held by unavailable nodes, and a holder allows {least}"
                );
                CheckFinding::new(FindingSeverity::Blocks, format!("group {group}"), text)
                    .with_fix("dogwatch pause --all, then look at each holder: dogwatch status")
            })
        })
        .collect()
}

/// A holder that has not cordoned yet may still give its slot back.
fn is_holder_cordoned(fleet: &FleetSnapshot, row: &LeaseRow) -> bool {
    match lock::holder_node_name(&row.lease).and_then(|name| fleet.find_node(&name)) {
        Some(node) => node.unschedulable,
        None => true,
    }
}

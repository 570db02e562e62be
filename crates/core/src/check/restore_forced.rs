//! Finds records of forced work that contradict the cluster after etcd was restored from a backup:
//! remediations, the Leases that they hold, the power of hosts, and NodeReboots. Source:
//! specification §1, last line.

use std::collections::BTreeSet;
use std::sync::Arc;

use dogwatch_api::lease;

use super::finding::{CheckFinding, FindingSeverity};
use super::findings::unknown_finding;
use crate::Now;
use crate::explain::{
    FleetSnapshot, RemediationReportInput, RemediationRow, format_time, remediation_rows,
};
use crate::name::NodeName;
use crate::node_reboot::ObservedNodeReboot;
use crate::power::{HostSnapshot, PowerState};
use crate::reboot::ObservedNode;
use crate::remediation::nodes_of_host;

/// What was read of forced work. A part that could not be read holds the reason.
#[derive(Debug, Clone, PartialEq)]
pub struct ForcedWork {
    /// `None`: the cluster has no hosts, so nothing can be remediated.
    pub remediations: Result<Option<Box<RemediationReportInput>>, String>,
    pub node_reboots: Result<Vec<Arc<ObservedNodeReboot>>, String>,
}

pub(super) fn find_in_forced_work(
    fleet: &FleetSnapshot,
    work: &ForcedWork,
    now: Now,
) -> Vec<CheckFinding> {
    let mut found = match &work.remediations {
        Err(why) => vec![unknown_finding("remediations", why)],
        Ok(None) => Vec::new(),
        Ok(Some(input)) => find_in_remediations(input, now),
    };
    match &work.node_reboots {
        Err(why) => found.push(unknown_finding("NodeReboots", why)),
        Ok(reboots) => {
            let reboots = reboots.iter();
            found.extend(reboots.filter_map(|reboot| find_in_node_reboot(fleet, reboot)));
        }
    }
    found
}

fn find_in_remediations(input: &RemediationReportInput, now: Now) -> Vec<CheckFinding> {
    let rows = remediation_rows(input, now);
    let under_way: Vec<&RemediationRow> = rows.iter().filter(|row| row.under_way).collect();
    let subjects: BTreeSet<&str> = under_way.iter().map(|row| row.subject.as_str()).collect();
    let mut found: Vec<CheckFinding> = under_way
        .iter()
        .map(|row| find_in_remediation(input, row))
        .collect();
    found.extend(find_in_remediation_leases(input, &subjects));
    let hosts = input.snapshot.hosts.values();
    found.extend(hosts.filter_map(|host| find_in_host_power(input, host)));
    found
}

/// The controller goes on with a remediation from the records alone. Whether the machine has failed,
/// or is back for a long time, only its Node can show.
fn find_in_remediation(input: &RemediationReportInput, row: &RemediationRow) -> CheckFinding {
    let nodes = &input.snapshot.nodes;
    let node = row.node.as_deref();
    let node = node.and_then(|name| nodes.get(&NodeName::new(name).ok()?));
    let host = row.host.as_deref().unwrap_or("not known");
    let begun = format!("a remediation is under way ({}, host {host})", row.reason);
    let (severity, text) = if let Some(node) = node.filter(|node| node.ready) {
        let text = format!(
            "{begun}, but {}: its host may be powered off",
            ready_text(node)
        );
        (FindingSeverity::Warns, text)
    } else {
        let text = format!(
            "{begun}: check that its machine has failed, and that this had not ended before the restore"
        );
        (FindingSeverity::Unknown, text)
    };
    CheckFinding::new(severity, row.subject.clone(), text).with_fix(format!(
        "keep the controller stopped; to see how to cancel it: dogwatch explain {}",
        explained_subject(&row.subject)
    ))
}

/// The subject as `dogwatch explain` takes it.
fn explained_subject(subject: &str) -> String {
    match subject.strip_prefix("powerremediation/") {
        Some(rest) => format!("remediation/{rest}"),
        None => subject.to_owned(),
    }
}

fn ready_text(node: &ObservedNode) -> String {
    let boot = node.boot_id.as_ref();
    let boot = boot.map(|boot| format!(", in boot {boot}"));
    format!("Node {} is Ready{}", node.name, boot.unwrap_or_default())
}

fn find_in_remediation_leases(
    input: &RemediationReportInput,
    under_way: &BTreeSet<&str>,
) -> Vec<CheckFinding> {
    let leases = input.snapshot.leases.iter();
    let left = leases.filter(|(_, held)| {
        let subject = held.subject.as_deref();
        !subject.is_some_and(|subject| under_way.contains(subject))
    });
    left.map(|(node, held)| {
        let subject = held.subject.as_deref().unwrap_or("an unreadable subject");
        let text =
            format!("held for Node {node} by the remediation of {subject}, which is not under way");
        let name = format!("Lease {}{node}", lease::REMEDIATION_PREFIX);
        CheckFinding::new(FindingSeverity::Warns, name, text)
            .with_fix("the controller frees it when it runs again")
    })
    .collect()
}

/// A host that is off carries no Node that is Ready.
fn find_in_host_power(
    input: &RemediationReportInput,
    host: &Arc<HostSnapshot>,
) -> Option<CheckFinding> {
    let power = &host.status.power;
    let is_off = power.state == Some(PowerState::Off) || power.off_confirmed_at.is_some();
    if !is_off {
        return None;
    }
    let world = &input.snapshot;
    let machines = world.machines.values().map(|it| it.as_ref().clone());
    let infra = world.infra.values().map(|it| it.as_ref().clone());
    let names = nodes_of_host(host, machines, infra);
    let mut nodes = names.iter().filter_map(|name| world.nodes.get(name));
    let node = nodes.find(|node| node.ready)?;
    let since = power.off_confirmed_at.or(power.observed_at);
    let since = since.map(|at| format!(" since {}", format_time(at)));
    let text = format!(
        "recorded as off{}, but {}",
        since.unwrap_or_default(),
        ready_text(node)
    );
    let subject = format!("host/{}", host.name);
    let fix = format!("dogwatch explain {subject}");
    Some(CheckFinding::new(FindingSeverity::Warns, subject, text).with_fix(fix))
}

/// An attempt that has begun, of which the Node shows nothing: it ended before the restore, or it is
/// begun again.
fn find_in_node_reboot(fleet: &FleetSnapshot, reboot: &ObservedNodeReboot) -> Option<CheckFinding> {
    let plan = reboot.plan.as_ref().ok()?;
    let attempt = reboot.open_attempt()?;
    let node = fleet.find_node(&plan.node)?;
    if !reboot.has_not_reached(node) {
        return None;
    }
    let boot = node.boot_id.as_ref().map(ToString::to_string);
    let is_booted = attempt.boot_id_before.is_some() && attempt.boot_id_before != boot;
    let shown = if is_booted {
        "the Node runs another boot than the one that it was to end"
    } else {
        "the Node shows nothing of it"
    };
    let text = format!(
        "asked Node {} for method {} at {}, but {shown}",
        node.name,
        attempt.method.as_str(),
        format_time(attempt.started_at)
    );
    let subject = format!("nodereboot/{}", reboot.name);
    let fix = format!(
        "dogwatch explain {subject}; if it was done before the restore: kubectl delete nodereboot {}",
        reboot.name
    );
    Some(CheckFinding::new(FindingSeverity::Warns, subject, text).with_fix(fix))
}

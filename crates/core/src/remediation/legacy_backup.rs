//! The backup that older versions of Dogwatch kept in a host annotation, which people may write
//! too. It is taken over only if an object that only the controller writes shows that it is ours;
//! then the annotation is removed.
//!
//! Source: specification §4.1: nothing that a person may write on a host ends up on a Node.

use std::sync::Arc;

use dogwatch_api::annotation::NODE_BACKUP;

use super::RemediationReason;
use super::action::RemediationAction;
use super::context::RemediationContext;
use super::host_link::{HostRemediationState, node_by_name};
use super::node_cluster::NodeCluster;
use super::record::NodeBackup;
use super::snapshot::RemediationSnapshot;
use super::types::{Remediation, RemediationDecision};
use crate::decision::{DecisionEvent, EventSeverity};
use crate::power::HostSnapshot;

/// The annotation `dogwatch.dev/node-backup` of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct LegacyBackup {
    /// The part that is taken over; `None` if nothing shows that Dogwatch wrote it, or if it is not
    /// needed any more.
    pub ours: Option<NodeBackup>,
}

impl LegacyBackup {
    pub(super) fn for_remediation(
        world: &RemediationSnapshot,
        affairs: &HostRemediationState<'_>,
        case: &Remediation,
    ) -> Option<Self> {
        let text = affairs.legacy?;
        let backup: Option<NodeBackup> = serde_json::from_str(text).ok();
        let ours = backup.filter(|backup| is_ours(world, case, backup));
        // Somebody who may write the annotation must not be able to give a Node a role with it.
        let ours = ours.map(|backup| backup.without_protected().0.without_excluded());
        Some(Self { ours })
    }
}

/// Whether the backup belongs to the remediation under way. The Node's Lease shows it, because that
/// is in Dogwatch's namespace. The record proves nothing: it is on the host, like the backup.
fn is_ours(world: &RemediationSnapshot, case: &Remediation, backup: &NodeBackup) -> bool {
    let is_its_node = case
        .node_name
        .as_ref()
        .is_some_and(|name| name.as_str() == backup.node);
    let subject = case.subject.to_string();
    let record = case
        .record
        .as_ref()
        .filter(|record| record.ended_at().is_none());
    let is_recorded = record.is_some_and(|record| {
        record.subject == subject
            && record.node.as_ref() == Some(&backup.node)
            && record.node_uid.as_ref() == Some(&backup.uid)
    });
    let lease = case
        .node_name
        .as_ref()
        .and_then(|name| world.leases.get(name));
    let is_leased = lease.is_some_and(|lease| lease.subject.as_ref() == Some(&subject));
    // Versions that wrote the annotation knew one cluster.
    let is_here = case.cluster.name == NodeCluster::Management;
    let node = node_by_name(world, &NodeCluster::Management, &backup.node);
    let is_gone = node.is_none_or(|node| node.uid != backup.uid);
    is_here && is_its_node && is_recorded && is_leased && is_gone && case.problem.is_none()
}

/// Takes the backup over first, and removes the annotation after that.
pub(super) fn take_over_legacy_backup(
    ctx: &RemediationContext<'_>,
    decision: RemediationDecision,
) -> RemediationDecision {
    let (Some(legacy), Ok(host)) = (&ctx.case.legacy_backup, &ctx.case.host) else {
        return decision;
    };
    if decision.actions.iter().any(RemediationAction::keeps_backup) {
        return decision;
    }
    let stands = ctx.case.stored_backup.as_ref();
    match &legacy.ours {
        Some(backup) if stands.is_none_or(|it| it.backup.uid != backup.uid) => {
            let (host, over) = (Arc::clone(host), stands.cloned());
            let backup = backup.clone();
            decision.with_action(RemediationAction::KeepBackup { host, backup, over })
        }
        Some(_) => remove_legacy_backup(host, decision, "was moved into Dogwatch's namespace"),
        None => remove_legacy_backup(
            host,
            decision,
            "was removed, and its contents are not restored on a Node: no current remediation \
             shows that Dogwatch wrote it, or that it is needed",
        ),
    }
}

fn remove_legacy_backup(
    host: &Arc<HostSnapshot>,
    decision: RemediationDecision,
    what: &str,
) -> RemediationDecision {
    let mut decision = decision;
    decision.report.events.push(DecisionEvent {
        severity: EventSeverity::Normal,
        reason: RemediationReason::Restoring.as_str(),
        message: format!(
            "annotation {NODE_BACKUP} of host {}, of an older version, {what}",
            host.name
        ),
    });
    let host = Arc::clone(host);
    decision.with_action(RemediationAction::RemoveOldBackup { host })
}

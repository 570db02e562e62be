//! What older versions of Dogwatch kept on the host itself, in an annotation that people may write too. It is
//! taken over where something that only the controller writes shows that it is ours, and removed.
//!
//! Source: specification §4.1: nothing that a person may write on a host ends up on a Node.

use std::sync::Arc;

use super::action::Action;
use super::case::{Case, Decision};
use super::context::Context;
use super::link::{Affairs, BACKUP, node_named};
use super::reason;
use super::record::Backup;
use super::seen::World;
use crate::decision::{Event, Severity};
use crate::power::Host;

/// The annotation `dogwatch.dev/node-backup` of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct Legacy {
    /// What is taken over of it; `None`: nothing shows that Dogwatch wrote it, or it is not needed any more.
    pub ours: Option<Backup>,
}

impl Legacy {
    /// What this case makes of it.
    pub(super) fn of(world: &World, affairs: &Affairs<'_>, case: &Case) -> Option<Self> {
        let text = affairs.legacy?;
        let backup: Option<Backup> = serde_json::from_str(text).ok();
        let ours = backup.filter(|backup| is_ours(world, case, backup));
        // Whoever could write the annotation gives no Node a role by it.
        let ours = ours.map(|backup| backup.unprotected().0.kept());
        Some(Self { ours })
    }
}

/// It is of the remediation that is under way, by the Lease of the Node, which stands in Dogwatch's namespace.
/// The record alone shows nothing: it stands on the host as well.
fn is_ours(world: &World, case: &Case, backup: &Backup) -> bool {
    let is_its_node = case
        .node_name
        .as_ref()
        .is_some_and(|name| name.as_str() == backup.node);
    let subject = case.subject.to_string();
    let record = case
        .record
        .as_ref()
        .filter(|record| record.ended().is_none());
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
    let node = node_named(world, &backup.node);
    let is_gone = node.is_none_or(|node| node.uid != backup.uid);
    is_its_node && is_recorded && is_leased && is_gone && case.trouble.is_none()
}

/// Taken over first; then the annotation goes.
pub(super) fn steps(ctx: &Context<'_>, decision: Decision) -> Decision {
    let (Some(legacy), Ok(host)) = (&ctx.case.legacy, &ctx.case.host) else {
        return decision;
    };
    if decision.actions.iter().any(Action::keeps_backup) {
        return decision;
    }
    let stands = ctx.case.stored.as_ref();
    match &legacy.ours {
        Some(backup) if stands.is_none_or(|it| it.backup.uid != backup.uid) => {
            let (host, over) = (Arc::clone(host), stands.cloned());
            let backup = backup.clone();
            decision.act(Action::KeepBackup { host, backup, over })
        }
        Some(_) => remove(host, decision, "was taken over into Dogwatch's namespace"),
        None => remove(
            host,
            decision,
            "was removed, and nothing of it goes on a Node: no remediation that is under way shows that Dogwatch wrote it, or that it is needed",
        ),
    }
}

fn remove(host: &Arc<Host>, decision: Decision, what: &str) -> Decision {
    let mut decision = decision;
    decision.report.events.push(Event {
        severity: Severity::Normal,
        reason: reason::RESTORING,
        message: format!(
            "annotation {BACKUP} of host {}, of an older version, {what}",
            host.name
        ),
    });
    let host = Arc::clone(host);
    decision.act(Action::RemoveOldBackup { host })
}

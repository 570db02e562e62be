//! After the key was removed: waits until the host is on and its Node is Ready with another boot,
//! then removes what is left of the remediation. Source: specification §1 S4, §4.1, §4.4.

use std::sync::Arc;

use super::action::{LeaseConflictRule, RemediationAction};
use super::context::RemediationContext;
use super::key::KeyOwner;
use super::record::{RemediationRecord, RemediationStep};
use super::stored_backup::{BackupDisposition, HostBackup};
use super::types::{RemediationDecision, RemediationSubject};
use super::{RemediationReason, prepare, restore};
use crate::decision::{DecisionEvent, EventSeverity, decision_with_cause};
use crate::power::{CurrentPower, HostSnapshot, is_annotation_obeyed, reboot_annotations};
use crate::reboot::ObservedNode;
use dogwatch_api::annotation::EXTERNAL_REMEDIATION;

/// Decides about a remediation with neither key nor mark.
pub(super) fn decide_recovery(ctx: &RemediationContext<'_>) -> RemediationDecision {
    if let Some((RemediationReason::ForeignKey, _)) = ctx.case.problem {
        return ctx.problem_decision().expect("it is there");
    }
    let Some(record) = ctx.open_record() else {
        return decide_at_rest(ctx);
    };
    if record.time_of_step(RemediationStep::KeyRemoved).is_none() {
        let text = "the key was removed before the host was off";
        return decision_with_cause(RemediationReason::Withdrawn, text);
    }
    if let Some(why) = no_longer_awaited(ctx) {
        return decision_with_cause(RemediationReason::Withdrawn, why);
    }
    if is_back(ctx.case.node.as_deref(), record) {
        if restore::is_restore_due(ctx) {
            let text = "the Node is Ready with a new boot; labels, annotations and taints of the old Node are restored";
            return decision_with_cause(RemediationReason::Restoring, text);
        }
        return decision_with_cause(
            RemediationReason::Remediated,
            "the Node is Ready with a new boot",
        );
    }
    match ctx.case.cluster.problem.clone() {
        // A Node that has just registered has no provider id yet.
        Some((RemediationReason::OtherCluster, text)) => {
            let text = format!("waits for the Node of the Machine: {text}");
            return decision_with_cause(RemediationReason::WaitingForNode, text);
        }
        Some(problem) => return RemediationContext::wait_for_cluster(problem),
        None => {}
    }
    if ctx.effective_power() == CurrentPower::On {
        let text = "the host is on; waits for its Node to be Ready with a new boot";
        return decision_with_cause(RemediationReason::WaitingForNode, text);
    }
    say_powering_on(ctx)
}

pub(super) fn say_powering_on(ctx: &RemediationContext<'_>) -> RemediationDecision {
    let text = format!("the host is being powered on: {}", ctx.describe_power());
    decision_with_cause(RemediationReason::PoweringOn, text)
}

fn decide_at_rest(ctx: &RemediationContext<'_>) -> RemediationDecision {
    if let Some(text) = ctx
        .case
        .host_backup
        .as_ref()
        .and_then(describe_waiting_backup)
    {
        return decision_with_cause(RemediationReason::Restoring, text);
    }
    let is_done =
        |record: &RemediationRecord| record.time_of_step(RemediationStep::NodeReady).is_some();
    if ctx.case.record.as_ref().is_some_and(is_done) {
        return decision_with_cause(
            RemediationReason::Remediated,
            "the Node is Ready with a new boot",
        );
    }
    RemediationContext::not_needed("nothing is requested")
}

/// Why a backup is not restored yet.
fn describe_waiting_backup(kept: &HostBackup) -> Option<String> {
    let name = &kept.node_backup().node;
    match &kept.disposition {
        BackupDisposition::WaitsForNode => Some(format!(
            "the saved labels, annotations and taints of node {name} are restored when it registers again"
        )),
        BackupDisposition::NotSameMachine(why) => Some(format!(
            "the saved labels, annotations and taints of node {name} are not restored: {why}; \
             they are kept for the node's own machine"
        )),
        BackupDisposition::NotDeleted
        | BackupDisposition::Due { .. }
        | BackupDisposition::Stale(_) => None,
    }
}

/// Whether the Node is back. A new boot id proves it; if the old one was never known, a new Node
/// does.
pub(super) fn is_back(node: Option<&ObservedNode>, record: &RemediationRecord) -> bool {
    let Some(node) = node.filter(|node| node.ready) else {
        return false;
    };
    match (&record.boot_id, &node.boot_id) {
        (Some(old), Some(new)) => old != new.as_str(),
        (Some(_), None) => false,
        (None, _) => record.node_uid.as_ref() != Some(&node.uid),
    }
}

/// Why nobody waits for the Node any more: its Lease would count it as unavailable for ever.
fn no_longer_awaited(ctx: &RemediationContext<'_>) -> Option<String> {
    if let Some((RemediationReason::Withdrawn, text)) = &ctx.case.problem {
        return Some(text.clone());
    }
    let host = ctx.case.host.as_ref().ok()?;
    is_deprovisioned(host).then(|| {
        format!(
            "host {} is no longer provisioned: its Node is gone",
            host.name
        )
    })
}

/// The provisioner has taken the machine away from its former user.
fn is_deprovisioned(host: &HostSnapshot) -> bool {
    let key = KeyOwner::Foreign;
    let asked = key.with_key_on(host);
    !reboot_annotations(&asked)
        .iter()
        .filter(|request| request.name == key.annotation_name())
        .all(|request| is_annotation_obeyed(&asked, request))
}

/// Records each step that was observed since the key was removed, once.
pub(super) fn record_recovery_steps(
    ctx: &RemediationContext<'_>,
    decision: RemediationDecision,
) -> RemediationDecision {
    let Some(next) = next_record(ctx) else {
        return decision;
    };
    let Ok(host) = &ctx.case.host else {
        return decision;
    };
    let host = Arc::clone(host);
    let decision = remove_served_mark(ctx, decision, &next);
    decision.with_action(RemediationAction::WriteRecord { host, record: next })
}

/// A mark that was set again before the Node was back is served when the Node is back. OpenShift's
/// health check sets it as soon as the Node is missing, and never removes it: it would cut the power
/// of the healthy node after the cooldown, and so on for ever.
pub(super) fn is_mark_served(ctx: &RemediationContext<'_>) -> bool {
    let is_machine = matches!(ctx.case.subject, RemediationSubject::Machine(_));
    let machine = ctx.case.machine.as_ref().filter(|_| is_machine);
    machine
        .zip(ctx.open_record())
        .is_some_and(|(machine, record)| {
            machine.need.is_some()
                && machine.uid == record.uid
                && record.time_of_step(RemediationStep::KeyRemoved).is_some()
                && is_back(ctx.case.node.as_deref(), record)
        })
}

/// The record's end is written after the mark is removed, so that the mark is removed in any case.
fn remove_served_mark(
    ctx: &RemediationContext<'_>,
    decision: RemediationDecision,
    next: &RemediationRecord,
) -> RemediationDecision {
    let ends = next.time_of_step(RemediationStep::NodeReady).is_some();
    let machine = ctx.case.machine.as_ref();
    let Some(machine) = machine.filter(|_| ends && is_mark_served(ctx)) else {
        return decision;
    };
    let mut decision = decision;
    decision.report.events.push(DecisionEvent {
        severity: EventSeverity::Normal,
        reason: RemediationReason::Remediated.as_str(),
        message: format!(
            "annotation {EXTERNAL_REMEDIATION}, which was set again before the Node was back, is \
             removed: the Node is Ready with a new boot"
        ),
    });
    let machine = Arc::clone(machine);
    let removal = RemediationAction::RemoveMachineNeed { machine };
    decision.actions.insert(0, removal);
    decision
}

fn next_record(ctx: &RemediationContext<'_>) -> Option<RemediationRecord> {
    let record = ctx.open_record().filter(|_| !ctx.case.is_keyed())?;
    let mut next = record.clone();
    if record.time_of_step(RemediationStep::KeyRemoved).is_none() {
        if ctx.case.needs_remediation {
            return None;
        }
        next.push_step(ctx.stamp_step(RemediationStep::Withdrawn));
        return Some(next);
    }
    if ctx.effective_power() == CurrentPower::On {
        next.push_step(ctx.stamp_step(RemediationStep::PoweredOn));
    }
    if is_back(ctx.case.node.as_deref(), record) && !restore::is_restore_due(ctx) {
        next.push_step(ctx.stamp_step(RemediationStep::NodeReady));
    } else if no_longer_awaited(ctx).is_some() {
        next.push_step(ctx.stamp_step(RemediationStep::Failed));
    }
    (next != *record).then_some(next)
}

/// Removes the fencing annotation and frees the Lease once this remediation does nothing more and
/// no other has claimed the Node.
pub(super) fn free_node_claims(
    ctx: &RemediationContext<'_>,
    decision: RemediationDecision,
) -> RemediationDecision {
    let case = ctx.case;
    let Some(name) = &case.node_name else {
        return decision;
    };
    let is_preparing = decision.cause.reason == RemediationReason::Preparing;
    let is_open = ctx.open_record().is_some() && !records_end(&decision);
    if case.is_keyed() || is_preparing || is_open || ctx.concurrent.is_node_claimed(case, name) {
        return decision;
    }
    let mut decision = decision;
    if let Some(node) = case.node.as_ref().filter(|node| node.being_fenced) {
        decision = decision.with_action(RemediationAction::UnmarkNode {
            node: Arc::clone(node),
        });
    }
    if let Some(lease) = &case.held_lease {
        decision = decision.with_action(RemediationAction::FreeLease {
            node: name.clone(),
            version: lease.resource_version.clone(),
        });
    }
    decision
}

/// Whether the host is held off, or was and its Node is not back.
pub(super) fn is_node_out(ctx: &RemediationContext<'_>) -> bool {
    let is_removed =
        |record: &RemediationRecord| record.time_of_step(RemediationStep::KeyRemoved).is_some();
    ctx.case.is_keyed() || ctx.open_record().is_some_and(is_removed)
}

/// Takes a lost Lease again while the node is out: once the Node is deleted, nothing else counts
/// it. It goes before the release, so that without the Lease no Node is deleted; everything else goes
/// before it.
pub(super) fn take_lost_lease(
    ctx: &RemediationContext<'_>,
    decision: RemediationDecision,
) -> RemediationDecision {
    let case = ctx.case;
    let is_known = case.cluster.has_dogwatch && case.cluster.problem.is_none();
    let is_open = ctx.open_record().is_some() && !records_end(&decision);
    if case.held_lease.is_some() || !is_known || !is_open || !is_node_out(ctx) {
        return decision;
    }
    let mut actions = decision.actions.iter();
    let releases = actions.any(|action| action.as_release().is_some());
    let is_idle = decision.actions.is_empty() && decision.observe.is_empty();
    if !releases && !is_idle {
        return decision;
    }
    let mut decision = decision;
    if let Some(take) = prepare::take_lease_action(ctx, LeaseConflictRule::Continue) {
        decision.actions.insert(0, take);
    }
    decision
}

/// Whether this very decision records the end, before the actions that follow it.
fn records_end(decision: &RemediationDecision) -> bool {
    let mut records = decision
        .actions
        .iter()
        .filter_map(RemediationAction::host_record);
    records.any(|record| record.ended_at().is_some())
}

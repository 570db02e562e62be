//! The steps before a new key: guards, Lease, fencing annotation on the Node, fresh reads. Source:
//! specification §2.2, §4.4.

#![expect(
    clippy::result_large_err,
    reason = "a decision is moved a few times a second at most"
)]

use std::sync::Arc;

use super::action::{LeaseConflictRule, RemediationAction};
use super::context::RemediationContext;
use super::host_link::record_on_host;
use super::key::{KeyOwner, RemediationKey};
use super::record::{RemediationRecord, RemediationStep};
use super::request::StrategyType;
use super::snapshot::FreshReads;
use super::types::RemediationDecision;
use super::{RemediationReason, guard, recovery, release_permit, restore};
use crate::decision::{EventSeverity, decision_with_cause};
use crate::power::HostSnapshot;

/// Returns the fresh reads and the host once all preconditions of a key are met; else the decision
/// that meets the next one or waits for it.
pub(super) fn prepare_key<'a>(
    ctx: &RemediationContext<'a>,
    host: &HostSnapshot,
    how: StrategyType,
) -> Result<(&'a FreshReads, &'a Arc<HostSnapshot>), RemediationDecision> {
    if let Some(trouble) = ctx.problem_decision() {
        return Err(trouble);
    }
    // Checks first whatever would refuse the release later, so that no host is switched off in
    // vain.
    if let Some(problem) = release_permit::foreseen_problem(ctx, host) {
        return Err(RemediationContext::refuse_with_warning(problem));
    }
    if let Some(refusal) = guard::find_refusal(ctx, host) {
        return Err(refusal.into_decision());
    }
    require_node_claims(ctx)?;
    let Some(fresh) = ctx.recent_reads() else {
        let text = "reading everything again before the host is powered off";
        return Err(decision_with_cause(RemediationReason::Preparing, text)
            .with_observe(ctx.observe_fresh()));
    };
    match check_fresh_reads(ctx, host, fresh) {
        Ok(host) => {
            require_backup_written(ctx, host, fresh, how)?;
            Ok((fresh, host))
        }
        Err(StaleReads::Later(text)) => {
            let until = RemediationContext::reads_valid_until(fresh);
            Err(decision_with_cause(RemediationReason::Preparing, text)
                .wake_at(until, "what was read to be seen"))
        }
        Err(StaleReads::Again(text)) => {
            Err(decision_with_cause(RemediationReason::Preparing, text)
                .with_observe(ctx.observe_fresh()))
        }
    }
}

/// Saves the Node's backup before its host is switched off: if saving fails, no host is switched
/// off in vain.
fn require_backup_written(
    ctx: &RemediationContext<'_>,
    host: &Arc<HostSnapshot>,
    fresh: &FreshReads,
    how: StrategyType,
) -> Result<(), RemediationDecision> {
    let keep = match (how, &fresh.backup) {
        (StrategyType::DeleteNode, Some(there)) => {
            release_permit::keep_backup_action(ctx, host, there)
        }
        (StrategyType::DeleteNode, None) | (StrategyType::OutOfServiceTaint, _) => None,
    };
    let text = "saving the Node's labels, annotations and taints before the host is powered off";
    keep.map_or(Ok(()), |keep| {
        let decision = decision_with_cause(RemediationReason::Preparing, text).with_action(keep);
        Err(restore::restore_with_new_backup(ctx, decision, fresh))
    })
}

fn require_node_claims(ctx: &RemediationContext<'_>) -> Result<(), RemediationDecision> {
    let text = "the node's Lease and mark, before the host is switched off";
    let decision = decision_with_cause(RemediationReason::Preparing, text);
    let is_kept = recovery::is_node_out(ctx) || is_lease_of_claimant(ctx);
    let on_conflict = if is_kept {
        LeaseConflictRule::KeepLease
    } else {
        LeaseConflictRule::FreeLease
    };
    let decision = claim_node(ctx, decision, on_conflict);
    if decision.actions.is_empty() {
        Ok(())
    } else {
        Err(decision)
    }
}

/// Takes the Lease and sets the fencing annotation, so that the budgets of planned reboots count
/// this node and whoever drains it stops.
fn claim_node(
    ctx: &RemediationContext<'_>,
    decision: RemediationDecision,
    on_conflict: LeaseConflictRule,
) -> RemediationDecision {
    let case = ctx.case;
    let mut decision = decision;
    if is_lease_needed(ctx) {
        decision.actions.extend(take_lease_action(ctx, on_conflict));
    }
    if let Some(node) = case.node.as_ref().filter(|node| !node.being_fenced) {
        decision = decision.with_action(RemediationAction::MarkNode {
            node: Arc::clone(node),
            subject: case.subject.clone(),
        });
    }
    decision
}

/// Whether the node's Lease is not held for this remediation, or not for certain. A Lease of a
/// remediation that is under way is left to it: two of one Node would take it from each other for
/// ever. Whether the node is alone matters only before its host is held off.
fn is_lease_needed(ctx: &RemediationContext<'_>) -> bool {
    let case = ctx.case;
    if case.node_name.is_none() || !case.cluster.has_dogwatch {
        return false;
    }
    let Some(held) = &case.held_lease else {
        return true;
    };
    let own = case.subject.to_string();
    let of_another = held.subject.as_ref().is_some_and(|subject| *subject != own);
    (of_another && !is_lease_of_claimant(ctx))
        || held.may_be_freed
        || (case.control_plane && !held.alone && !case.is_keyed())
}

/// Whether the Lease is held for another remediation of this Node that is under way. A refusal must
/// not free it.
fn is_lease_of_claimant(ctx: &RemediationContext<'_>) -> bool {
    let case = ctx.case;
    let own = case.subject.to_string();
    let subject = case
        .held_lease
        .as_ref()
        .and_then(|held| held.subject.as_ref());
    subject
        .zip(case.node_name.as_ref())
        .is_some_and(|(subject, node)| {
            *subject != own && ctx.concurrent.is_claimed_by(case, node, subject)
        })
}

/// `None`: the name of the Node is not known.
pub(super) fn take_lease_action(
    ctx: &RemediationContext<'_>,
    on_conflict: LeaseConflictRule,
) -> Option<RemediationAction> {
    let case = ctx.case;
    Some(RemediationAction::TakeLease {
        node: case.node_name.clone()?,
        control_plane: case.control_plane,
        subject: case.subject.clone(),
        on_conflict,
    })
}

/// Whether a person, not Dogwatch, added this remediation's key, with a confirmation. Dogwatch adds
/// its key and a record in one patch.
pub(super) fn is_key_of_person(ctx: &RemediationContext<'_>) -> bool {
    let case = ctx.case;
    case.is_keyed()
        && case.needs_remediation
        && case.key != KeyOwner::Foreign
        && case.problem.is_none()
        && !ctx.open_record().is_some_and(is_key_held)
        && !is_record_overwritten(ctx)
}

fn is_key_held(record: &RemediationRecord) -> bool {
    record.ended_at().is_none() && record.time_of_step(RemediationStep::KeyRemoved).is_none()
}

/// Whether another remediation that also holds the host off wrote its record over ours. A host has
/// room for one record, the later one's. The earlier remediation must not write its own again, or
/// each would in turn take the key for a person's, for ever.
fn is_record_overwritten(ctx: &RemediationContext<'_>) -> bool {
    let Ok(host) = &ctx.case.host else {
        return false;
    };
    let record = record_on_host(host).filter(is_key_held);
    let stands = |record: &RemediationRecord| {
        RemediationKey::keys_on_host(host).any(|key| key.owner.uid() == Some(&record.uid))
    };
    record.is_some_and(|record| ctx.case.key.uid() != Some(&record.uid) && stands(&record))
}

/// Does for a person's key what would have preceded ours. The record is written last: it says that
/// all the rest is done.
pub(super) fn take_over_key(
    ctx: &RemediationContext<'_>,
    host: &Arc<HostSnapshot>,
    record: RemediationRecord,
) -> RemediationDecision {
    let text = format!(
        "somebody else put {} on host {}: the node's Lease, its mark and the record are written first",
        ctx.case.key.annotation_name(),
        host.name
    );
    let host = Arc::clone(host);
    let decision = decision_with_cause(RemediationReason::Preparing, text);
    claim_node(ctx, decision, LeaseConflictRule::Continue)
        .with_action(RemediationAction::WriteRecord { host, record })
}

/// Why the fresh reads cannot be used.
enum StaleReads {
    /// They contradict the watch, which will catch up.
    Later(String),
    /// They are older than our own last write.
    Again(String),
}

/// Checks that the mark still stands and that host and Node are those of the decision.
fn check_fresh_reads<'a>(
    ctx: &RemediationContext<'_>,
    host: &HostSnapshot,
    fresh: &'a FreshReads,
) -> Result<&'a Arc<HostSnapshot>, StaleReads> {
    let case = ctx.case;
    let later = |text: &str| Err(StaleReads::Later(text.to_owned()));
    if !fresh.needs_remediation {
        return later("the remediation was withdrawn a moment ago");
    }
    let Some(read) = fresh.host.as_ref().filter(|read| read.uid == host.uid) else {
        return later("the host was replaced a moment ago");
    };
    if read.annotations.contains_key(&case.key.annotation_name()) {
        return later("the key was put on the host; waits until it is visible");
    }
    let uid = |node: Option<&Arc<crate::reboot::ObservedNode>>| node.map(|node| node.uid.clone());
    if uid(fresh.node.as_ref()) != uid(case.node.as_ref()) {
        return later("the Node was replaced a moment ago");
    }
    if fresh.node.as_ref().is_some_and(|node| !node.being_fenced) {
        return Err(StaleReads::Again(
            "checking whether the mark is still there".to_owned(),
        ));
    }
    Ok(read)
}

/// Adds the key and the record of this remediation to the host.
pub(super) fn add_key(
    ctx: &RemediationContext<'_>,
    host: &Arc<HostSnapshot>,
    record: RemediationRecord,
) -> RemediationDecision {
    let mut text = format!(
        "{} is put on host {}: the host is powered off and kept off",
        ctx.case.key.annotation_name(),
        host.name
    );
    if !ctx.case.cluster.has_dogwatch {
        let more = format!(
            "; Dogwatch is not installed in {}: no budget there counts the Node, and only the \
             guards of the management cluster hold",
            ctx.case.cluster.name
        );
        text.push_str(&more);
    }
    decision_with_cause(RemediationReason::Preparing, text)
        .with_action(RemediationAction::AddKey {
            host: Arc::clone(host),
            key: ctx.case.key.clone(),
            record,
        })
        .with_event(EventSeverity::Normal)
}

pub(super) fn new_record(
    ctx: &RemediationContext<'_>,
    uid: &str,
    attempt: u32,
) -> RemediationRecord {
    let case = ctx.case;
    let node = case.node.as_ref();
    let boot = node.and_then(|node| node.boot_id.as_ref());
    let mut requested = ctx.stamp_step(RemediationStep::Requested);
    requested.at = ctx.wall_time_at(ctx.memory.first_decided_at.unwrap_or(ctx.now.mono));
    RemediationRecord {
        subject: case.subject.to_string(),
        uid: uid.to_owned(),
        node: case.node_name.as_ref().map(ToString::to_string),
        node_uid: node.map(|node| node.uid.clone()),
        cluster: case.cluster.name.record_name(),
        cluster_uid: case.cluster.uid.clone(),
        boot_id: boot.map(ToString::to_string),
        attempt,
        steps: vec![requested, ctx.stamp_step(RemediationStep::KeyAdded)],
    }
}

//! The permit to release a Node's workloads. Source: specification §1 S2, §4.1.

#![expect(
    clippy::result_large_err,
    reason = "a decision is moved a few times a second at most"
)]

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::action::RemediationAction;
use super::context::RemediationContext;
use super::heartbeat::NodeHeartbeat;
use super::host_link::RemediationProblem;
use super::key::KeyOwner;
use super::record::NodeBackup;
use super::request::StrategyType;
use super::snapshot::FreshReads;
use super::stored_backup::{BackupDisposition, StoredBackup};
use super::types::RemediationDecision;
use super::{RemediationReason, node_silence, restore};
use crate::decision::decision_with_cause;
use crate::name::NodeName;
use crate::power::{HostName, HostSnapshot, PowerOffProof, SystemMatch};
use crate::reboot::ObservedNode;

/// Certifies that this Node's machine is proved off for this request, and was still off a moment
/// ago. Only [`super::decide`] makes one; deleting a Node or tainting it out of service requires
/// it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleasePermit {
    node: NodeName,
    node_uid: String,
    host: HostName,
    proof: PowerOffProof,
    beat: NodeHeartbeat,
    until: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadRelease {
    pub permit: ReleasePermit,
    pub strategy_type: StrategyType,
    /// `timeAdded` of the taint, in whole seconds. The request's status keeps it, so that Dogwatch
    /// recognizes its own taint when it removes it. Unused when the Node is deleted.
    pub tainted_at: Timestamp,
}

impl ReleasePermit {
    pub fn node(&self) -> &NodeName {
        &self.node
    }

    /// The Node's UID, a precondition of the release.
    pub fn node_uid(&self) -> &str {
        &self.node_uid
    }

    pub fn host(&self) -> &HostName {
        &self.host
    }

    pub fn proof(&self) -> &PowerOffProof {
        &self.proof
    }

    /// The Node's heartbeat when the permit was made; a later change contradicts the permit.
    pub fn beat(&self) -> &NodeHeartbeat {
        &self.beat
    }

    /// Whether the permit still holds at this moment of the monotonic clock. If not, everything is
    /// checked again.
    pub fn is_valid_at(&self, now: Duration) -> bool {
        now < self.until
    }

    pub fn remaining_validity(&self, now: Duration) -> Duration {
        self.until.saturating_sub(now)
    }
}

/// Checks whether the Node may be released now; else returns what to observe or write first.
///
/// Uses reads that are at most 5 s old, and the present proof. Checks in this order: the power
/// controller's state, a fresh GET of the host, then the Node, its identity and its silence.
pub(super) fn issue_release_permit(
    ctx: &RemediationContext<'_>,
    how: StrategyType,
) -> Result<ReleasePermit, RemediationDecision> {
    if let Some(trouble) = ctx.problem_decision() {
        return Err(trouble);
    }
    if ctx.case.key == KeyOwner::Foreign {
        return Err(refuse_foreign_key(ctx));
    }
    let proof = ctx.off_proof().ok_or_else(|| wait_for_proof(ctx))?;
    node_silence::require_unbroken_silence(ctx, proof)?;
    node_silence::require_lasting_silence(ctx, proof)?;
    let Some(fresh) = ctx
        .recent_reads()
        .filter(|fresh| fresh.asked_at >= proof.valid_since())
    else {
        let text = "the host is proved off; reading everything again before the Node is released";
        return Err(decision_with_cause(RemediationReason::ProvingOff, text)
            .with_observe(ctx.observe_fresh()));
    };
    let host = check_fresh_host(ctx, fresh, proof)?;
    let node = check_fresh_node(ctx, fresh)?;
    let same = check_identity(ctx, proof, node)?;
    node_silence::require_silence_in_reads(ctx, fresh, proof, same)?;
    match how {
        StrategyType::DeleteNode => require_stored_backup(ctx, fresh, host, node)?,
        StrategyType::OutOfServiceTaint => {}
    }
    Ok(ReleasePermit {
        node: node.name.clone(),
        node_uid: node.uid.clone(),
        host: host.name.clone(),
        proof: proof.clone(),
        beat: fresh.heartbeat.clone(),
        until: RemediationContext::reads_valid_until(fresh),
    })
}

/// Refuses to release for a key that somebody else wrote. The truth table only asks whether there
/// is a key, but nobody knows whom this one is for.
fn refuse_foreign_key(ctx: &RemediationContext<'_>) -> RemediationDecision {
    let text = format!(
        "Dogwatch did not write the value of annotation {} on the host, so the Node is not \
         released; remove the annotation, and Dogwatch writes its own",
        ctx.case.key.annotation_name()
    );
    RemediationContext::refuse_with_warning((RemediationReason::ForeignKey, text))
}

/// The host is off, and nothing proves yet that our power-off did it.
fn wait_for_proof(ctx: &RemediationContext<'_>) -> RemediationDecision {
    let text = format!(
        "the BMC reports off; the proof is not complete: {}",
        ctx.describe_power()
    );
    ctx.observe_heartbeat(decision_with_cause(RemediationReason::ProvingOff, text))
}

/// The reads contradict the watch: waits until the watch catches up.
fn wait_for_watch(
    fresh: &FreshReads,
    reason: RemediationReason,
    text: String,
) -> RemediationDecision {
    decision_with_cause(reason, text).wake_at(
        RemediationContext::reads_valid_until(fresh),
        "what was read to be seen",
    )
}

/// Checks that our key is on the host and that the mark still stands.
fn check_fresh_host<'a>(
    ctx: &RemediationContext<'_>,
    fresh: &'a FreshReads,
    proof: &PowerOffProof,
) -> Result<&'a Arc<HostSnapshot>, RemediationDecision> {
    let changed = |text: &str| {
        Err(wait_for_watch(
            fresh,
            RemediationReason::ProvingOff,
            text.to_owned(),
        ))
    };
    let Some(host) = fresh.host.as_ref() else {
        return changed("the host is gone");
    };
    if !ctx.case.key.is_on_host(host) {
        return changed("Dogwatch's key is no longer on the host");
    }
    if !ctx.proves_off(proof, host) {
        return changed("the key on the host is not the one for which off was proved");
    }
    if !fresh.needs_remediation {
        return changed("the remediation was withdrawn a moment ago");
    }
    Ok(host)
}

/// Checks that the Node is the one that the decision is about.
fn check_fresh_node<'a>(
    ctx: &RemediationContext<'_>,
    fresh: &'a FreshReads,
) -> Result<&'a Arc<ObservedNode>, RemediationDecision> {
    let watched = ctx.case.node.as_ref().map(|node| &node.uid);
    match &fresh.node {
        None => {
            let text = "the Node is gone already".to_owned();
            Err(wait_for_watch(fresh, RemediationReason::ProvingOff, text))
        }
        Some(node) if Some(&node.uid) == watched => Ok(node),
        Some(node) => {
            let text = format!("the name {} now belongs to another Node", node.name);
            Err(wait_for_watch(fresh, RemediationReason::NodeReplaced, text))
        }
    }
}

/// Checks that the BMC and the Node report the same machine, or that they cannot be compared and
/// need not be.
fn check_identity(
    ctx: &RemediationContext<'_>,
    proof: &PowerOffProof,
    node: &ObservedNode,
) -> Result<SystemMatch, RemediationDecision> {
    let same = node_silence::compare_system_ids(proof.system_uuid(), node.system_uuid.as_deref());
    let is_required = ctx.config.require_identity;
    match find_identity_problem(proof.host(), proof.system_uuid(), node, is_required) {
        Some(problem) => Err(RemediationContext::refuse_with_warning(problem)),
        None => Ok(same),
    }
}

/// Finds, before the key is added, what would refuse the release later.
pub(super) fn foreseen_problem(
    ctx: &RemediationContext<'_>,
    host: &HostSnapshot,
) -> Option<RemediationProblem> {
    let node = ctx.case.node.as_ref()?;
    let power = ctx.memory.power.as_ref();
    let bmc = power.and_then(|power| power.system_uuid.as_deref());
    find_identity_problem(&host.name, bmc, node, ctx.config.require_identity)
}

/// The host's BMC belongs to another machine, or is not known to belong to this Node's although
/// that is required.
pub(crate) fn find_identity_problem(
    host: &HostName,
    bmc: Option<&str>,
    node: &ObservedNode,
    is_required: bool,
) -> Option<RemediationProblem> {
    let own = node.system_uuid.as_deref();
    let same = node_silence::compare_system_ids(bmc, own);
    let (bmc, own) = (bmc.unwrap_or("nothing"), own.unwrap_or("nothing"));
    match same {
        SystemMatch::Different => {
            let text = format!(
                "the BMC of host {host} reports system UUID {bmc}, and node {} reports {own}: the BMC would power off \
                 another machine; correct spec.bmc.address, or the link to the host",
                node.name
            );
            Some((RemediationReason::WrongHost, text))
        }
        SystemMatch::NotComparable if is_required => {
            let text = format!(
                "the BMC of host {host} reports system UUID {bmc}, and node {} reports {own}: \
                 they cannot be compared, and --require-host-identity is set",
                node.name
            );
            Some((RemediationReason::IdentityUnknown, text))
        }
        SystemMatch::Same | SystemMatch::NotComparable => None,
    }
}

/// The message of a release; it also says when the identity could not be checked.
pub(super) fn describe_release(ctx: &RemediationContext<'_>, cleared: &ReleasePermit) -> String {
    let node = ctx.case.node.as_ref();
    let own = node.and_then(|node| node.system_uuid.as_deref());
    let same = node_silence::compare_system_ids(cleared.proof.system_uuid(), own);
    let text = format!(
        "host {} is proved off: the workloads of node {} are released",
        cleared.host, cleared.node
    );
    match same {
        SystemMatch::Same => text,
        SystemMatch::NotComparable | SystemMatch::Different => format!(
            "{text}; system UUIDs could not be compared, but the Node sent no heartbeat for {} of that time",
            crate::duration::format_duration(cleared.beat.required_silence())
        ),
    }
}

/// Saves the Node's backup before the Node is deleted.
fn require_stored_backup(
    ctx: &RemediationContext<'_>,
    fresh: &FreshReads,
    host: &Arc<HostSnapshot>,
    node: &ObservedNode,
) -> Result<(), RemediationDecision> {
    let wanted = fresh.backup.as_ref();
    let Some(wanted) = wanted.filter(|wanted| wanted.uid == node.uid) else {
        let text = "the Node's labels, annotations and taints have not been read".to_owned();
        return Err(wait_for_watch(fresh, RemediationReason::ProvingOff, text));
    };
    match keep_backup_action(ctx, host, wanted) {
        // The watch may not have shown yet that it was removed, by a write whose answer was lost.
        None if fresh.stored_backup != ctx.case.stored_backup => {
            let text = "what is stored of the Node was changed a moment ago".to_owned();
            Err(wait_for_watch(fresh, RemediationReason::ProvingOff, text))
        }
        None => Ok(()),
        Some(keep) => {
            let text = "the Node's labels, annotations and taints are saved first";
            let decision =
                decision_with_cause(RemediationReason::ProvingOff, text).with_action(keep);
            Err(restore::restore_with_new_backup(ctx, decision, fresh))
        }
    }
}

/// The action that saves the Node's backup; `None` if it is saved already. An older backup that is
/// still to be restored on this machine's Node is merged into it. Any other old backup is
/// overwritten: it blocks nothing. A backup that a deletion without an answer may still remove is
/// written again: the deletion names the older version, so the API server then refuses it.
pub(super) fn keep_backup_action(
    ctx: &RemediationContext<'_>,
    host: &Arc<HostSnapshot>,
    there: &NodeBackup,
) -> Option<RemediationAction> {
    let stored = ctx.case.stored_backup.as_ref();
    let is_its =
        |stored: &&Arc<StoredBackup>| stored.backup.uid == there.uid || is_due_on(ctx, there);
    let wanted = match stored.filter(is_its) {
        Some(stored) => there.clone().merged_with(&stored.backup),
        None => there.clone(),
    };
    let stands = stored.is_some_and(|stored| {
        stored.backup == wanted && ctx.memory.doubtful_backup != Some(stored.backup_version())
    });
    (!stands).then(|| RemediationAction::KeepBackup {
        host: Arc::clone(host),
        backup: wanted,
        over: stored.cloned(),
    })
}

/// Whether the stored backup is certain to be restored on this very Node.
fn is_due_on(ctx: &RemediationContext<'_>, there: &NodeBackup) -> bool {
    let fate = ctx.case.host_backup.as_ref().map(|kept| &kept.disposition);
    matches!(fate, Some(BackupDisposition::Due { node, is_proved: true }) if node.uid == there.uid)
}

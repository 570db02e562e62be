//! Backs up what others had put on a Node before it is deleted, and restores it on the new Node.
//! Source: specification §4.1.

use std::sync::Arc;

use super::RemediationReason;
use super::action::RemediationAction;
use super::config::RemediationConfig;
use super::context::RemediationContext;
use super::record::{NodeBackup, NodeTaint};
use super::snapshot::FreshReads;
use super::stored_backup::{BackupDisposition, HostBackup};
use super::types::RemediationDecision;
use crate::decision::{DecisionEvent, EventSeverity};
use crate::reboot::ObservedNode;
use dogwatch_api::annotation::EXTERNAL_REMEDIATION;

/// Maximum size of a backup in bytes. All annotations of a Node may have 256 KiB, which doubles as
/// JSON in JSON; a `ConfigMap` may have 1 MiB.
const MAX_BACKUP_BYTES: usize = 512 * 1024;

/// Prefix of our annotations, labels and taints: they are never transferred to a new Node.
const DOGWATCH_PREFIX: &str = "dogwatch.dev/";
/// Labels that give a Node roles, or workloads that trust it. A kubelet may not set them on its own
/// Node.
const PROTECTED_LABEL_PREFIXES: [&str; 2] = [
    "node-role.kubernetes.io/",
    "node-restriction.kubernetes.io/",
];
/// Taints that Kubernetes sets and lifts by itself, according to the Node's state.
const STATE_TAINT_PREFIXES: [&str; 2] =
    ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];

impl NodeBackup {
    /// The backup of a Node, with its annotations and taints. A cordon of a planned reboot or of
    /// the lock API is left out, because whoever would lift it disappears with the old Node. A
    /// cordon that a person asked to keep after the boot, or of a quarantine, is included.
    pub fn from_node(node: &ObservedNode, annotations: TextMap, taints: Vec<NodeTaint>) -> Self {
        let whole = Self {
            node: node.name.to_string(),
            uid: node.uid.clone(),
            system_uuid: node.system_uuid.clone(),
            provider_id: node.provider_id.clone(),
            cluster: None,
            labels: node.labels.clone(),
            annotations,
            taints,
            cordoned: node.unschedulable && !node.is_cordon_ours(),
            left_out: 0,
        };
        whole.without_excluded()
    }

    /// Removes what is never kept: what Dogwatch wrote, the mark, and taints that reflect the
    /// Node's state. If the backup is too large, annotations are left out, the longest first.
    #[must_use]
    pub fn without_excluded(mut self) -> Self {
        self.labels.retain(|name, _| is_name_of_others(name));
        self.annotations.retain(|name, _| is_name_of_others(name));
        self.taints.retain(|taint| is_taint_kept(&taint.key));
        self.taints.sort();
        while self.json_size() > MAX_BACKUP_BYTES {
            let longest = self.annotations.iter().max_by_key(|(_, text)| text.len());
            let Some(name) = longest.map(|(name, _)| name.clone()) else {
                break;
            };
            self.annotations.remove(&name);
            self.left_out += 1;
        }
        self
    }

    /// The part of this backup that is missing on a Node that has `there`. What is there already
    /// wins.
    #[must_use]
    pub fn missing_on(&self, there: &NodeBackup) -> Self {
        let kept = self.clone().without_excluded();
        let has = |taint: &NodeTaint| {
            let mut taints = there.taints.iter();
            taints.any(|other| other.key == taint.key && other.effect == taint.effect)
        };
        Self {
            labels: without_present(kept.labels, &there.labels),
            annotations: without_present(kept.annotations, &there.annotations),
            taints: kept.taints.into_iter().filter(|it| !has(it)).collect(),
            cordoned: kept.cordoned && !there.cordoned,
            ..kept
        }
    }

    /// Splits off the labels that only the same machine gets back, and returns their names.
    #[must_use]
    pub fn without_protected(mut self) -> (Self, Vec<String>) {
        let names = self.labels.keys().filter(|name| is_protected(name));
        let protected: Vec<String> = names.cloned().collect();
        self.labels.retain(|name, _| !is_protected(name));
        (self, protected)
    }

    /// Adds an older backup of this machine that is not restored yet. What is on the Node wins.
    #[must_use]
    pub fn merged_with(self, before: &NodeBackup) -> Self {
        let more = before.missing_on(&self);
        let mut all = self;
        all.labels.extend(more.labels);
        all.annotations.extend(more.annotations);
        all.taints.extend(more.taints);
        all.cordoned |= more.cordoned;
        all.without_excluded()
    }

    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
            && self.annotations.is_empty()
            && self.taints.is_empty()
            && !self.cordoned
    }

    fn json_size(&self) -> usize {
        let text = serde_json::to_string(self).expect("text and flags only");
        text.len()
    }
}

fn is_name_of_others(name: &str) -> bool {
    name != EXTERNAL_REMEDIATION && !name.starts_with(DOGWATCH_PREFIX)
}

/// Subdomains are protected too, like `x.node-restriction.kubernetes.io/…`. Source: Kubernetes,
/// `NodeRestriction`.
fn is_protected(label: &str) -> bool {
    let mut prefixes = PROTECTED_LABEL_PREFIXES.iter();
    prefixes.any(|prefix| {
        let below = label.split_once(prefix).map(|(sub, _)| sub);
        below.is_some_and(|sub| sub.is_empty() || sub.ends_with('.'))
    })
}

fn is_taint_kept(taint: &str) -> bool {
    is_name_of_others(taint)
        && !STATE_TAINT_PREFIXES
            .iter()
            .any(|prefix| taint.starts_with(prefix))
}

type TextMap = std::collections::BTreeMap<String, String>;

fn without_present(mut kept: TextMap, there: &TextMap) -> TextMap {
    kept.retain(|name, _| !there.contains_key(name));
    kept
}

/// Restores the backup on the new Node or deletes it, independently of what else is done.
pub(super) fn restore_backup(
    ctx: &RemediationContext<'_>,
    decision: RemediationDecision,
) -> RemediationDecision {
    let Some(kept) = &ctx.case.host_backup else {
        return decision;
    };
    if decision.actions.iter().any(RemediationAction::keeps_backup) {
        return decision;
    }
    match &kept.disposition {
        BackupDisposition::NotDeleted => drop_unneeded_backup(ctx, decision, kept),
        BackupDisposition::Stale(why) => drop_stale_backup(decision, kept, why),
        BackupDisposition::Due { node, is_proved } if is_node_of_remediation(ctx, node, kept) => {
            restore_on_node(ctx, decision, kept, (node, *is_proved))
        }
        BackupDisposition::WaitsForNode
        | BackupDisposition::NotSameMachine(_)
        | BackupDisposition::Due { .. } => decision,
    }
}

/// Whether the new Node exists and still lacks its backup.
pub(super) fn is_restore_due(ctx: &RemediationContext<'_>) -> bool {
    ctx.case.host_backup.as_ref().is_some_and(|kept| {
        let fate = &kept.disposition;
        matches!(fate, BackupDisposition::Due { node, .. } if is_node_of_remediation(ctx, node, kept))
    })
}

/// Whether the Node is the one that this remediation reads afresh.
fn is_node_of_remediation(
    ctx: &RemediationContext<'_>,
    node: &ObservedNode,
    kept: &HostBackup,
) -> bool {
    let cluster = &ctx.case.cluster;
    let is_there =
        cluster.problem.is_none() && cluster.name.record_name() == kept.node_backup().cluster;
    is_there && ctx.case.node_name.as_ref() == Some(&node.name)
}

/// Restores what is due on this Node in the decision that stores a new backup of it. Under this
/// Node's UID the backup counts as one of a Node that was not deleted: if the remediation is
/// withdrawn, or has to wait, the backup is dropped, and nothing else would restore it.
pub(super) fn restore_with_new_backup(
    ctx: &RemediationContext<'_>,
    decision: RemediationDecision,
    fresh: &FreshReads,
) -> RemediationDecision {
    let (Some(kept), Some(there)) = (&ctx.case.host_backup, &fresh.backup) else {
        return decision;
    };
    let BackupDisposition::Due { node, is_proved } = &kept.disposition else {
        return decision;
    };
    if node.uid != there.uid || !is_node_of_remediation(ctx, node, kept) {
        return decision;
    }
    let (missing, _) = split_missing(kept, there, *is_proved);
    if missing.is_empty() {
        return decision;
    }
    decision.with_action(RemediationAction::Restore {
        node: Arc::clone(node),
        backup: missing,
    })
}

/// What the Node lacks of its backup, and the labels that are withheld.
fn split_missing(
    kept: &HostBackup,
    there: &NodeBackup,
    is_proved: bool,
) -> (NodeBackup, Vec<String>) {
    let missing = kept.node_backup().missing_on(there);
    if is_proved {
        (missing, Vec::new())
    } else {
        missing.without_protected()
    }
}

/// Deletes a backup that is not needed, unless a remediation of this host is about to delete the
/// Node, or a deletion without an answer may still do so.
fn drop_unneeded_backup(
    ctx: &RemediationContext<'_>,
    decision: RemediationDecision,
    kept: &HostBackup,
) -> RemediationDecision {
    let Ok(host) = &ctx.case.host else {
        return decision;
    };
    let mut others = ctx.concurrent.other_fenced_hosts(ctx.case);
    let is_needed = !ctx.case.is_host_without_key()
        || decision.cause.reason == RemediationReason::Preparing
        || others.any(|other| other.host == host.name);
    if is_needed {
        return decision;
    }
    let since = ctx.memory.host_without_key_since.unwrap_or(ctx.now.mono);
    // A release needs a key on the host, so the last one was sent before that.
    let until = since + RemediationConfig::UNANSWERED_WRITE_LIFETIME;
    if ctx.now.mono < until {
        return decision.wake_at(until, "a late deletion of the Node");
    }
    decision.with_action(drop_backup_action(kept))
}

fn drop_backup_action(kept: &HostBackup) -> RemediationAction {
    let stored = Arc::clone(&kept.stored);
    RemediationAction::DropBackup { stored }
}

fn drop_stale_backup(
    decision: RemediationDecision,
    kept: &HostBackup,
    why: &str,
) -> RemediationDecision {
    let mut decision = decision;
    let text = format!(
        "the saved data of node {} is deleted: {why}",
        kept.node_backup().node
    );
    decision.report.events.push(restore_event(text));
    decision.with_action(drop_backup_action(kept))
}

fn restore_event(message: String) -> DecisionEvent {
    DecisionEvent {
        severity: EventSeverity::Normal,
        reason: RemediationReason::Restoring.as_str(),
        message,
    }
}

fn restore_on_node(
    ctx: &RemediationContext<'_>,
    decision: RemediationDecision,
    kept: &HostBackup,
    (node, is_proved): (&Arc<ObservedNode>, bool),
) -> RemediationDecision {
    let fresh = ctx.recent_reads();
    let there = fresh.and_then(|fresh| {
        let is_same = fresh.node.as_ref().is_some_and(|it| it.uid == node.uid);
        fresh.backup.as_ref().filter(|_| is_same)
    });
    let Some(there) = there else {
        return match fresh {
            // The watch is behind the fresh reads.
            Some(fresh) => decision.wake_at(
                RemediationContext::reads_valid_until(fresh),
                "what was read to be seen",
            ),
            None => decision.with_observe(ctx.observe_fresh()),
        };
    };
    let (missing, withheld) = split_missing(kept, there, is_proved);
    let mut decision = decision;
    if !missing.is_empty() || !withheld.is_empty() {
        let text = describe_restore(kept.node_backup(), &withheld);
        decision.report.events.push(restore_event(text));
    }
    if !missing.is_empty() {
        decision = decision.with_action(RemediationAction::Restore {
            node: Arc::clone(node),
            backup: missing,
        });
    }
    decision.with_action(drop_backup_action(kept))
}

fn describe_restore(backup: &NodeBackup, withheld: &[String]) -> String {
    let mut text = format!(
        "labels, annotations and taints that node {} had before its deletion are restored on the new Node",
        backup.node
    );
    if backup.left_out > 0 {
        let more = format!(
            ", except {} annotations that were too long to be saved",
            backup.left_out
        );
        text.push_str(&more);
    }
    if !withheld.is_empty() {
        let more = format!(
            "; except the labels {}: no system UUIDs show that it is the same machine; set the labels by hand if it is",
            withheld.join(", ")
        );
        text.push_str(&more);
    }
    text
}

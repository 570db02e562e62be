//! What others had put on a deleted Node comes back on the new one. Source: specification §4.1.

use std::sync::Arc;

use super::action::Action;
use super::case::Decision;
use super::context::Context;
use super::kept::{Fate, Kept};
use super::key::Key;
use super::reason;
use super::record::{Backup, Taint};
use crate::decision::{Event, Severity};
use crate::reboot::NodeSeen;

/// How large a backup may be, in bytes. A Node's annotations may have 256 KiB together, and twice that as JSON
/// in JSON; a `ConfigMap` may have 1 MiB.
const LIMIT: usize = 512 * 1024;

/// Annotations, labels and taints of ours: they belong to the Node that they were put on.
const OURS: &str = "dogwatch.dev/";
/// Labels by which a Node gets roles, or workloads that trust it. A kubelet may not set them on its own Node.
const PROTECTED: [&str; 2] = [
    "node-role.kubernetes.io/",
    "node-restriction.kubernetes.io/",
];
/// The need: it is served.
const NEED: &str = "host.metal3.io/external-remediation";
/// Taints that Kubernetes sets and lifts by itself, after the Node's state.
const BY_STATE: [&str; 2] = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];

impl Backup {
    /// What is kept of a Node, with its annotations and taints. A cordon of a planned reboot of ours, or of
    /// the lock API, is none: whoever is to lift it goes with the old Node. But one that a person asked to
    /// keep after the boot is theirs.
    pub fn of(node: &NodeSeen, annotations: Texts, taints: Vec<Taint>) -> Self {
        let record = node.record.get();
        let by_record = record.is_some_and(|record| record.cordoned_by_us);
        let is_ours = node.api_lock || by_record && !node.keep_cordoned;
        let whole = Self {
            node: node.name.to_string(),
            uid: node.uid.clone(),
            system_uuid: node.system_uuid.clone(),
            provider_id: node.provider_id.clone(),
            labels: node.labels.clone(),
            annotations,
            taints,
            cordoned: node.unschedulable && !is_ours,
            left_out: 0,
        };
        whole.kept()
    }

    /// What is kept of a Node with all this on it: what Dogwatch wrote, the need, and taints by state never
    /// are. Where it would get too large, annotations are left out, the longest first.
    #[must_use]
    pub fn kept(mut self) -> Self {
        self.labels.retain(|name, _| is_others(name));
        self.annotations.retain(|name, _| is_others(name));
        self.taints.retain(|taint| is_kept(&taint.key));
        self.taints.sort();
        while self.size() > LIMIT {
            let longest = self.annotations.iter().max_by_key(|(_, text)| text.len());
            let Some(name) = longest.map(|(name, _)| name.clone()) else {
                break;
            };
            self.annotations.remove(&name);
            self.left_out += 1;
        }
        self
    }

    /// What of this is not on a Node that has `there`. What is there already wins.
    #[must_use]
    pub fn missing(&self, there: &Backup) -> Self {
        let kept = self.clone().kept();
        let has = |taint: &Taint| {
            let mut taints = there.taints.iter();
            taints.any(|other| other.key == taint.key && other.effect == taint.effect)
        };
        Self {
            labels: not_in(kept.labels, &there.labels),
            annotations: not_in(kept.annotations, &there.annotations),
            taints: kept.taints.into_iter().filter(|it| !has(it)).collect(),
            cordoned: kept.cordoned && !there.cordoned,
            ..kept
        }
    }

    /// Without the labels that only the same machine gets back; and which those are.
    #[must_use]
    pub fn unprotected(mut self) -> (Self, Vec<String>) {
        let names = self.labels.keys().filter(|name| is_protected(name));
        let protected: Vec<String> = names.cloned().collect();
        self.labels.retain(|name, _| !is_protected(name));
        (self, protected)
    }

    /// With what was kept of the machine's Node before, and did not come back yet. What is on the Node wins.
    #[must_use]
    pub fn with(self, before: &Backup) -> Self {
        let more = before.missing(&self);
        let mut all = self;
        all.labels.extend(more.labels);
        all.annotations.extend(more.annotations);
        all.taints.extend(more.taints);
        all.cordoned |= more.cordoned;
        all.kept()
    }

    /// Nothing has to come back.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
            && self.annotations.is_empty()
            && self.taints.is_empty()
            && !self.cordoned
    }

    fn size(&self) -> usize {
        let text = serde_json::to_string(self).expect("text and flags only");
        text.len()
    }
}

fn is_others(name: &str) -> bool {
    name != NEED && !name.starts_with(OURS)
}

/// Also below a subdomain: `x.node-restriction.kubernetes.io/…` is as protected. Source: Kubernetes,
/// `NodeRestriction`.
fn is_protected(label: &str) -> bool {
    let mut prefixes = PROTECTED.iter();
    prefixes.any(|prefix| {
        let below = label.split_once(prefix).map(|(sub, _)| sub);
        below.is_some_and(|sub| sub.is_empty() || sub.ends_with('.'))
    })
}

fn is_kept(taint: &str) -> bool {
    is_others(taint) && !BY_STATE.iter().any(|prefix| taint.starts_with(prefix))
}

type Texts = std::collections::BTreeMap<String, String>;

fn not_in(mut kept: Texts, there: &Texts) -> Texts {
    kept.retain(|name, _| !there.contains_key(name));
    kept
}

/// What is kept goes back on the new Node, or away, whatever else is done for the case.
pub(super) fn steps(ctx: &Context<'_>, decision: Decision) -> Decision {
    let Some(kept) = &ctx.case.kept else {
        return decision;
    };
    if decision.actions.iter().any(Action::keeps_backup) {
        return decision;
    }
    match &kept.fate {
        Fate::NotDeleted => not_deleted(ctx, decision, kept),
        Fate::Stale(why) => dropped(decision, kept, why),
        Fate::Due { node, is_proved } if is_its(ctx, node) => {
            back(ctx, decision, kept, (node, *is_proved))
        }
        Fate::Waits | Fate::NotIts(_) | Fate::Due { .. } => decision,
    }
}

/// The new Node is there, and not what is kept for it.
pub(super) fn is_due(ctx: &Context<'_>) -> bool {
    let fate = ctx.case.kept.as_ref().map(|kept| &kept.fate);
    matches!(fate, Some(Fate::Due { node, .. }) if is_its(ctx, node))
}

/// The Node is the one that the case reads afresh.
fn is_its(ctx: &Context<'_>, node: &NodeSeen) -> bool {
    ctx.case.node_name.as_ref() == Some(&node.name)
}

/// Nothing has to come back, unless a remediation of this host is about to delete the Node.
fn not_deleted(ctx: &Context<'_>, decision: Decision, kept: &Kept) -> Decision {
    let Ok(host) = &ctx.case.host else {
        return decision;
    };
    let mut others = ctx.around.others(ctx.case);
    let is_needed = Key::of(host).next().is_some()
        || decision.because.reason == reason::PREPARING
        || others.any(|other| other.host == host.name);
    if is_needed {
        return decision;
    }
    decision.act(drop_it(kept))
}

fn drop_it(kept: &Kept) -> Action {
    let stored = Arc::clone(&kept.stored);
    Action::DropBackup { stored }
}

fn dropped(decision: Decision, kept: &Kept, why: &str) -> Decision {
    let mut decision = decision;
    let text = format!(
        "what was kept of node {} is dropped: {why}",
        kept.backup().node
    );
    decision.report.events.push(event(text));
    decision.act(drop_it(kept))
}

fn event(message: String) -> Event {
    Event {
        severity: Severity::Normal,
        reason: reason::RESTORING,
        message,
    }
}

fn back(
    ctx: &Context<'_>,
    decision: Decision,
    kept: &Kept,
    (node, is_proved): (&Arc<NodeSeen>, bool),
) -> Decision {
    let fresh = ctx.fresh();
    let there = fresh.and_then(|fresh| {
        let is_same = fresh.node.as_ref().is_some_and(|it| it.uid == node.uid);
        fresh.backup.as_ref().filter(|_| is_same)
    });
    let Some(there) = there else {
        return match fresh {
            // The watch is behind.
            Some(fresh) => decision.wake(Context::until(fresh), "what was read to be seen"),
            None => decision.look(ctx.look_fresh()),
        };
    };
    let missing = kept.backup().missing(there);
    let (missing, withheld) = if is_proved {
        (missing, Vec::new())
    } else {
        missing.unprotected()
    };
    let mut decision = decision;
    if !missing.is_empty() || !withheld.is_empty() {
        let text = said(kept.backup(), &withheld);
        decision.report.events.push(event(text));
    }
    if !missing.is_empty() {
        decision = decision.act(Action::Restore {
            node: Arc::clone(node),
            backup: missing,
        });
    }
    decision.act(drop_it(kept))
}

fn said(backup: &Backup, withheld: &[String]) -> String {
    let mut text = format!(
        "what was on node {} before it was deleted comes back on the new one",
        backup.node
    );
    if backup.left_out > 0 {
        let more = format!(
            ", but for {} annotations that were too long to be kept",
            backup.left_out
        );
        text.push_str(&more);
    }
    if !withheld.is_empty() {
        let more = format!(
            "; but for the labels {}: no system UUIDs show that it is the same machine; set them by hand if it is",
            withheld.join(", ")
        );
        text.push_str(&more);
    }
    text
}

//! What others had put on a deleted Node comes back on the new one. Source: specification §4.1.

use std::sync::Arc;

use super::action::Action;
use super::case::Decision;
use super::context::Context;
use super::key::Key;
use super::link::BACKUP;
use super::reason;
use super::record::{Backup, Taint};
use crate::decision::Severity;
use crate::reboot::NodeSeen;

/// How large a backup may be, in bytes. An object's annotations may have 256 KiB together, and metal3's own
/// can be large.
const LIMIT: usize = 96 * 1024;

/// Annotations, labels and taints of ours: they belong to the Node that they were put on.
const OURS: &str = "dogwatch.dev/";
/// The need: it is served.
const NEED: &str = "host.metal3.io/external-remediation";
/// Taints that Kubernetes sets and lifts by itself, after the Node's state.
const BY_STATE: [&str; 2] = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];

impl Backup {
    /// What is kept of a Node, with its annotations and taints. A cordon of a planned reboot of ours, or of
    /// the lock API, is none: whoever is to lift it goes with the old Node.
    pub fn of(node: &NodeSeen, annotations: Texts, taints: Vec<Taint>) -> Self {
        let record = node.record.get();
        let is_ours = node.api_lock || record.is_some_and(|record| record.cordoned_by_us);
        let whole = Self {
            node: node.name.to_string(),
            uid: node.uid.clone(),
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

fn is_kept(taint: &str) -> bool {
    is_others(taint) && !BY_STATE.iter().any(|prefix| taint.starts_with(prefix))
}

type Texts = std::collections::BTreeMap<String, String>;

fn not_in(mut kept: Texts, there: &Texts) -> Texts {
    kept.retain(|name, _| !there.contains_key(name));
    kept
}

/// What the host keeps goes back on the new Node, whatever else is done for the case.
pub(super) fn steps(ctx: &Context<'_>, decision: Decision) -> Decision {
    match node(ctx) {
        // It will come back.
        None => decision,
        Some((node, backup)) if node.uid == backup.uid => not_deleted(ctx, decision),
        Some((node, backup)) => back(ctx, decision, node, backup),
    }
}

/// The new Node is there, and not what the host keeps for it.
pub(super) fn is_due(ctx: &Context<'_>) -> bool {
    node(ctx).is_some_and(|(node, backup)| node.uid != backup.uid)
}

/// The Node that what is kept belongs to, where it is this case's.
fn node<'a>(ctx: &Context<'a>) -> Option<(&'a Arc<NodeSeen>, &'a Backup)> {
    let kept = ctx.case.kept.as_ref()?;
    let name = ctx.case.node_name.as_ref()?;
    let node = kept.node.as_ref().filter(|node| node.name == *name)?;
    Some((node, &kept.backup))
}

/// The Node was not deleted in the end: nothing has to come back. Unless another remediation of this host is
/// about to delete it.
fn not_deleted(ctx: &Context<'_>, decision: Decision) -> Decision {
    match &ctx.case.host {
        Ok(host) if Key::of(host).next().is_none() => decision.act(Action::DropBackup {
            host: Arc::clone(host),
        }),
        Ok(_) | Err(_) => decision,
    }
}

fn back(ctx: &Context<'_>, decision: Decision, node: &Arc<NodeSeen>, backup: &Backup) -> Decision {
    let fresh = ctx.fresh();
    let read = fresh.and_then(|fresh| {
        let is_same = fresh.node.as_ref().is_some_and(|it| it.uid == node.uid);
        let there = fresh.backup.as_ref().filter(|_| is_same)?;
        let host = fresh.host.as_ref()?;
        let text = host.annotations.get(BACKUP)?;
        let stands: Backup = serde_json::from_str(text).ok()?;
        (stands == *backup).then_some((host, there))
    });
    let Some((host, there)) = read else {
        return match fresh {
            // The watch is behind.
            Some(fresh) => decision.wake(Context::until(fresh), "what was read to be seen"),
            None => decision.look(ctx.look_fresh()),
        };
    };
    let missing = backup.missing(there);
    let mut decision = decision;
    if !missing.is_empty() {
        decision = decision.act(Action::Restore {
            node: Arc::clone(node),
            backup: missing,
        });
        decision.report.events.push(crate::decision::Event {
            severity: Severity::Normal,
            reason: reason::RESTORING,
            message: said(backup),
        });
    }
    decision.act(Action::DropBackup {
        host: Arc::clone(host),
    })
}

fn said(backup: &Backup) -> String {
    let text = format!(
        "what was on node {} before it was deleted comes back on the new one",
        backup.node
    );
    match backup.left_out {
        0 => text,
        more => format!("{text}, but for {more} annotations that were too long to be kept"),
    }
}

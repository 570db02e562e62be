//! The API server, as `facts/control-plane.md` of the specification measured it: a write with a
//! resourceVersion lands only on that version; server-side apply conflicts with another manager's
//! fields; an apply that changes nothing makes no new version.

use std::sync::Arc;

use dogwatch_core::lock::{HolderId, LockRecord, ObservedLease};
use dogwatch_core::reboot::{NodePatch, ObservedNode, ParsedAnnotation, RecordChange};

/// One write on its way.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerWrite {
    Node {
        node: usize,
        patch: Box<NodePatch>,
        uid: String,
        /// Whether a count came before it; a cordon relies on one.
        counted: bool,
    },
    /// Server-side apply by the holder; also the removal of one run.
    Bid {
        slot: usize,
        version: String,
        holder: HolderId,
        record: Box<LockRecord>,
    },
    /// A merge patch that clears holder and record.
    Free {
        slot: usize,
        version: String,
        over_budget: bool,
    },
}

#[derive(Debug, Clone)]
pub enum ServerAnswer {
    Node(Arc<ObservedNode>),
    Lease(Arc<ObservedLease>),
    Conflict,
    NotFound,
}

/// Which preconditions this server forgets: only a mutation has any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SkippedPreconditions {
    pub bid_version: bool,
    pub release_version: bool,
    pub node_version: bool,
}

fn next_version(version: &str) -> String {
    let number: u64 = version.parse().expect("the model's versions are numbers");
    (number + 1).to_string()
}

pub fn patch_node(
    node: &mut Arc<ObservedNode>,
    patch: &NodePatch,
    skipped: SkippedPreconditions,
) -> ServerAnswer {
    if node.resource_version != patch.resource_version && !skipped.node_version {
        return ServerAnswer::Conflict;
    }
    change_node(node, |node| merge_patch(node, patch));
    ServerAnswer::Node(node.clone())
}

/// Whoever writes without a precondition: a kubelet, or a person.
pub fn change_node(node: &mut Arc<ObservedNode>, change: impl FnOnce(&mut ObservedNode)) {
    let node = Arc::make_mut(node);
    change(node);
    node.resource_version = next_version(&node.resource_version);
}

fn merge_patch(node: &mut ObservedNode, patch: &NodePatch) {
    node.unschedulable = patch.unschedulable.unwrap_or(node.unschedulable);
    node.record = match &patch.record {
        RecordChange::Set(record) => ParsedAnnotation::Is(record.clone()),
        RecordChange::Remove => ParsedAnnotation::Absent,
    };
    node.waiting_label = patch.waiting_label.unwrap_or(node.waiting_label);
    if let Some(last) = &patch.last {
        node.last_reboot = ParsedAnnotation::Is(last.clone());
    }
    if patch.remove_request {
        node.request = ParsedAnnotation::Absent;
        node.request_fingerprint = None;
    }
}

pub fn apply_bid(
    lease: &mut Arc<ObservedLease>,
    version: &str,
    holder: &HolderId,
    record: &LockRecord,
    skipped: SkippedPreconditions,
) -> ServerAnswer {
    let of_other = lease.holder.as_ref().is_some_and(|held| held != holder);
    let outdated = lease.resource_version != version && !skipped.bid_version;
    if of_other || outdated {
        return ServerAnswer::Conflict;
    }
    let same = lease.holder.as_ref() == Some(holder) && lease.record.as_ref() == Some(record);
    if !same {
        let lease = Arc::make_mut(lease);
        lease.holder = Some(holder.clone());
        lease.record = Some(record.clone());
        lease.resource_version = next_version(&lease.resource_version);
    }
    ServerAnswer::Lease(lease.clone())
}

pub fn free_lease(
    lease: &mut Arc<ObservedLease>,
    version: &str,
    over_budget: bool,
    skipped: SkippedPreconditions,
) -> ServerAnswer {
    if lease.resource_version != version && !skipped.release_version {
        return ServerAnswer::Conflict;
    }
    let lease_now = Arc::make_mut(lease);
    (lease_now.holder, lease_now.record) = (None, None);
    // How often it was given back only makes the pauses longer.
    lease_now.yield_count = u32::from(over_budget);
    lease_now.resource_version = next_version(&lease_now.resource_version);
    ServerAnswer::Lease(lease.clone())
}

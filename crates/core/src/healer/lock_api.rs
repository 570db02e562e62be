//! Locks of hosts that run no coordinator, and the replicas that serve them. Source: specification
//! §2.2 ("Ids of a process that is gone…") and §2.7.
//!
//! If a process is gone, its unanswered requests are removed as the process would have done it
//! ([`lock::api_lock::decide_leave`]): the Node is read first and then the Leases, the cordon is
//! removed (or one on its way made to fail) before the lock is released, and the last request that
//! leaves frees the lock.

use crate::reboot::RebootReason;
use std::time::Duration;

use super::healing_case::{
    HealerAction, HealerDecision, HealerObserve, HealingCase, HealingSubject,
};
use super::memory::{LeaseMemory, NodeMemory, unanswered_process};
use super::snapshot::{ApiLockRead, ObservedPresence};
use super::{HealerContext, lease};
use crate::decision::{EventSeverity, decision_with_cause};
use crate::lock::api_lock::{CordonInFlight, LeaveSnapshot, LeaveStep, LeavingParty, decide_leave};
use crate::lock::{HolderId, ObservedLease};
use crate::name::{NodeName, RunId};
use crate::reboot::{ObservedNode, ParsedAnnotation};

/// The oldest reads with which a request may be removed.
const MAX_READ_AGE: Duration = Duration::from_secs(10);
/// How long to wait for a watch that is behind a read.
const WATCH_CATCH_UP_DELAY: Duration = Duration::from_secs(5);

/// A Lease whose holder is not a Node.
pub(super) fn decide_api_held_lease(
    ctx: &HealerContext<'_>,
    lease: &ObservedLease,
    memory: &LeaseMemory,
) -> Option<HealerDecision> {
    let runs = lease.record.iter().flat_map(|record| &record.runs);
    let mut next = None;
    for run in runs {
        match check_process_gone(ctx, run) {
            ProcessGone::Yes => return Some(decide_request_departure(ctx, lease, memory, run)),
            ProcessGone::Perhaps(at) => next = [next, Some(at)].into_iter().flatten().min(),
            ProcessGone::No => {}
        }
    }
    let stale = lease::report_stale_lock(ctx, lease, memory)?;
    Some(match next {
        Some(at) => stale.wake_at(at, "a sign of a lock API process"),
        None => stale,
    })
}

/// Whether the process of an unanswered request is gone.
enum ProcessGone {
    Yes,
    /// The process gives no sign; at this monotonic time it counts as gone.
    Perhaps(Duration),
    No,
}

fn check_process_gone(ctx: &HealerContext<'_>, run: &RunId) -> ProcessGone {
    let Some(process) = unanswered_process(run) else {
        return ProcessGone::No;
    };
    let Some(silent) = ctx.seen.memory.process_silent_since(process) else {
        return ProcessGone::No;
    };
    match ctx.deadline_after(silent, ctx.config.presence_after) {
        Some(at) => ProcessGone::Perhaps(at),
        None => ProcessGone::Yes,
    }
}

fn decide_request_departure(
    ctx: &HealerContext<'_>,
    lease: &ObservedLease,
    memory: &LeaseMemory,
    run: &RunId,
) -> HealerDecision {
    let text = format!(
        "lock request {run} on Lease {} was never answered, and its process is gone",
        lease.name
    );
    let decision = decision_with_cause(RebootReason::LockRequestGone, text);
    let Some(holder) = &lease.holder else {
        return decision;
    };
    let node = lease.record.as_ref().and_then(|record| record.node.clone());
    let newer_than = ctx.now.mono.saturating_sub(MAX_READ_AGE);
    let read = ctx.seen.observations.api.get(holder);
    let Some(read) = read.filter(|read| read.taken >= newer_than) else {
        return decision.with_observe(HealerObserve::Api {
            holder: holder.clone(),
            node,
            newer_than,
        });
    };
    if !read.leases.contains(lease) {
        return decision.wake_at(ctx.now.mono + WATCH_CATCH_UP_DELAY, "the watch to catch up");
    }
    // A cordon that the process has sent may still arrive until we have written the Node.
    let suspect = if memory.holder_node_written {
        CordonInFlight::No
    } else {
        CordonInFlight::Any
    };
    decide_leave_step(ctx, decision, holder, run, read, &suspect)
}

fn decide_leave_step(
    ctx: &HealerContext<'_>,
    decision: HealerDecision,
    holder: &HolderId,
    run: &RunId,
    read: &ApiLockRead,
    suspect: &CordonInFlight,
) -> HealerDecision {
    let seen = LeaveSnapshot {
        holder,
        run,
        who: LeavingParty::Request,
        node: read.node.as_ref(),
        leases: &read.leases,
        bid: None,
        suspect,
    };
    let decision = match decide_leave(&seen, ctx.now.wall) {
        LeaveStep::Done | LeaveStep::Settle { .. } | LeaveStep::Claim { .. } => return decision,
        LeaveStep::Unreadable { lease } => {
            let text = format!("the record on Lease {} cannot be read", lease.name);
            return decision_with_cause(RebootReason::LockHeldForLong, text)
                .with_event(EventSeverity::Warning);
        }
        LeaveStep::Node { write } => match &read.node {
            Some(node) => decision.with_action(HealerAction::PatchApiNode {
                holder: holder.clone(),
                node: Box::new(node.clone()),
                write: Box::new(write),
            }),
            None => return decision,
        },
        LeaveStep::Remove { lease, record } => decision.with_action(HealerAction::Release {
            lease,
            remaining: record.runs,
        }),
        LeaveStep::Free { lease } => decision.with_action(HealerAction::Release {
            lease,
            remaining: Vec::new(),
        }),
    };
    decision.with_event(EventSeverity::Warning)
}

/// A Node that the lock API has taken out of service although no lock is held for it: somebody
/// broke the lock, and the process that would notice is gone. The Node's annotation does not say
/// whether a request was answered, so only a person knows whether somebody works on the machine.
pub(super) fn decide_orphaned_api_lock(
    ctx: &HealerContext<'_>,
    node: &ObservedNode,
    memory: &NodeMemory,
) -> Option<HealerDecision> {
    let since = memory.api_lock_since?;
    let mut leases = ctx.seen.leases.values();
    if leases.any(|lease| lease.is_held_for_api_node(&node.name)) {
        return None;
    }
    let text = format!(
        "Node {} is locked by the API, and no Lease is held for it; if nobody works on the machine, \
         uncordon the node and remove annotation dogwatch.dev/api-lock",
        node.name
    );
    let decision = decision_with_cause(RebootReason::ApiLockWithoutLease, text);
    if let Some(at) = ctx.deadline_after(since, ctx.config.heal_after) {
        return Some(decision.wake_at(at, "the lock API to undo it"));
    }
    let holder = HolderId::for_api_host(node.name.as_str());
    let newer_than = ctx.now.mono.saturating_sub(MAX_READ_AGE);
    let read = ctx.seen.observations.api.get(&holder);
    let Some(read) = read.filter(|read| read.taken >= newer_than) else {
        return Some(decision.with_observe(HealerObserve::Api {
            node: Some(node.name.clone()),
            holder,
            newer_than,
        }));
    };
    let lock = read.node.as_ref().map(|node| &node.lock);
    Some(match lock {
        None | Some(ParsedAnnotation::Absent) => {
            decision.wake_at(ctx.now.mono + WATCH_CATCH_UP_DELAY, "the watch to catch up")
        }
        Some(ParsedAnnotation::Bad { why }) => report_unreadable_api_lock(node, why),
        Some(ParsedAnnotation::Is(_)) => decision.with_event(EventSeverity::Warning),
    })
}

fn report_unreadable_api_lock(node: &ObservedNode, why: &str) -> HealerDecision {
    let text = format!(
        "annotation dogwatch.dev/api-lock of Node {} cannot be read ({why}); uncordon the node \
         and remove the annotation",
        node.name
    );
    decision_with_cause(RebootReason::ApiLockUnreadable, text).with_event(EventSeverity::Warning)
}

impl ObservedLease {
    /// Whether a holder that is not a Node holds it for this Node.
    pub(super) fn is_held_for_api_node(&self, node: &NodeName) -> bool {
        let holder = self.holder.as_ref();
        let is_foreign = holder.is_some_and(|holder| !holder.is_node());
        let record = self.record.as_ref();
        is_foreign && record.is_none_or(|record| record.node.as_ref() == Some(node))
    }
}

/// A replica that no longer renews its presence Lease is gone. The Lease is deleted after the
/// replica's requests, so that a person sees whose they were.
pub(super) fn decide_stale_presence(
    ctx: &HealerContext<'_>,
    presence: &ObservedPresence,
) -> Option<HealingCase> {
    let silent = ctx.seen.memory.process_silent_since(&presence.process)?;
    let text = format!("process {} of the lock API", presence.process);
    let decision = if let Some(at) = ctx.deadline_after(silent, ctx.config.heal_after) {
        decision_with_cause(RebootReason::WatchingCoordinator, text)
            .wake_at(at, "a sign of a lock API process")
    } else {
        let text = format!("{text} has not renewed its presence and counts as gone");
        decision_with_cause(RebootReason::LockApiProcessGone, text)
            .with_action(HealerAction::DeletePresence {
                name: presence.name.clone(),
                uid: presence.uid.clone(),
                resource_version: presence.resource_version.clone(),
            })
            .with_event(EventSeverity::Normal)
    };
    Some(HealingCase {
        subject: HealingSubject::Presence(presence.name.clone()),
        decision,
    })
}

//! Locks of hosts that run no coordinator, and the replicas that serve them.
//! Source: specification §2.2 ("Ids of a process that is gone…") and §2.7.
//!
//! A request whose process is gone and that nobody was answered leaves as it would have left itself
//! ([`lock::api_lock::leave`]): the Node is read first and then the Leases, a cordon is undone (or
//! one on its way made to fail) before the lock goes, and the last one out frees.

use std::time::Duration;

use super::case::{Action, Case, Decision, Look, Subject};
use super::memory::{LeaseMemory, NodeMemory, unanswered_process};
use super::seen::{ApiRead, PresenceSeen};
use super::{Context, lease, reason};
use crate::decision::{Severity, because};
use crate::lock::api_lock::{ApiLock, LeaveSeen, LeaveStep, Suspect, Who, is_answered, leave};
use crate::lock::{HolderId, LeaseSeen};
use crate::name::{NodeName, RunId};
use crate::reboot::{NodeSeen, Parsed};

/// How old the reads may be that a departure is decided on.
const FRESH: Duration = Duration::from_secs(10);
/// How long to wait for a watch that is behind a read.
const CATCH_UP: Duration = Duration::from_secs(5);

/// A Lease whose holder is no Node.
pub(super) fn held(ctx: &Context<'_>, lease: &LeaseSeen, memory: &LeaseMemory) -> Option<Decision> {
    let runs = lease.record.iter().flat_map(|record| &record.runs);
    let mut next = None;
    for run in runs {
        match gone(ctx, run) {
            Gone::Yes => return Some(leaves(ctx, lease, memory, run)),
            Gone::Perhaps(at) => next = [next, Some(at)].into_iter().flatten().min(),
            Gone::No => {}
        }
    }
    let stale = lease::stale(ctx, lease, memory)?;
    Some(match next {
        Some(at) => stale.wake(at, "a sign of a lock API process"),
        None => stale,
    })
}

/// Whether a request's process is gone, and nobody was answered.
enum Gone {
    Yes,
    /// It was silent for a while; then it will be.
    Perhaps(Duration),
    No,
}

fn gone(ctx: &Context<'_>, run: &RunId) -> Gone {
    let Some(process) = unanswered_process(run) else {
        return Gone::No;
    };
    let Some(silent) = ctx.seen.memory.process_silent_since(process) else {
        return Gone::No;
    };
    match ctx.due(silent, ctx.config.presence_after) {
        Some(at) => Gone::Perhaps(at),
        None => Gone::Yes,
    }
}

fn leaves(ctx: &Context<'_>, lease: &LeaseSeen, memory: &LeaseMemory, run: &RunId) -> Decision {
    let text = format!(
        "request {run} on Lease {} was never answered, and its process is gone",
        lease.name
    );
    let decision = because(reason::REQUEST_GONE, text);
    let Some(holder) = &lease.holder else {
        return decision;
    };
    let node = lease.record.as_ref().and_then(|record| record.node.clone());
    let newer_than = ctx.now.mono.saturating_sub(FRESH);
    let read = ctx.seen.looked.api.get(holder);
    let Some(read) = read.filter(|read| read.taken >= newer_than) else {
        return decision.look(Look::Api {
            holder: holder.clone(),
            node,
            newer_than,
        });
    };
    if !read.leases.contains(lease) {
        return decision.wake(ctx.now.mono + CATCH_UP, "the watch to catch up");
    }
    // Where the process has sent a cordon it may still be on its way, until the Node was written.
    let suspect = if memory.fenced {
        Suspect::No
    } else {
        Suspect::Any
    };
    step(ctx, decision, holder, run, read, &suspect)
}

fn step(
    ctx: &Context<'_>,
    decision: Decision,
    holder: &HolderId,
    run: &RunId,
    read: &ApiRead,
    suspect: &Suspect,
) -> Decision {
    let seen = LeaveSeen {
        holder,
        run,
        who: Who::Request,
        node: read.node.as_ref(),
        leases: &read.leases,
        bid: None,
        suspect,
    };
    let decision = match leave(&seen, ctx.now.wall) {
        LeaveStep::Done | LeaveStep::Settle { .. } | LeaveStep::Claim { .. } => return decision,
        LeaveStep::Unreadable { lease } => {
            let text = format!("the record on Lease {} cannot be read", lease.name);
            return because(reason::LOCK_STALE, text).say(Severity::Warning);
        }
        LeaveStep::Node { write } => match &read.node {
            Some(node) => decision.act(Action::PatchApiNode {
                holder: holder.clone(),
                node: Box::new(node.clone()),
                write: Box::new(write),
            }),
            None => return decision,
        },
        LeaveStep::Remove { lease, record } => decision.act(Action::Release {
            lease,
            remaining: record.runs,
        }),
        LeaveStep::Free { lease } => decision.act(Action::Release {
            lease,
            remaining: Vec::new(),
        }),
    };
    decision.say(Severity::Warning)
}

/// A Node that the lock API has taken out of service while no lock is held for it: the lock was
/// taken away by force, and the process that would notice is gone.
pub(super) fn left_behind(
    ctx: &Context<'_>,
    node: &NodeSeen,
    memory: &NodeMemory,
) -> Option<Decision> {
    let since = memory.api_lock_since?;
    if locked_for(ctx, &node.name) {
        return None;
    }
    let text = format!(
        "Node {} is locked by the API, and no Lease is held for it",
        node.name
    );
    let decision = because(reason::API_LOCK_LEFT, text);
    if let Some(at) = ctx.due(since, ctx.config.heal_after) {
        return Some(decision.wake(at, "the lock API to undo it"));
    }
    let holder = HolderId::api(node.name.as_str());
    let newer_than = ctx.now.mono.saturating_sub(FRESH);
    let read = ctx.seen.looked.api.get(&holder);
    let Some(read) = read.filter(|read| read.taken >= newer_than) else {
        return Some(decision.look(Look::Api {
            node: Some(node.name.clone()),
            holder,
            newer_than,
        }));
    };
    let lock = read.node.as_ref().map(|node| &node.lock);
    Some(match lock {
        None | Some(Parsed::Absent) => {
            decision.wake(ctx.now.mono + CATCH_UP, "the watch to catch up")
        }
        Some(Parsed::Bad { why }) => unreadable(node, why),
        Some(Parsed::Is(lock)) => undone(ctx, decision, &holder, lock, read),
    })
}

fn undone(
    ctx: &Context<'_>,
    decision: Decision,
    holder: &HolderId,
    lock: &ApiLock,
    read: &ApiRead,
) -> Decision {
    let process = unanswered_process(&lock.run);
    let lives = process.is_some_and(|process| ctx.seen.presences.contains_key(process));
    if is_answered(&lock.run) || lives {
        // Somebody was told that it holds, or may still be: a person took the lock away, and only a
        // person knows whether the machine is still worked on.
        return decision.say(Severity::Warning);
    }
    step(ctx, decision, holder, &lock.run, read, &Suspect::No)
}

fn unreadable(node: &NodeSeen, why: &str) -> Decision {
    let text = format!(
        "annotation dogwatch.dev/api-lock of Node {} cannot be read ({why}); uncordon the node and remove it",
        node.name
    );
    because(reason::API_LOCK_UNREADABLE, text).say(Severity::Warning)
}

/// Whether a Lease is held for this Node by a holder that is none.
fn locked_for(ctx: &Context<'_>, node: &NodeName) -> bool {
    let mut leases = ctx.seen.leases.values();
    leases.any(|lease| {
        let foreign = lease
            .holder
            .as_ref()
            .is_some_and(|holder| !holder.is_node());
        let record = lease.record.as_ref();
        let same = record.is_none_or(|record| record.node.as_ref() == Some(node));
        foreign && same
    })
}

/// A replica that has not renewed its presence: gone. Its presence goes later than its requests, so
/// that a person sees who left them behind.
pub(super) fn presence(ctx: &Context<'_>, presence: &PresenceSeen) -> Option<Case> {
    let silent = ctx.seen.memory.process_silent_since(&presence.process)?;
    let text = format!("process {} of the lock API", presence.process);
    let decision = if let Some(at) = ctx.due(silent, ctx.config.heal_after) {
        because(reason::WATCHING, text).wake(at, "a sign of a lock API process")
    } else {
        let text = format!("{text} has not renewed its presence and is gone");
        because(reason::PRESENCE_GONE, text)
            .act(Action::DeletePresence {
                name: presence.name.clone(),
                uid: presence.uid.clone(),
                resource_version: presence.resource_version.clone(),
            })
            .say(Severity::Normal)
    };
    Some(Case {
        subject: Subject::Presence(presence.name.clone()),
        decision,
    })
}

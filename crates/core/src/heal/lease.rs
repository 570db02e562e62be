//! A Lease that nobody stands behind. Source: specification §2.2 and §2.5.

use std::time::Duration;

use super::case::{Action, Case, Decision, Look, Subject};
use super::memory::LeaseMemory;
use super::{Context, api, instead, reason};
use crate::decision::{Severity, because};
use crate::lock::{self, LeaseSeen};
use crate::name::NodeName;
use crate::reboot::{self, NodeSeen, Parsed};

/// How often a holder's Node is read again while nothing follows from it.
const READ_AGAIN: Duration = Duration::from_mins(1);

pub(super) fn case(ctx: &Context<'_>, lease: &LeaseSeen) -> Option<Case> {
    let holder = lease.holder.as_ref()?;
    let memory = ctx.seen.memory.leases.get(&lease.name)?;
    let decision = if holder.is_node() {
        of_node(ctx, lease, memory)
    } else {
        api::held(ctx, lease, memory)
    };
    Some(Case {
        subject: Subject::Lease(lease.name.clone()),
        decision: decision?,
    })
}

fn of_node(ctx: &Context<'_>, lease: &LeaseSeen, memory: &LeaseMemory) -> Option<Decision> {
    let Some(name) = lock::holder_node_name(lease) else {
        return stale(ctx, lease, memory);
    };
    let taken_for = lease
        .record
        .as_ref()
        .and_then(|record| record.node_uid.as_ref());
    match ctx.seen.nodes.get(&name) {
        Some(node) if taken_for.is_none_or(|uid| *uid == node.uid) => {
            without_reboot(ctx, lease, memory, node)
        }
        Some(_) | None => Some(gone(ctx, lease, &name)),
    }
}

/// The watch shows no such Node, or another one: two fresh reads are the proof.
fn gone(ctx: &Context<'_>, lease: &LeaseSeen, name: &NodeName) -> Decision {
    let now = ctx.now.mono;
    let reads = ctx.seen.looked.holders.get(&lease.name);
    let reads = reads.filter(|reads| reads.resource_version == lease.resource_version);
    let evidence = reads.and_then(|reads| lock::broken_by(lease, &reads.reads));
    if let Some(evidence) = evidence {
        let text = format!("Lease {} is cleared: {evidence}", lease.name);
        let lease = Box::new(lease.clone());
        let evidence = evidence.to_string();
        return because(reboot::reason::BREAKING_LOCK, text)
            .act(Action::Break { lease, evidence })
            .say(Severity::Warning);
    }
    let text = format!(
        "Lease {} is held for Node {name}; looking whether that is there",
        lease.name
    );
    let decision = because(reason::LOOKING_AT_HOLDER, text);
    let again = reads.map_or(now, |reads| reads.taken + READ_AGAIN);
    if again > now {
        return decision.wake(again, "the next look at the holder's Node");
    }
    decision.look(Look::Holder {
        lease: Box::new(lease.clone()),
        newer_than: now,
    })
}

/// Its Node is there and has no record: a bid that landed after its process had left, or died. Two
/// fresh reads, `healAfter` apart, have to say so, and the Lease must not have changed meanwhile. A
/// coordinator that begins a reboot between the last one and our write has a new run to write onto
/// the Lease first, and one of the two writes fails.
fn without_reboot(
    ctx: &Context<'_>,
    lease: &LeaseSeen,
    memory: &LeaseMemory,
    node: &NodeSeen,
) -> Option<Decision> {
    if node.record != Parsed::Absent {
        return None;
    }
    let text = format!(
        "Lease {} is held for Node {}, which has no reboot under way",
        lease.name, node.name
    );
    let decision = because(reason::LOCK_WITHOUT_REBOOT, text);
    let read = |newer_than| Look::Node {
        name: node.name.clone(),
        newer_than,
    };
    let Some(first) = memory.without_record else {
        return Some(decision.look(read(ctx.now.mono)));
    };
    let second = first.saturating_add(ctx.config.heal_after);
    if let Some(at) = ctx.due(first, ctx.config.heal_after) {
        return Some(decision.wake(at, "the second look at its Node"));
    }
    let seen = ctx.seen.looked.nodes.get(&node.name);
    let again = seen
        .filter(|read| read.taken >= second)
        .and_then(|read| read.node.as_ref());
    let same = again.filter(|again| again.uid == node.uid && again.record == Parsed::Absent);
    Some(match same {
        Some(_) => decision.act(instead::release(lease)).say(Severity::Warning),
        None => decision.look(read(second.max(ctx.now.mono))),
    })
}

/// Nobody can judge this holder. After a day it is said.
pub(super) fn stale(
    ctx: &Context<'_>,
    lease: &LeaseSeen,
    memory: &LeaseMemory,
) -> Option<Decision> {
    let holder = lease.holder.as_ref()?;
    let (allowed, since) = (ctx.config.lock_stale_after, memory.held_since);
    if let Some(at) = ctx.due(since, allowed) {
        let text = format!("{holder} holds Lease {}", lease.name);
        return Some(because(reason::WATCHING, text).wake(at, "the hold to be long"));
    }
    let taken = lease.record.as_ref().map(|record| record.since);
    let taken = taken.map_or_else(String::new, |taken| {
        format!(" since {taken} by its own clock")
    });
    let text = format!(
        "{holder} holds Lease {}{taken}, for more than {}; when it is sure that it does not need it any more, run \
         `dogwatch unlock {} --force --reason WHY`",
        lease.name,
        crate::duration::format(allowed),
        lease.name
    );
    Some(because(reason::LOCK_STALE, text).say(Severity::Warning))
}

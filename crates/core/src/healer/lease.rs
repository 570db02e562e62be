//! A Lease that no process relies on. Source: specification §2.2 and §2.5.

use std::time::Duration;

use super::healing_case::{
    HealerAction, HealerDecision, HealerObserve, HealingCase, HealingSubject,
};
use super::memory::LeaseMemory;
use super::{HealerContext, lock_api, takeover};
use crate::decision::{EventSeverity, decision_with_cause};
use crate::lock::{self, ObservedLease};
use crate::name::NodeName;
use crate::reboot::{ObservedNode, ParsedAnnotation, RebootReason};

/// How often a holder's Node is read again while the reads lead to no action.
const HOLDER_REREAD_INTERVAL: Duration = Duration::from_mins(1);

pub(super) fn decide_lease_case(
    ctx: &HealerContext<'_>,
    lease: &ObservedLease,
) -> Option<HealingCase> {
    let holder = lease.holder.as_ref()?;
    let memory = ctx.seen.memory.leases.get(&lease.name)?;
    let decision = if holder.is_node() {
        decide_node_held_lease(ctx, lease, memory)
    } else {
        lock_api::decide_api_held_lease(ctx, lease, memory)
    };
    Some(HealingCase {
        subject: HealingSubject::Lease(lease.name.clone()),
        decision: decision?,
    })
}

fn decide_node_held_lease(
    ctx: &HealerContext<'_>,
    lease: &ObservedLease,
    memory: &LeaseMemory,
) -> Option<HealerDecision> {
    let Some(name) = lock::holder_node_name(lease) else {
        return report_stale_lock(ctx, lease, memory);
    };
    let taken_for = lease
        .record
        .as_ref()
        .and_then(|record| record.node_uid.as_ref());
    match ctx.seen.nodes.get(&name) {
        Some(node) if taken_for.is_none_or(|uid| *uid == node.uid) => {
            decide_lock_without_reboot(ctx, lease, memory, node)
        }
        Some(_) | None => Some(decide_missing_holder(ctx, lease, &name)),
    }
}

/// The watch shows no such Node, or one with another UID: two fresh reads are the proof.
fn decide_missing_holder(
    ctx: &HealerContext<'_>,
    lease: &ObservedLease,
    name: &NodeName,
) -> HealerDecision {
    let now = ctx.now.mono;
    let reads = ctx.seen.observations.holders.get(&lease.name);
    let reads = reads.filter(|reads| reads.resource_version == lease.resource_version);
    let evidence = reads.and_then(|reads| lock::find_break_evidence(lease, &reads.reads));
    if let Some(evidence) = evidence {
        let text = format!("Lease {} is freed: {evidence}", lease.name);
        let lease = Box::new(lease.clone());
        let evidence = evidence.to_string();
        return decision_with_cause(RebootReason::BreakingLock, text)
            .with_action(HealerAction::Break { lease, evidence })
            .with_event(EventSeverity::Warning);
    }
    let text = format!(
        "Lease {} is held for Node {name}; checking whether that Node exists",
        lease.name
    );
    let decision = decision_with_cause(RebootReason::LookingAtHolder, text);
    let again = reads.map_or(now, |reads| reads.taken + HOLDER_REREAD_INTERVAL);
    if again > now {
        return decision.wake_at(again, "the next look at the holder's Node");
    }
    decision.with_observe(HealerObserve::Holder {
        lease: Box::new(lease.clone()),
        newer_than: now,
    })
}

/// The holder's Node exists and has no record: the bid landed after its process ended. Two fresh
/// reads, `healAfter` apart, have to show this, and the Lease must not change meanwhile. A
/// coordinator that begins a reboot between the last read and our write has to write its new run
/// onto the Lease first, so one of the two writes fails.
fn decide_lock_without_reboot(
    ctx: &HealerContext<'_>,
    lease: &ObservedLease,
    memory: &LeaseMemory,
    node: &ObservedNode,
) -> Option<HealerDecision> {
    if node.record != ParsedAnnotation::Absent {
        return None;
    }
    let text = format!(
        "Lease {} is held for Node {}, which has no reboot under way",
        lease.name, node.name
    );
    let decision = decision_with_cause(RebootReason::LockWithoutReboot, text);
    let read = |newer_than| HealerObserve::Node {
        name: node.name.clone(),
        newer_than,
    };
    let Some(first) = memory.without_record else {
        return Some(decision.with_observe(read(ctx.now.mono)));
    };
    let second = first.saturating_add(ctx.config.heal_after);
    if let Some(at) = ctx.deadline_after(first, ctx.config.heal_after) {
        return Some(decision.wake_at(at, "the second look at its Node"));
    }
    let seen = ctx.seen.observations.nodes.get(&node.name);
    let again = seen
        .filter(|read| read.taken >= second)
        .and_then(|read| read.node.as_ref());
    let same =
        again.filter(|again| again.uid == node.uid && again.record == ParsedAnnotation::Absent);
    Some(match same {
        Some(_) => decision
            .with_action(takeover::release_coordinator_runs(lease))
            .with_event(EventSeverity::Warning),
        None => decision.with_observe(read(second.max(ctx.now.mono))),
    })
}

/// The healer cannot judge this holder; reports it after `lock_stale_after`.
pub(super) fn report_stale_lock(
    ctx: &HealerContext<'_>,
    lease: &ObservedLease,
    memory: &LeaseMemory,
) -> Option<HealerDecision> {
    let holder = lease.holder.as_ref()?;
    let (allowed, since) = (ctx.config.lock_stale_after, memory.held_since);
    if let Some(at) = ctx.deadline_after(since, allowed) {
        let text = format!("{holder} holds Lease {}", lease.name);
        return Some(
            decision_with_cause(RebootReason::WatchingCoordinator, text)
                .wake_at(at, "the hold to be long"),
        );
    }
    let taken = lease.record.as_ref().map(|record| record.since);
    let taken = taken.map_or_else(String::new, |taken| {
        format!(" since {taken} by its own clock")
    });
    let text = format!(
        "{holder} has held Lease {}{taken} for more than {}; if you are sure that it no longer \
         needs the lock, run `dogwatch unlock {} --force --reason WHY`",
        lease.name,
        crate::duration::format_duration(allowed),
        lease.name
    );
    Some(
        decision_with_cause(RebootReason::LockHeldForLong, text).with_event(EventSeverity::Warning),
    )
}

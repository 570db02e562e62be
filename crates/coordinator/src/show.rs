//! From what was seen and decided to what `/metrics` and `/readyz` show.

use std::collections::BTreeMap;

use dogwatch_core::drain::Blocked;
use dogwatch_core::reboot::{Decision, LastReboot, NodeFact, NodeSeen, Seen, TriggerState, reason};

use dogwatch_k8s::Kind;

use crate::agent::Watcher;
use crate::http::Board;
use crate::metrics::{DrainView, LastView, MetricsView, TriggerShown};

/// Reasons that need a person.
const ALARMS: [&str; 6] = [
    reason::REBOOT_FAILED,
    reason::GATES_TIMED_OUT,
    reason::RECORD_UNREADABLE,
    reason::BOOT_ID_UNREADABLE,
    reason::NODE_GONE,
    reason::COMMAND_FAILED,
];

impl Watcher for Board {
    fn decided(&self, seen: &Seen, decision: &Decision) {
        self.update(|view| show(view, seen, decision));
        self.ready(match &seen.node {
            NodeFact::There(_) => Ok(()),
            NodeFact::NotYet => Err("our Node was not seen yet".into()),
            NodeFact::Gone => Err("our Node does not exist".into()),
        });
    }

    fn api_failed(&self, error: &dogwatch_k8s::Error) {
        self.update(|view| view.count_failure(label(error)));
    }

    fn finished(&self, last: &LastReboot) {
        self.update(|view| view.count_reboot(last.outcome.as_str()));
    }
}

fn show(view: &mut MetricsView, seen: &Seen, decision: &Decision) {
    let node = match &seen.node {
        NodeFact::There(node) => Some(node.as_ref()),
        NodeFact::NotYet | NodeFact::Gone => None,
    };
    let record = node.and_then(|node| node.record.get());
    view.phase = record.map(|record| record.phase);
    view.phase_since = record.map(|record| record.since);
    view.waiting_since = record
        .filter(|record| record.phase == dogwatch_core::reboot::Phase::Waiting)
        .and_then(|record| seen.run.held_back.waits_since(record.since));
    view.blocked_by = blocked_by(seen, decision);
    view.drain = seen.drain.as_ref().map(|drain| DrainView {
        left: drain.progress.waiting.len(),
        evicted: drain.progress.gone,
        blocked: drain.progress.blocked.len(),
    });
    view.triggers = triggers(seen);
    view.last = node.and_then(last);
    view.alarms = ALARMS
        .iter()
        .filter(|alarm| **alarm == decision.because.reason)
        .map(|alarm| (*alarm).to_owned())
        .collect();
}

fn blocked_by(seen: &Seen, decision: &Decision) -> std::collections::BTreeSet<(String, String)> {
    let mut by = std::collections::BTreeSet::new();
    if decision.because.reason == reason::LOCK_HELD {
        let holders = seen
            .lock
            .leases
            .iter()
            .flatten()
            .filter_map(|lease| lease.holder.as_ref());
        by.extend(holders.map(|holder| ("lock".to_owned(), holder.to_string())));
    }
    if decision.because.reason == reason::OVER_BUDGET {
        by.insert(("budget".to_owned(), "maxUnavailable".to_owned()));
    }
    let drain = seen.drain.iter();
    by.extend(drain.flat_map(|drain| holding_pods(&drain.progress.blocked)));
    by
}

/// The budgets, webhooks and policies that hold pods up.
fn holding_pods(blocked: &[Blocked]) -> impl Iterator<Item = (String, String)> + '_ {
    let budgets = blocked.iter().flat_map(|blocked| &blocked.budgets);
    let budgets = budgets.map(|budget| ("PodDisruptionBudget".to_owned(), budget.full_name()));
    let refusals = blocked
        .iter()
        .filter_map(|blocked| blocked.refused.as_ref());
    let refusals = refusals.map(|refusal| &refusal.by);
    budgets.chain(refusals.map(|by| (by.kind().to_owned(), by.name().to_owned())))
}

fn triggers(seen: &Seen) -> BTreeMap<String, TriggerShown> {
    let shown = |state: &TriggerState| match state {
        TriggerState::Present { .. } => TriggerShown::Present,
        TriggerState::Absent => TriggerShown::Absent,
        TriggerState::Unknown { .. } => TriggerShown::Unknown,
    };
    seen.host
        .triggers
        .iter()
        .map(|trigger| (trigger.source.clone(), shown(&trigger.state)))
        .collect()
}

fn last(node: &NodeSeen) -> Option<LastView> {
    let last = node.last.get()?;
    Some(LastView {
        outcome: last.outcome.as_str().to_owned(),
        ended: last.finished,
        took: last.took(),
    })
}

/// What failed calls are counted by.
fn label(error: &dogwatch_k8s::Error) -> &'static str {
    match error.kind() {
        Kind::NotFound => "not-found",
        Kind::AlreadyExists => "already-exists",
        Kind::Conflict => "conflict",
        Kind::Gone => "gone",
        Kind::Forbidden => "forbidden",
        Kind::Throttled { .. } => "throttled",
        Kind::Refused => "refused",
        Kind::Transient => "transient",
    }
}

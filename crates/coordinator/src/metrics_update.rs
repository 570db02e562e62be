//! Updates `/metrics` and `/readyz` from each snapshot and decision.

use std::collections::BTreeMap;

use dogwatch_core::drain::BlockedPod;
use dogwatch_core::reboot::{
    LastReboot, ObservedNode, OwnNodeState, RebootDecision, RebootReason, RebootSnapshot,
    TriggerState,
};

use dogwatch_k8s::ApiErrorKind;

use crate::agent::DecisionSink;
use crate::http::CoordinatorHttpState;
use crate::metrics::{DrainView, LastRebootView, MetricsView, TriggerMetric};

impl DecisionSink for CoordinatorHttpState {
    fn on_decision(&self, seen: &RebootSnapshot, decision: &RebootDecision) {
        self.update_metrics(|view| update_metrics_view(view, seen, decision));
        self.set_ready(match &seen.node {
            OwnNodeState::There(_) => Ok(()),
            OwnNodeState::NotYet => Err("this coordinator's Node has not been read yet".into()),
            OwnNodeState::Gone => Err("the coordinator's Node does not exist".into()),
        });
    }

    fn on_api_error(&self, error: &dogwatch_k8s::Error) {
        self.update_metrics(|view| view.count_failure(error_label(error)));
    }

    fn on_reboot_finished(&self, last: &LastReboot) {
        self.update_metrics(|view| view.count_reboot(last.outcome.as_str()));
    }
}

fn update_metrics_view(view: &mut MetricsView, seen: &RebootSnapshot, decision: &RebootDecision) {
    let node = match &seen.node {
        OwnNodeState::There(node) => Some(node.as_ref()),
        OwnNodeState::NotYet | OwnNodeState::Gone => None,
    };
    let record = node.and_then(|node| node.record.get());
    view.phase = record.map(|record| record.phase);
    view.phase_since = record.map(|record| record.since);
    view.waiting_since = record
        .filter(|record| record.phase == dogwatch_core::reboot::RebootPhase::Waiting)
        .and_then(|record| seen.run.held_back.waiting_since(record.since));
    view.blocked_by = blocked_by(seen, decision);
    view.drain = seen.drain.as_ref().map(|drain| DrainView {
        left: drain.progress.waiting.len(),
        evicted: drain.progress.gone,
        blocked: drain.progress.blocked.len(),
    });
    view.triggers = trigger_metrics(seen);
    view.last = node.and_then(last_reboot_view);
    let alarm = Some(decision.cause.reason).filter(|reason| reason.needs_person());
    view.alarms = alarm.iter().map(ToString::to_string).collect();
}

fn blocked_by(
    seen: &RebootSnapshot,
    decision: &RebootDecision,
) -> std::collections::BTreeSet<(String, String)> {
    let mut by = std::collections::BTreeSet::new();
    if decision.cause.reason == RebootReason::LockHeldByOther {
        let holders = seen
            .lock
            .leases
            .iter()
            .flatten()
            .filter_map(|lease| lease.holder.as_ref());
        by.extend(holders.map(|holder| ("lock".to_owned(), holder.to_string())));
    }
    if decision.cause.reason == RebootReason::OverBudget {
        by.insert(("budget".to_owned(), "maxUnavailable".to_owned()));
    }
    let drain = seen.drain.iter();
    by.extend(drain.flat_map(|drain| pod_blockers(&drain.progress.blocked)));
    by
}

/// The PodDisruptionBudgets, webhooks and policies that block pods.
fn pod_blockers(blocked: &[BlockedPod]) -> impl Iterator<Item = (String, String)> + '_ {
    let budgets = blocked.iter().flat_map(|blocked| &blocked.budgets);
    let budgets = budgets.map(|budget| ("PodDisruptionBudget".to_owned(), budget.full_name()));
    let refusals = blocked
        .iter()
        .filter_map(|blocked| blocked.refused.as_ref());
    let refusals = refusals.map(|refusal| &refusal.by);
    budgets.chain(refusals.map(|by| (by.refuser_kind().to_owned(), by.name().to_owned())))
}

fn trigger_metrics(seen: &RebootSnapshot) -> BTreeMap<String, TriggerMetric> {
    let shown = |state: &TriggerState| match state {
        TriggerState::Present { .. } => TriggerMetric::Present,
        TriggerState::Absent => TriggerMetric::Absent,
        TriggerState::Unknown { .. } => TriggerMetric::Unknown,
    };
    seen.host
        .triggers
        .iter()
        .map(|trigger| (trigger.source.clone(), shown(&trigger.state)))
        .collect()
}

fn last_reboot_view(node: &ObservedNode) -> Option<LastRebootView> {
    let last = node.last_reboot.get()?;
    Some(LastRebootView {
        outcome: last.outcome.as_str().to_owned(),
        ended: last.finished,
        took: last.phase_durations(),
    })
}

/// The label by which failed calls are counted.
fn error_label(error: &dogwatch_k8s::Error) -> &'static str {
    match error.kind() {
        ApiErrorKind::NotFound => "not-found",
        ApiErrorKind::AlreadyExists => "already-exists",
        ApiErrorKind::Conflict => "conflict",
        ApiErrorKind::Gone => "gone",
        ApiErrorKind::Forbidden => "forbidden",
        ApiErrorKind::Throttled { .. } => "throttled",
        ApiErrorKind::Refused => "refused",
        ApiErrorKind::Transient => "transient",
    }
}

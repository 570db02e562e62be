//! Decides about one remediation at a time.

use super::action::RemediationAction;
use super::concurrency::ConcurrentRemediations;
use super::config::RemediationConfig;
use super::context::RemediationContext;
use super::discovery::REMEDIATION_CONDITION;
use super::snapshot::RemediationMemory;
use super::types::{Remediation, RemediationDecision, RemediationSubject};
use super::{RemediationReason, by_annotation, legacy_backup, recovery, request, restore};
use crate::Now;
use crate::condition::{ConditionStatus, DesiredCondition};
use crate::decision::{DecisionCause, DecisionEvent, EventSeverity, decision_with_cause};

/// Decides what to do about one remediation. Pure: the same input gives the same answer.
///
/// The caller performs the actions in order until one fails, and then calls
/// [`RemediationMemory::forget_reads`]. It calls [`RemediationMemory::record_decision`] after each
/// decision, and [`ConcurrentRemediations::admit_decided`] before it decides the next remediation.
/// The oldest mark comes first.
pub fn decide(
    case: &Remediation,
    known: &RemediationMemory,
    around: &ConcurrentRemediations,
    config: &RemediationConfig,
    now: Now,
) -> RemediationDecision {
    let ctx = RemediationContext {
        case,
        memory: known,
        concurrent: around,
        config,
        now,
    };
    if let Some(until) = known
        .own_write_awaited_until
        .filter(|until| now.mono < *until)
    {
        let reason = known
            .reason_since
            .map_or(RemediationReason::NothingToDo, |(reason, _)| reason);
        return decision_with_cause(reason, "waits to see its own write")
            .wake_at(until, "its own write");
    }
    let decision = match &case.request {
        Some(_) => request::decide(&ctx),
        None => decide_annotated(&ctx),
    };
    report_decision(&ctx, decision)
}

fn decide_annotated(ctx: &RemediationContext<'_>) -> RemediationDecision {
    let decision = by_annotation::decide(ctx);
    let decision = unless_host_is_written(ctx, decision, legacy_backup::take_over_legacy_backup);
    let decision = unless_host_is_written(ctx, decision, restore::restore_backup);
    let decision = unless_host_is_written(ctx, decision, recovery::record_recovery_steps);
    let decision = recovery::free_node_claims(ctx, decision);
    recovery::take_lost_lease(ctx, decision)
}

/// Skips a step that would write the host twice with one resourceVersion: the second write would
/// fail.
pub(super) fn unless_host_is_written(
    ctx: &RemediationContext<'_>,
    decision: RemediationDecision,
    step: impl Fn(&RemediationContext<'_>, RemediationDecision) -> RemediationDecision,
) -> RemediationDecision {
    if decision.actions.iter().any(RemediationAction::writes_host) {
        decision
    } else {
        step(ctx, decision)
    }
}

/// Adds the condition, and a Warning if the state has lasted too long.
fn report_decision(
    ctx: &RemediationContext<'_>,
    decision: RemediationDecision,
) -> RemediationDecision {
    let decision = warn_when_slow(ctx, decision);
    let mut decision = decision;
    let has_no_condition = matches!(
        ctx.case.subject,
        RemediationSubject::WorkloadNode(..) | RemediationSubject::Host(_)
    );
    if ctx.case.request.is_none() && !has_no_condition {
        decision
            .report
            .conditions
            .push(remediation_condition(&decision));
    }
    decision
}

/// The condition `Remediation`: True while a remediation is under way or blocked.
pub(super) fn remediation_condition(decision: &RemediationDecision) -> DesiredCondition {
    let because = &decision.cause;
    let status = if because.reason.is_at_rest() {
        ConditionStatus::False
    } else {
        ConditionStatus::True
    };
    DesiredCondition {
        kind: REMEDIATION_CONDITION,
        status,
        reason: because.reason.to_string(),
        message: because.message.clone(),
        heartbeat: false,
        shows_reason: false,
    }
}

/// Adds a Warning Event to a decision whose reason has lasted too long, for as long as it lasts
/// (S6).
fn warn_when_slow(
    ctx: &RemediationContext<'_>,
    decision: RemediationDecision,
) -> RemediationDecision {
    let reason = decision.cause.reason;
    if reason.is_at_rest() {
        return decision;
    }
    let until = ctx.reason_since(reason) + RemediationConfig::WARN_AFTER;
    if ctx.now.mono < until {
        return decision.wake_at(until, "it takes long: to say so");
    }
    let mut decision = decision;
    decision.report.events.push(DecisionEvent {
        severity: EventSeverity::Warning,
        reason: reason.as_str(),
        message: format!(
            "for more than {}: {}",
            crate::duration::format_duration(RemediationConfig::WARN_AFTER),
            lasting_part(ctx, &decision.cause)
        ),
    });
    decision
}

/// The message without what the power controller is trying at this moment, which changes several
/// times a minute: each change would be one more Event.
fn lasting_part(ctx: &RemediationContext<'_>, cause: &DecisionCause<RemediationReason>) -> String {
    if cause.reason != RemediationReason::PowerUnknown {
        return cause.message.clone();
    }
    let attempt = format!(": {}", ctx.describe_power());
    cause.message.replacen(&attempt, "", 1)
}

//! Builds the host's conditions and Events.

use super::annotations;
use super::context::PowerContext;
use super::refusal::{PowerRefusal, PowerReporting};
use super::step::PowerStep;
use super::{PowerReason, manual_confirmation, readiness};
use crate::condition::{ConditionStatus, DesiredCondition};
use crate::decision::{DecisionEvent, DecisionReport, EventSeverity};

/// At most this many annotations get an Event of their own.
const MAX_ANNOTATION_EVENTS: usize = 8;

pub(super) fn build_report(
    ctx: &PowerContext<'_>,
    step: &PowerStep,
    refusal: Option<&PowerRefusal>,
) -> DecisionReport {
    let is_silent = refusal.is_some_and(|refusal| {
        refusal.reporting == PowerReporting::Nothing
            && refusal.reason != PowerReason::OwnedByBaremetalOperator
    });
    if is_silent {
        return DecisionReport::default();
    }
    let mut events = step.events.clone();
    let said = annotation_events(ctx);
    let notes: Vec<&str> = said.iter().map(|event| &*event.message).collect();
    let notes = annotations::format_names(&notes);
    events.extend(said.iter().take(MAX_ANNOTATION_EVENTS).cloned());
    DecisionReport {
        conditions: vec![
            readiness::ready_condition(ctx, refusal),
            as_wanted_condition(step, notes),
            held_off_condition(ctx),
        ],
        events,
    }
}

fn as_wanted_condition(step: &PowerStep, notes: String) -> DesiredCondition {
    let mut message = vec![step.cause.message.clone()];
    message.extend(Some(notes).filter(|notes| !notes.is_empty()));
    DesiredCondition {
        kind: "PowerAsWanted",
        status: step.as_wanted,
        reason: step.cause.reason.to_string(),
        message: message.join("; "),
        heartbeat: false,
        shows_reason: false,
    }
}

fn held_off_condition(ctx: &PowerContext<'_>) -> DesiredCondition {
    let keys = ctx.obeyed_keys();
    let (status, reason, message) = if keys.is_empty() {
        (ConditionStatus::False, PowerReason::NotHeld, String::new())
    } else {
        let text = format!(
            "kept off by {}; the writer of each must remove it",
            annotations::format_names(&keys)
        );
        (ConditionStatus::True, PowerReason::HeldOff, text)
    };
    DesiredCondition {
        kind: "HeldOff",
        status,
        reason: reason.to_string(),
        message,
        heartbeat: false,
        shows_reason: false,
    }
}

/// Events about annotations that do not do what their writers may expect.
fn annotation_events(ctx: &PowerContext<'_>) -> Vec<DecisionEvent> {
    let problems = ctx.requests.iter().filter_map(|request| {
        let problem = request.problem.as_ref()?;
        Some(DecisionEvent {
            severity: EventSeverity::Warning,
            reason: PowerReason::InvalidAnnotationValue.as_str(),
            message: format!("annotation {} {problem}; it counts as soft", request.name),
        })
    });
    let disobeyed = ctx.ignored_annotations().map(|request| DecisionEvent {
        severity: EventSeverity::Warning,
        reason: PowerReason::NotProvisioned.as_str(),
        message: format!(
            r#"annotation {} is not obeyed, because the host is not provisioned; {{"force":true}} in its value overrides that"#,
            request.name
        ),
    });
    manual_confirmation::confirmation_event(ctx)
        .into_iter()
        .chain(problems)
        .chain(disobeyed)
        .collect()
}

//! The decision, one case at a time.

use super::action::Action;
use super::around::Around;
use super::case::{Case, Decision, Subject};
use super::cases::CONDITION;
use super::config::Config;
use super::context::Context;
use super::seen::Known;
use super::{after, legacy, marked, reason, request, restore};
use crate::Now;
use crate::condition::{Observation, Status};
use crate::decision::{Event, Severity, because};

/// What to do about one case. Pure: the same input, the same answer.
///
/// Actions are performed in order until one fails; then [`Known::failed`] is called. [`Known::decided`] is called
/// after each decision, and [`Around::admit`] before the next case is decided; the oldest need comes first.
pub fn decide(case: &Case, known: &Known, around: &Around, config: &Config, now: Now) -> Decision {
    let ctx = Context {
        case,
        known,
        around,
        config,
        now,
    };
    if let Some(until) = known.settling.filter(|until| now.mono < *until) {
        let reason = known
            .since
            .map_or(reason::NOTHING_TO_DO, |(reason, _)| reason);
        return because(reason, "waits to see its own write").wake(until, "its own write");
    }
    let decision = match &case.request {
        Some(_) => request::decide(&ctx),
        None => annotated(&ctx),
    };
    said(&ctx, decision)
}

fn annotated(ctx: &Context<'_>) -> Decision {
    let decision = marked::decide(ctx);
    let decision = unless_host_is_written(ctx, decision, legacy::steps);
    let decision = unless_host_is_written(ctx, decision, restore::steps);
    let decision = unless_host_is_written(ctx, decision, after::record);
    after::free(ctx, decision)
}

/// Two writes of one host on one version: the second would fail.
pub(super) fn unless_host_is_written(
    ctx: &Context<'_>,
    decision: Decision,
    step: impl Fn(&Context<'_>, Decision) -> Decision,
) -> Decision {
    if decision.actions.iter().any(Action::writes_host) {
        decision
    } else {
        step(ctx, decision)
    }
}

/// What a person sees: the condition; and, after a while, that it does not go on.
fn said(ctx: &Context<'_>, decision: Decision) -> Decision {
    let decision = loudly(ctx, decision);
    let mut decision = decision;
    let is_host = matches!(ctx.case.subject, Subject::Host(_));
    if ctx.case.request.is_none() && !is_host {
        decision.report.conditions.push(condition(&decision));
    }
    decision
}

/// The condition `Remediation`: True while something is under way or in the way.
pub(super) fn condition(decision: &Decision) -> Observation {
    let because = &decision.because;
    let status = if is_at_rest(because.reason) {
        Status::False
    } else {
        Status::True
    };
    Observation {
        kind: CONDITION,
        status,
        reason: because.reason.to_owned(),
        message: because.message.clone(),
        heartbeat: false,
    }
}

/// These last for good, and nothing is wrong.
fn is_at_rest(reason: &str) -> bool {
    let at_rest = [
        reason::NOT_NEEDED,
        reason::REMEDIATED,
        reason::WITHDRAWN,
        reason::TIMED_OUT,
        reason::ATTEMPTS_USED_UP,
        reason::NODE_HEALTHY,
    ];
    at_rest.contains(&reason)
}

/// Whatever should have passed by now is said as a Warning, and stays said (S6).
fn loudly(ctx: &Context<'_>, decision: Decision) -> Decision {
    let reason = decision.because.reason;
    if is_at_rest(reason) {
        return decision;
    }
    let until = ctx.stood(reason) + Config::SAY_AFTER;
    if ctx.now.mono < until {
        return decision.wake(until, "it takes long: to say so");
    }
    let mut decision = decision;
    decision.report.events.push(Event {
        severity: Severity::Warning,
        reason,
        message: format!(
            "for more than {}: {}",
            crate::duration::format(Config::SAY_AFTER),
            decision.because.message
        ),
    });
    decision
}

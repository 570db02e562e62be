//! What a person should see: the host's conditions and Events.

use super::annotations;
use super::context::Context;
use super::gate::{Knows, Refusal};
use super::step::Step;
use super::{readiness, reason, word};
use crate::condition::{Observation, Status};
use crate::decision::{Event, Report, Severity};

/// So many annotations have an Event of their own.
const NOTED: usize = 8;

pub(super) fn report(ctx: &Context<'_>, step: &Step, refusal: Option<&Refusal>) -> Report {
    let is_silent = refusal.is_some_and(|refusal| {
        refusal.knows == Knows::Nothing && refusal.reason != reason::OTHER_CONTROLLER
    });
    if is_silent {
        return Report::default();
    }
    let mut events = step.events.clone();
    let said = noteworthy(ctx);
    let notes: Vec<&str> = said.iter().map(|event| &*event.message).collect();
    let notes = annotations::listed(&notes);
    events.extend(said.iter().take(NOTED).cloned());
    Report {
        conditions: vec![
            readiness::condition(ctx, refusal),
            as_wanted(step, notes),
            held_off(ctx),
        ],
        events,
    }
}

fn as_wanted(step: &Step, notes: String) -> Observation {
    let mut message = vec![step.because.message.clone()];
    message.extend(Some(notes).filter(|notes| !notes.is_empty()));
    Observation {
        kind: "PowerAsWanted",
        status: step.as_wanted,
        reason: step.because.reason.to_owned(),
        message: message.join("; "),
        heartbeat: false,
    }
}

fn held_off(ctx: &Context<'_>) -> Observation {
    let keys = ctx.keys();
    let (status, reason, message) = if keys.is_empty() {
        (Status::False, reason::NOT_HELD, String::new())
    } else {
        let text = format!(
            "held off by {}; each is removed by its writer",
            annotations::listed(&keys)
        );
        (Status::True, reason::HELD_OFF, text)
    };
    Observation {
        kind: "HeldOff",
        status,
        reason: reason.to_owned(),
        message,
        heartbeat: false,
    }
}

/// Annotations that do not do what their writers may think.
fn noteworthy(ctx: &Context<'_>) -> Vec<Event> {
    let problems = ctx.requests.iter().filter_map(|request| {
        let problem = request.problem.as_ref()?;
        Some(Event {
            severity: Severity::Warning,
            reason: reason::INVALID_ANNOTATION,
            message: format!(
                "annotation {} {problem}; it is kept, and means soft",
                request.name
            ),
        })
    });
    let disobeyed = ctx.disobeyed().map(|request| Event {
        severity: Severity::Warning,
        reason: reason::NOT_PROVISIONED,
        message: format!(
            r#"annotation {} is not obeyed, as the host is not provisioned; {{"force":true}} in its value overrides that"#,
            request.name
        ),
    });
    word::event(ctx)
        .into_iter()
        .chain(problems)
        .chain(disobeyed)
        .collect()
}

//! How a phase builds its answer.

use std::time::Duration;

use super::action::{Action, Look, NodePatch, RecordChange};
use super::record::Record;
use super::{Context, Decision, report};
use crate::decision::{Because, Event, Report, Severity, Wake};

/// An answer in the making: the reason first, for there is no step without one.
#[derive(Clone)]
pub(super) struct Step {
    pub(super) because: Because,
    pub(super) actions: Vec<Action>,
    pub(super) looks: Vec<Look>,
    pub(super) wake: Option<Wake>,
    pub(super) events: Vec<Event>,
}

impl Step {
    pub(super) fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            because: Because::new(reason, message),
            actions: Vec::new(),
            looks: Vec::new(),
            wake: None,
            events: Vec::new(),
        }
    }

    pub(super) fn act(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    pub(super) fn look(mut self, look: Look) -> Self {
        if !self.looks.contains(&look) {
            self.looks.push(look);
        }
        self
    }

    pub(super) fn wake(mut self, at: Duration, why: &'static str) -> Self {
        self.wake = Wake::earlier(self.wake.take(), Some(Wake { at, why }));
        self
    }

    pub(super) fn event(
        mut self,
        severity: Severity,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        self.events.push(Event {
            severity,
            reason,
            message: message.into(),
        });
        self
    }

    /// Says the reason itself as a Warning Event.
    pub(super) fn warn(self) -> Self {
        let Because { reason, message } = self.because.clone();
        self.event(Severity::Warning, reason, message)
    }

    /// Says the reason itself as a Normal Event.
    pub(super) fn say(self) -> Self {
        let Because { reason, message } = self.because.clone();
        self.event(Severity::Normal, reason, message)
    }

    /// Writes the record, and nothing else.
    pub(super) fn patch(self, ctx: &Context<'_>, record: Record) -> Self {
        let patch = set(ctx, record);
        self.act(Action::PatchNode(Box::new(patch)))
    }

    /// The answer, with what a person should see.
    pub(super) fn finish(mut self, ctx: &Context<'_>) -> Decision {
        let trouble: Vec<String> = ctx
            .seen
            .trouble
            .iter()
            .map(|(what, why)| format!("{what}: {why}"))
            .collect();
        if !trouble.is_empty() && !self.looks.is_empty() {
            self.because.message =
                format!("{}; trouble: {}", self.because.message, trouble.join("; "));
        }
        let report = report::report(ctx, &self);
        self.into_decision(report)
    }

    /// The answer while not even our Node is known: there is nowhere to report to.
    pub(super) fn bare(self) -> Decision {
        self.into_decision(Report::default())
    }

    pub(super) fn into_decision(self, report: Report) -> Decision {
        Decision {
            actions: self.actions,
            looks: self.looks,
            report,
            wake: self.wake,
            because: self.because,
        }
    }
}

/// A patch that writes the record and leaves everything else.
pub(super) fn set(ctx: &Context<'_>, mut record: Record) -> NodePatch {
    record.began.insert(record.phase, record.since);
    NodePatch {
        resource_version: ctx.node.resource_version.clone(),
        unschedulable: None,
        record: RecordChange::Set(record),
        waiting_label: None,
        last: None,
        remove_request: false,
        remove_abort: false,
    }
}

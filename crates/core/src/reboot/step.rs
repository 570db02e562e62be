//! Builds the decision of a phase.

use std::time::Duration;

use super::action::{NodePatch, RebootAction, RebootObserve, RecordChange};
use super::record::RebootRecord;
use super::{RebootContext, RebootDecision, RebootReason, report};
use crate::decision::{DecisionCause, DecisionEvent, DecisionReport, EventSeverity, WakeTime};

/// A decision under construction. It starts with its reason, so that no decision lacks one.
#[derive(Clone)]
pub(super) struct RebootStep {
    pub(super) because: DecisionCause<RebootReason>,
    pub(super) actions: Vec<RebootAction>,
    pub(super) looks: Vec<RebootObserve>,
    pub(super) wake: Option<WakeTime>,
    pub(super) events: Vec<DecisionEvent>,
}

impl RebootStep {
    pub(super) fn new(reason: RebootReason, message: impl Into<String>) -> Self {
        Self {
            because: DecisionCause::new(reason, message),
            actions: Vec::new(),
            looks: Vec::new(),
            wake: None,
            events: Vec::new(),
        }
    }

    pub(super) fn with_action(mut self, action: RebootAction) -> Self {
        self.actions.push(action);
        self
    }

    pub(super) fn with_observe(mut self, look: RebootObserve) -> Self {
        if !self.looks.contains(&look) {
            self.looks.push(look);
        }
        self
    }

    pub(super) fn with_wake(mut self, at: Duration, why: &'static str) -> Self {
        self.wake = WakeTime::earlier_of(self.wake.take(), Some(WakeTime { at, why }));
        self
    }

    pub(super) fn with_event(
        mut self,
        severity: EventSeverity,
        reason: RebootReason,
        message: impl Into<String>,
    ) -> Self {
        self.events.push(DecisionEvent {
            severity,
            reason: reason.as_str(),
            message: message.into(),
        });
        self
    }

    /// Reports the step's reason as a Warning Event.
    pub(super) fn with_warning_event(self) -> Self {
        let DecisionCause { reason, message } = self.because.clone();
        self.with_event(EventSeverity::Warning, reason, message)
    }

    /// Reports the step's reason as a Normal Event.
    pub(super) fn with_normal_event(self) -> Self {
        let DecisionCause { reason, message } = self.because.clone();
        self.with_event(EventSeverity::Normal, reason, message)
    }

    pub(super) fn with_record_patch(self, ctx: &RebootContext<'_>, record: RebootRecord) -> Self {
        let patch = build_record_patch(ctx, record);
        self.with_action(RebootAction::PatchNode(Box::new(patch)))
    }

    pub(super) fn into_reported_decision(mut self, ctx: &RebootContext<'_>) -> RebootDecision {
        let trouble: Vec<String> = ctx
            .seen
            .observation_errors
            .iter()
            .map(|(what, why)| format!("{what}: {why}"))
            .collect();
        if !trouble.is_empty() && !self.looks.is_empty() {
            self.because.message =
                format!("{}; trouble: {}", self.because.message, trouble.join("; "));
        }
        let report = report::build_report(ctx, &self);
        self.into_decision(report)
    }

    /// The decision while our Node is not known, so that there is no object to report on.
    pub(super) fn into_unreported_decision(self) -> RebootDecision {
        self.into_decision(DecisionReport::default())
    }

    pub(super) fn into_decision(self, report: DecisionReport) -> RebootDecision {
        RebootDecision {
            actions: self.actions,
            observe: self.looks,
            report,
            wake: self.wake,
            cause: self.because,
        }
    }
}

/// A patch that writes the record and leaves everything else.
pub(super) fn build_record_patch(ctx: &RebootContext<'_>, mut record: RebootRecord) -> NodePatch {
    record.began.insert(record.phase, record.since);
    NodePatch {
        resource_version: ctx.node.resource_version.clone(),
        unschedulable: None,
        record: RecordChange::Set(record),
        waiting_label: None,
        mute_label: None,
        last: None,
        remove_labels: Vec::new(),
        remove_request: false,
        remove_abort: false,
    }
}

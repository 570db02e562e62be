//! The result type of all decision functions.

use std::time::Duration;

use crate::condition::DesiredCondition;

/// The result of a decision function: what to observe, what to do, what to report, when to decide
/// again, and why.
///
/// The live loop performs `actions` in order and stops at the first failure. Whatever the outcome,
/// it observes and decides again.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision<Action, Look, Reason = &'static str> {
    /// Writes, as data. Each is safe to repeat or carries a precondition.
    pub actions: Vec<Action>,
    /// Facts to keep fresh until the next decision. Other facts may be dropped.
    pub observe: Vec<Look>,
    /// What a person should be able to see now.
    pub report: DecisionReport,
    /// When to decide again even if nothing changes. `None`: only a change can matter.
    pub wake: Option<WakeTime>,
    /// Why this, and not something else.
    pub cause: DecisionCause<Reason>,
}

/// A decision with a cause and nothing else.
pub(crate) fn decision_with_cause<Action, Look, Reason>(
    reason: Reason,
    message: impl Into<String>,
) -> Decision<Action, Look, Reason> {
    Decision {
        actions: Vec::new(),
        observe: Vec::new(),
        report: DecisionReport::default(),
        wake: None,
        cause: DecisionCause::new(reason, message),
    }
}

impl<Action, Look, Reason: Copy + Into<&'static str>> Decision<Action, Look, Reason> {
    pub(crate) fn with_action(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    pub(crate) fn with_observe(mut self, look: Look) -> Self {
        self.observe.push(look);
        self
    }

    pub(crate) fn wake_at(mut self, at: Duration, why: &'static str) -> Self {
        self.wake = WakeTime::earlier_of(self.wake.take(), Some(WakeTime { at, why }));
        self
    }

    /// Reports the cause itself as an Event.
    pub(crate) fn with_event(mut self, severity: EventSeverity) -> Self {
        self.report.events.push(DecisionEvent {
            severity,
            reason: self.cause.reason.into(),
            message: self.cause.message.clone(),
        });
        self
    }
}

/// When to decide again, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WakeTime {
    /// A monotonic moment.
    pub at: Duration,
    /// What Dogwatch waits for, as a person would say it.
    pub why: &'static str,
}

impl WakeTime {
    pub fn earlier_of(a: Option<WakeTime>, b: Option<WakeTime>) -> Option<WakeTime> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if b.at < a.at { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}

/// Why a decision was made: a reason for machines, a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionCause<Reason = &'static str> {
    /// One of the domain's table; it becomes the reason of conditions, Events and metrics.
    pub reason: Reason,
    /// A sentence with the names and numbers that matter.
    pub message: String,
}

impl<Reason> DecisionCause<Reason> {
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}

/// What should be visible after this decision. The writer compares it with what is there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DecisionReport {
    /// Node conditions as they should be. A condition that is not listed stays as it is.
    pub conditions: Vec<DesiredCondition>,
    /// The writer sends each (reason, message) once, until another one comes.
    pub events: Vec<DecisionEvent>,
}

/// One Event for `kubectl describe` and `kubectl get events`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DecisionEvent {
    pub severity: EventSeverity,
    /// The text of a reason: one CamelCase word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventSeverity {
    /// A change that a user would care about.
    Normal,
    /// May need a person.
    Warning,
}

//! The one answer type of every domain.

use std::time::Duration;

use crate::condition::Observation;

/// What a decision function answers: what to look at, what to do, what to say, when to come back,
/// and why.
///
/// The live loop performs `actions` in order and stops at the first that fails; whatever the
/// outcome, it observes again and decides again.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision<Action, Look> {
    /// Writes, as data. Each is safe to repeat or carries a precondition.
    pub actions: Vec<Action>,
    /// Facts this decision needs kept fresh until the next one. What is not listed may be dropped.
    pub looks: Vec<Look>,
    /// What a person should be able to see now.
    pub report: Report,
    /// When to decide again even if nothing changes. `None`: only a change can matter.
    pub wake: Option<Wake>,
    /// Why this, and not something else.
    pub because: Because,
}

/// A decision in the making: so far only why.
pub(crate) fn because<Action, Look>(
    reason: &'static str,
    message: impl Into<String>,
) -> Decision<Action, Look> {
    Decision {
        actions: Vec::new(),
        looks: Vec::new(),
        report: Report::default(),
        wake: None,
        because: Because::new(reason, message),
    }
}

/// How one is filled.
impl<Action, Look> Decision<Action, Look> {
    pub(crate) fn act(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    pub(crate) fn look(mut self, look: Look) -> Self {
        self.looks.push(look);
        self
    }

    pub(crate) fn wake(mut self, at: Duration, why: &'static str) -> Self {
        self.wake = Wake::earlier(self.wake.take(), Some(Wake { at, why }));
        self
    }

    /// Says the reason itself as an Event.
    pub(crate) fn say(mut self, severity: Severity) -> Self {
        self.report.events.push(Event {
            severity,
            reason: self.because.reason,
            message: self.because.message.clone(),
        });
        self
    }
}

/// When to look again, and who asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wake {
    /// Monotonic moment.
    pub at: Duration,
    /// What is waited for, as a person would say it.
    pub why: &'static str,
}

impl Wake {
    /// The earlier of two.
    pub fn earlier(a: Option<Wake>, b: Option<Wake>) -> Option<Wake> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if b.at < a.at { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}

/// The reason of a decision: one CamelCase word for machines, one sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Because {
    /// One CamelCase word of a fixed list; it becomes the reason of conditions, Events and metrics.
    pub reason: &'static str,
    /// A sentence with the names and numbers that matter.
    pub message: String,
}

impl Because {
    /// A reason with its sentence.
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}

/// What should be visible after this decision. The writer compares it with what is there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Node conditions as they should stand. One that is not listed is left alone.
    pub conditions: Vec<Observation>,
    /// Events worth saying once: the writer says each (reason, message) once in a run of sameness.
    pub events: Vec<Event>,
}

/// One thing that happened, for `kubectl describe` and `kubectl get events`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// Whether it may need a person.
    pub severity: Severity,
    /// One CamelCase word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

/// How loud an Event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A change a user would care about.
    Normal,
    /// May need somebody.
    Warning,
}

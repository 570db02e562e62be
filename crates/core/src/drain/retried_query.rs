//! A query that is sent until it is answered once: due, asked, failed and due again, known.

use std::time::Duration;

use super::waiting_pod::EVICTION_BACKOFF;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RetriedQuery<T> {
    state: QueryState<T>,
    /// Why the last try failed; kept until the answer is known.
    failure: Option<String>,
    failures: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum QueryState<T> {
    /// To be sent at this monotonic time or later.
    Due(Duration),
    Asked,
    Known(T),
}

impl<T> Default for RetriedQuery<T> {
    fn default() -> Self {
        Self {
            state: QueryState::Due(Duration::ZERO),
            failure: None,
            failures: 0,
        }
    }
}

impl<T> RetriedQuery<T> {
    /// Whether to send the query now. It then counts as sent until it is answered.
    pub(super) fn start_if_due(&mut self, now: Duration) -> bool {
        let due = matches!(self.state, QueryState::Due(at) if at <= now);
        if due {
            self.state = QueryState::Asked;
        }
        due
    }

    /// An answer to a query that was not sent is ignored.
    pub(super) fn apply_answer(&mut self, answer: Result<T, String>, now: Duration) {
        match (&self.state, answer) {
            (QueryState::Asked, Ok(known)) => {
                self.state = QueryState::Known(known);
                self.failure = None;
            }
            (QueryState::Asked, Err(why)) => {
                self.state = QueryState::Due(
                    now.saturating_add(EVICTION_BACKOFF.pause_after(self.failures)),
                );
                self.failure = Some(why);
                self.failures = self.failures.saturating_add(1);
            }
            (QueryState::Due(_) | QueryState::Known(_), _) => {}
        }
    }

    pub(super) fn known_answer(&self) -> Option<&T> {
        match &self.state {
            QueryState::Known(known) => Some(known),
            QueryState::Due(_) | QueryState::Asked => None,
        }
    }

    pub(super) fn last_failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    pub(super) fn due_at(&self) -> Option<Duration> {
        match self.state {
            QueryState::Due(at) => Some(at),
            QueryState::Asked | QueryState::Known(_) => None,
        }
    }
}

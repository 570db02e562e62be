//! Something that must be asked once: wanted, asked, failed and asked again, known.

use std::time::Duration;

use super::waiting::back_off;

/// One question and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question<T> {
    state: State<T>,
    /// Why the last try failed; kept until it is known.
    failure: Option<String>,
    failures: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State<T> {
    /// To be asked at this moment or later.
    Due(Duration),
    Asked,
    Known(T),
}

impl<T> Default for Question<T> {
    fn default() -> Self {
        Self {
            state: State::Due(Duration::ZERO),
            failure: None,
            failures: 0,
        }
    }
}

impl<T> Question<T> {
    /// Whether it is to be asked now; it is then under way until it is answered.
    pub(super) fn asks(&mut self, now: Duration) -> bool {
        let due = matches!(self.state, State::Due(at) if at <= now);
        if due {
            self.state = State::Asked;
        }
        due
    }

    /// Takes the answer in. One that was not asked for is none.
    pub(super) fn answered(&mut self, answer: Result<T, String>, now: Duration) {
        match (&self.state, answer) {
            (State::Asked, Ok(known)) => {
                self.state = State::Known(known);
                self.failure = None;
            }
            (State::Asked, Err(why)) => {
                self.state = State::Due(now.saturating_add(back_off(self.failures)));
                self.failure = Some(why);
                self.failures = self.failures.saturating_add(1);
            }
            (State::Due(_) | State::Known(_), _) => {}
        }
    }

    pub(super) fn known(&self) -> Option<&T> {
        match &self.state {
            State::Known(known) => Some(known),
            State::Due(_) | State::Asked => None,
        }
    }

    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// When it is due again.
    pub(super) fn wake(&self) -> Option<Duration> {
        match self.state {
            State::Due(at) => Some(at),
            State::Asked | State::Known(_) => None,
        }
    }
}

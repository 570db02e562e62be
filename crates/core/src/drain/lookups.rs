//! What is known of the DaemonSets: each is looked up once, however many pods it has here.

use std::collections::BTreeMap;
use std::time::Duration;

use super::types::{DaemonSetRef, Lookup};
use super::waiting::back_off;

/// All lookups of one drain.
#[derive(Debug, Clone, Default)]
pub(super) struct Lookups {
    sets: BTreeMap<DaemonSetRef, State>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Wanted,
    Asked { failure: Option<Failure> },
    Failed { failure: Failure, again: Duration },
    Exists,
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Failure {
    why: String,
    times: u32,
}

/// What is known of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Exists,
    Gone,
    No,
}

impl Lookups {
    pub(super) fn known(&self, set: &DaemonSetRef) -> Known {
        match self.sets.get(set) {
            Some(State::Exists) => Known::Exists,
            Some(State::Gone) => Known::Gone,
            Some(State::Wanted | State::Asked { .. } | State::Failed { .. }) | None => Known::No,
        }
    }

    /// Makes sure that it will be looked up.
    pub(super) fn want(&mut self, set: &DaemonSetRef) {
        if !self.sets.contains_key(set) {
            self.sets.insert(set.clone(), State::Wanted);
        }
    }

    /// Those to look up now; each is then under way until it is answered.
    pub(super) fn due(&mut self, now: Duration) -> Vec<DaemonSetRef> {
        let mut due = Vec::new();
        for (set, state) in &mut self.sets {
            let failure = match state {
                State::Wanted => None,
                State::Failed { failure, again } if *again <= now => Some(failure.clone()),
                State::Failed { .. } | State::Asked { .. } | State::Exists | State::Gone => {
                    continue;
                }
            };
            *state = State::Asked { failure };
            due.push(set.clone());
        }
        due
    }

    /// Takes an answer in.
    pub(super) fn answered(&mut self, set: &DaemonSetRef, lookup: Lookup, now: Duration) {
        let Some(state @ State::Asked { .. }) = self.sets.get_mut(set) else {
            return;
        };
        let before = match &*state {
            State::Asked {
                failure: Some(failure),
            } => failure.times,
            State::Asked { failure: None }
            | State::Wanted
            | State::Failed { .. }
            | State::Exists
            | State::Gone => 0,
        };
        *state = match lookup {
            Lookup::Exists => State::Exists,
            Lookup::Gone => State::Gone,
            Lookup::Failed { why } => State::Failed {
                failure: Failure {
                    why,
                    times: before.saturating_add(1),
                },
                again: now.saturating_add(back_off(before)),
            },
        };
    }

    /// The first moment at which one is due again.
    pub(super) fn wake(&self) -> Option<Duration> {
        self.sets.values().filter_map(State::again).min()
    }

    /// Those whose last answer was a failure.
    pub(super) fn failed(&self) -> impl Iterator<Item = (DaemonSetRef, String)> + '_ {
        self.sets.iter().filter_map(|(set, state)| {
            state
                .failure()
                .map(|failure| (set.clone(), failure.why.clone()))
        })
    }
}

impl State {
    fn again(&self) -> Option<Duration> {
        match self {
            State::Failed { again, .. } => Some(*again),
            State::Wanted | State::Asked { .. } | State::Exists | State::Gone => None,
        }
    }

    fn failure(&self) -> Option<&Failure> {
        match self {
            State::Failed { failure, .. } => Some(failure),
            State::Asked { failure } => failure.as_ref(),
            State::Wanted | State::Exists | State::Gone => None,
        }
    }
}

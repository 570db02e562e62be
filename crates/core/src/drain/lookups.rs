//! What is known of the DaemonSets: each is looked up once, however many pods it has here.

use std::collections::BTreeMap;
use std::time::Duration;

use super::question::Question;
use super::types::{DaemonSetRef, Lookup};

/// All lookups of one drain.
#[derive(Debug, Clone, Default)]
pub(super) struct Lookups {
    sets: BTreeMap<DaemonSetRef, Question<Known>>,
}

/// What is known of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Exists,
    Gone,
}

impl Lookups {
    pub(super) fn known(&self, set: &DaemonSetRef) -> Option<Known> {
        self.sets.get(set).and_then(Question::known).copied()
    }

    /// Makes sure that it will be looked up.
    pub(super) fn want(&mut self, set: &DaemonSetRef) {
        if !self.sets.contains_key(set) {
            self.sets.insert(set.clone(), Question::default());
        }
    }

    /// Those to look up now; each is then under way until it is answered.
    pub(super) fn due(&mut self, now: Duration) -> Vec<DaemonSetRef> {
        let due = self
            .sets
            .iter_mut()
            .filter_map(|(set, question)| question.asks(now).then_some(set));
        due.cloned().collect()
    }

    /// Takes an answer in.
    pub(super) fn answered(&mut self, set: &DaemonSetRef, lookup: Lookup, now: Duration) {
        if let Some(question) = self.sets.get_mut(set) {
            let answer = match lookup {
                Lookup::Exists => Ok(Known::Exists),
                Lookup::Gone => Ok(Known::Gone),
                Lookup::Failed { why } => Err(why),
            };
            question.answered(answer, now);
        }
    }

    /// The first moment at which one is due again.
    pub(super) fn wake(&self) -> Option<Duration> {
        self.sets.values().filter_map(Question::wake).min()
    }

    /// Those whose last answer was a failure.
    pub(super) fn failed(&self) -> impl Iterator<Item = (DaemonSetRef, String)> + '_ {
        self.sets
            .iter()
            .filter_map(|(set, question)| Some((set.clone(), question.failure()?.to_owned())))
    }
}

//! The lookups of DaemonSets: each one is looked up once, however many pods it has here.

use std::collections::BTreeMap;
use std::time::Duration;

use super::retried_query::RetriedQuery;
use super::types::{DaemonSetLookup, DaemonSetRef};

#[derive(Debug, Clone, Default)]
pub(super) struct DaemonSetLookups {
    sets: BTreeMap<DaemonSetRef, RetriedQuery<DaemonSetPresence>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DaemonSetPresence {
    Exists,
    Gone,
}

impl DaemonSetLookups {
    pub(super) fn known_presence(&self, set: &DaemonSetRef) -> Option<DaemonSetPresence> {
        self.sets
            .get(set)
            .and_then(RetriedQuery::known_answer)
            .copied()
    }

    pub(super) fn request_lookup(&mut self, set: &DaemonSetRef) {
        if !self.sets.contains_key(set) {
            self.sets.insert(set.clone(), RetriedQuery::default());
        }
    }

    /// DaemonSets to look up now. Each lookup then counts as under way until it is answered.
    pub(super) fn start_due_lookups(&mut self, now: Duration) -> Vec<DaemonSetRef> {
        let due = self
            .sets
            .iter_mut()
            .filter_map(|(set, question)| question.start_if_due(now).then_some(set));
        due.cloned().collect()
    }

    pub(super) fn apply_lookup(
        &mut self,
        set: &DaemonSetRef,
        lookup: DaemonSetLookup,
        now: Duration,
    ) {
        if let Some(question) = self.sets.get_mut(set) {
            let answer = match lookup {
                DaemonSetLookup::Exists => Ok(DaemonSetPresence::Exists),
                DaemonSetLookup::Gone => Ok(DaemonSetPresence::Gone),
                DaemonSetLookup::Failed { why } => Err(why),
            };
            question.apply_answer(answer, now);
        }
    }

    pub(super) fn next_due_at(&self) -> Option<Duration> {
        self.sets.values().filter_map(RetriedQuery::due_at).min()
    }

    pub(super) fn failed_lookups(&self) -> impl Iterator<Item = (DaemonSetRef, String)> + '_ {
        self.sets
            .iter()
            .filter_map(|(set, question)| Some((set.clone(), question.last_failure()?.to_owned())))
    }
}

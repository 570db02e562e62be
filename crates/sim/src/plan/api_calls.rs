//! Counts calls to the API server by kind.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApiCallCounts(BTreeMap<&'static str, u64>);

impl ApiCallCounts {
    pub(super) fn add_calls(&mut self, what: &'static str, count: u64) {
        *self.0.entry(what).or_default() += count;
    }

    pub fn total_calls(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns the counts by kind, in alphabetical order.
    pub fn calls_by_kind(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().map(|(what, count)| (*what, *count))
    }
}

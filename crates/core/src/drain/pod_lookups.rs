//! What the plans of pods depend on beside the pods: each DaemonSet, each namespace, and the
//! MachineDrainRules are looked up once, however many pods they concern.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::machine_rules::MachineDrainRule;
use super::retried_query::RetriedQuery;
use super::types::DaemonSetRef;

/// What has to be looked up before the plan of a pod is known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodLookup {
    /// Whether this DaemonSet exists.
    DaemonSet(DaemonSetRef),
    /// The labels of this namespace.
    Namespace(String),
    /// The MachineDrainRules that apply to the node's Machine.
    MachineDrainRules,
}

impl fmt::Display for PodLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DaemonSet(set) => write!(f, "DaemonSet {}/{}", set.namespace, set.name),
            Self::Namespace(name) => write!(f, "namespace {name}"),
            Self::MachineDrainRules => f.write_str("MachineDrainRules"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DaemonSetPresence {
    Exists,
    Gone,
}

#[derive(Debug, Clone, Default)]
pub(super) struct PodLookups {
    pub(super) daemonsets: LookupTable<DaemonSetRef, DaemonSetPresence>,
    pub(super) namespaces: LookupTable<String, BTreeMap<String, String>>,
    pub(super) machine_rules: LookupTable<(), Vec<MachineDrainRule>>,
}

impl PodLookups {
    pub(super) fn request_lookup(&mut self, lookup: &PodLookup) {
        match lookup {
            PodLookup::DaemonSet(set) => self.daemonsets.request_lookup(set),
            PodLookup::Namespace(name) => self.namespaces.request_lookup(name),
            PodLookup::MachineDrainRules => self.machine_rules.request_lookup(&()),
        }
    }

    pub(super) fn next_due_at(&self) -> Option<Duration> {
        let due = [
            self.daemonsets.next_due_at(),
            self.namespaces.next_due_at(),
            self.machine_rules.next_due_at(),
        ];
        due.into_iter().flatten().min()
    }

    pub(super) fn failed_lookups(&self) -> impl Iterator<Item = (PodLookup, String)> + '_ {
        let sets = self.daemonsets.failed_lookups();
        let sets = sets.map(|(set, why)| (PodLookup::DaemonSet(set.clone()), why));
        let names = self.namespaces.failed_lookups();
        let names = names.map(|(name, why)| (PodLookup::Namespace(name.clone()), why));
        let rules = self.machine_rules.failed_lookups();
        let rules = rules.map(|((), why)| (PodLookup::MachineDrainRules, why));
        sets.chain(names).chain(rules)
    }
}

impl LookupTable<(), Vec<MachineDrainRule>> {
    /// Whether to look it up now. It then counts as under way until it is answered.
    pub(super) fn start_if_due(&mut self, now: Duration) -> bool {
        !self.start_due_lookups(now).is_empty()
    }
}

#[derive(Debug, Clone)]
pub(super) struct LookupTable<K, V> {
    asked: BTreeMap<K, RetriedQuery<V>>,
}

impl<K, V> Default for LookupTable<K, V> {
    fn default() -> Self {
        Self {
            asked: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Clone, V> LookupTable<K, V> {
    pub(super) fn known_answer(&self, of: &K) -> Option<&V> {
        self.asked.get(of).and_then(RetriedQuery::known_answer)
    }

    fn request_lookup(&mut self, of: &K) {
        if !self.asked.contains_key(of) {
            self.asked.insert(of.clone(), RetriedQuery::default());
        }
    }

    /// What to look up now. Each lookup then counts as under way until it is answered.
    pub(super) fn start_due_lookups(&mut self, now: Duration) -> Vec<K> {
        let due = self
            .asked
            .iter_mut()
            .filter_map(|(of, question)| question.start_if_due(now).then_some(of));
        due.cloned().collect()
    }

    pub(super) fn apply_lookup(&mut self, of: &K, answer: Result<V, String>, now: Duration) {
        if let Some(question) = self.asked.get_mut(of) {
            question.apply_answer(answer, now);
        }
    }

    fn next_due_at(&self) -> Option<Duration> {
        self.asked.values().filter_map(RetriedQuery::due_at).min()
    }

    fn failed_lookups(&self) -> impl Iterator<Item = (&K, String)> {
        self.asked
            .iter()
            .filter_map(|(of, question)| Some((of, question.last_failure()?.to_owned())))
    }
}

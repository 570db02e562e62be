//! The judgement of a journal.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use dogwatch_core::reboot::Phase;
use jiff::Timestamp;

use super::Limits;
use super::journal::{Entry, Journal, Kin, NodeState, PodState};

/// What happened, and whether it was right.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Each Node that was seen.
    pub nodes: BTreeMap<String, NodeReport>,
    /// The most nodes of each group that were out on Dogwatch's account at once.
    pub most_out: BTreeMap<String, usize>,
    /// Pods that left a node that was being drained.
    pub pods_moved: usize,
    /// Every broken promise, in order.
    pub violations: Vec<Violation>,
}

/// One Node's story.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeReport {
    /// New boot ids since the first one seen.
    pub boots: usize,
    /// How many times it went out on Dogwatch's account.
    pub outs: usize,
    /// How long it was out on Dogwatch's account, all times together.
    pub out_for: Duration,
}

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// S1: more nodes of a group were out on Dogwatch's account than allowed.
    TooManyOut {
        /// When.
        at: Timestamp,
        /// Which group.
        group: String,
        /// Which nodes.
        nodes: Vec<String>,
        /// How many may be.
        limit: usize,
    },
    /// A node was rebooted by Dogwatch with a pod on it that had to leave first.
    RebootedUnder {
        /// When the node was told to reboot.
        at: Timestamp,
        /// The pod.
        pod: String,
        /// The node.
        node: String,
    },
    /// A pod was deleted from a healthy node that nobody drains.
    DeletedElsewhere {
        /// When.
        at: Timestamp,
        /// The pod.
        pod: String,
        /// The node.
        node: String,
    },
    /// A pod was deleted that a drain has to leave alone.
    DeletedForNothing {
        /// When.
        at: Timestamp,
        /// The pod.
        pod: String,
        /// The node.
        node: String,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::TooManyOut {
                at,
                group,
                nodes,
                limit,
            } => {
                let count = nodes.len();
                write!(
                    formatter,
                    "{at}: {count} nodes of group {group} are out, {limit} may be: {}",
                    nodes.join(", ")
                )
            }
            Violation::RebootedUnder { at, pod, node } => {
                write!(formatter, "{at}: {node} was rebooted under pod {pod}")
            }
            Violation::DeletedElsewhere { at, pod, node } => {
                write!(
                    formatter,
                    "{at}: pod {pod} was deleted from {node}, which nobody drains"
                )
            }
            Violation::DeletedForNothing { at, pod, node } => {
                write!(
                    formatter,
                    "{at}: pod {pod} on {node} was deleted, which a drain leaves alone"
                )
            }
        }
    }
}

/// Judges all that was written.
pub fn judge(journal: &Journal, limits: &Limits) -> Report {
    let mut court = Court {
        limits,
        nodes: BTreeMap::new(),
        pods: BTreeMap::new(),
        on_node: BTreeMap::new(),
        out: BTreeMap::new(),
        report: Report::default(),
    };
    for (at, entry) in journal.entries() {
        match entry {
            Entry::Node(name, state) => court.node(at, name, state.as_ref()),
            Entry::Pod(uid, state) => court.pod(at, uid, state.as_ref()),
        }
    }
    court.report
}

struct Court<'a> {
    limits: &'a Limits,
    nodes: BTreeMap<&'a str, &'a NodeState>,
    pods: BTreeMap<&'a str, &'a PodState>,
    on_node: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// By group: who is out on Dogwatch's account, since when.
    out: BTreeMap<&'static str, BTreeMap<&'a str, Timestamp>>,
    report: Report,
}

impl<'a> Court<'a> {
    fn node(&mut self, at: Timestamp, name: &'a str, state: Option<&'a NodeState>) {
        let old = match state {
            Some(state) => self.nodes.insert(name, state),
            None => self.nodes.remove(name),
        };
        let story = self.report.nodes.entry(name.to_owned()).or_default();
        let boot = |state: Option<&NodeState>| {
            state.map(|state| state.boot_id.clone()).unwrap_or_default()
        };
        let (before, after) = (boot(old), boot(state));
        if !before.is_empty() && !after.is_empty() && before != after {
            story.boots += 1;
        }
        let phase = |state: Option<&NodeState>| state.and_then(|state| state.phase);
        if phase(state) == Some(Phase::Rebooting) && phase(old) != Some(Phase::Rebooting) {
            self.rebooted_under(at, name);
        }
        self.in_or_out(at, name, old.or(state), state);
    }

    fn in_or_out(
        &mut self,
        at: Timestamp,
        name: &'a str,
        known: Option<&NodeState>,
        state: Option<&NodeState>,
    ) {
        let Some(group) = known.map(|state| state.group) else {
            return;
        };
        let out = self.out.entry(group).or_default();
        let story = self.report.nodes.entry(name.to_owned()).or_default();
        if !state.is_some_and(is_out) {
            if let Some(since) = out.remove(name) {
                story.out_for += Duration::try_from(at.duration_since(since)).unwrap_or_default();
            }
            return;
        }
        if out
            .insert(name, out.get(name).copied().unwrap_or(at))
            .is_some()
        {
            return;
        }
        story.outs += 1;
        let count = out.len();
        let most = self.report.most_out.entry(group.to_owned()).or_default();
        *most = count.max(*most);
        let limit = self.limits.get(group).copied().unwrap_or(1);
        if count > limit {
            self.report.violations.push(Violation::TooManyOut {
                at,
                group: group.to_owned(),
                nodes: out.keys().map(|name| (*name).to_owned()).collect(),
                limit,
            });
        }
    }

    fn rebooted_under(&mut self, at: Timestamp, node: &str) {
        let there = self
            .on_node
            .get(node)
            .into_iter()
            .flatten()
            .filter_map(|uid| self.pods.get(uid));
        let lost = there.filter(|pod| pod.kin == Kin::Other && !pod.idle);
        self.report
            .violations
            .extend(lost.map(|pod| Violation::RebootedUnder {
                at,
                pod: pod.name.clone(),
                node: node.to_owned(),
            }));
    }

    fn pod(&mut self, at: Timestamp, uid: &'a str, state: Option<&'a PodState>) {
        let Some(state) = state else {
            if let Some(old) = self.pods.remove(uid) {
                self.on_node.entry(&old.node).or_default().remove(uid);
            }
            return;
        };
        let old = self.pods.insert(uid, state);
        self.on_node.entry(&state.node).or_default().insert(uid);
        if state.deleting && old.is_some_and(|old| !old.deleting) {
            self.deleted(at, state);
        }
    }

    fn deleted(&mut self, at: Timestamp, pod: &PodState) {
        let (name, node) = (pod.name.clone(), pod.node.clone());
        let Some(state) = self.nodes.get(pod.node.as_str()) else {
            return;
        };
        // What happens to the pods of a node that has failed is nobody's choice.
        if !state.ready {
            return;
        }
        match (pod.kin, state.phase) {
            (Kin::Other, Some(Phase::Draining)) => self.report.pods_moved += 1,
            (Kin::Other, _) if pod.idle => {}
            (Kin::Other, Some(Phase::Waiting | Phase::Rebooting | Phase::Returning) | None) => {
                self.report.violations.push(Violation::DeletedElsewhere {
                    at,
                    pod: name,
                    node,
                });
            }
            (Kin::Daemon | Kin::Mirror, Some(_)) => {
                self.report.violations.push(Violation::DeletedForNothing {
                    at,
                    pod: name,
                    node,
                });
            }
            (Kin::Daemon | Kin::Mirror, None) => {}
        }
    }
}

/// Out on Dogwatch's account: a reboot of ours is past the lock, and the node does not serve.
fn is_out(state: &NodeState) -> bool {
    let ours = match state.phase {
        Some(Phase::Draining | Phase::Rebooting | Phase::Returning) => true,
        Some(Phase::Waiting) | None => false,
    };
    ours && (state.unschedulable || !state.ready)
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;

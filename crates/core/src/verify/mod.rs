//! Recounts the promises S1, S3, S4, S5 from a history of writes, and S2 and S5 from a controller's
//! log of power commands, without any of the code that made it.
//!
//! **For:** `dogwatch audit` reads the history from an API server's audit log ([`audit`]), and
//! `dogwatch verify-trace` from the decision logs of many processes ([`trace`]). Both give writes in
//! the order of their resourceVersions to one set of rules ([`recount_writes`]).
//! **May touch:** nothing.
//! **Promises:** what cannot be read is an error that names the line. A history that begins in the
//! middle, or that lacks a write, accuses nobody for it: a rule that needs an earlier state is not
//! applied before that state was seen, nor while a write that is not shown may have changed it.

pub mod audit;
mod beginning_rules;
mod history;
mod lease_rules;
mod node_rules;
mod power_rules;
#[cfg(test)]
mod tests;
pub mod trace;
mod write_order;

pub use power_rules::{PowerRecount, recount_power};

pub use history::{
    ClusterWrite, CordonChange, LeaseState, NodeState, WriteSource, WrittenKind, WrittenObject,
};

use std::collections::BTreeMap;
use std::fmt;

use history::ClusterState;

/// A promise that a history broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenRule {
    /// `S1` to `S5`.
    pub promise: &'static str,
    /// What happened, as a sentence.
    pub what: String,
    /// The lines that show it, the earlier ones first.
    pub lines: Vec<WriteSource>,
}

impl fmt::Display for BrokenRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.what)
    }
}

/// The result of a recount.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecountResult {
    /// Writes of Nodes and of Dogwatch's Leases that were judged.
    pub writes: usize,
    /// Writes of an audit log that are not shown, although a later one relied on them, or of which
    /// it is not known whether they were stored.
    pub unseen: usize,
    /// How often a node went out of service.
    pub begun: usize,
    /// How many reboots ended with a new boot id.
    pub rebooted: usize,
    /// The most nodes that were out of service at one time, by group.
    pub most_out: BTreeMap<String, usize>,
    pub broken: Vec<BrokenRule>,
}

/// Recounts a history. The writes may come in any order. Those without a resourceVersion are judged
/// after every write of any file that was not later by its time.
pub fn recount_writes(writes: Vec<ClusterWrite>) -> RecountResult {
    let writes = write_order::order_writes(writes);
    let gaps = write_order::find_gaps(&writes);
    let mut state = ClusterState::default();
    for (write, has_gap) in writes.iter().zip(gaps) {
        let is_unknown = matches!(write.object, WrittenObject::Unknown { .. });
        judge_write(&mut state, write);
        if has_gap || is_unknown {
            state.doubt_object(write.object.object_key());
            state.recount.unseen += usize::from(!write.from_decision_log);
        }
        state.recount.writes += usize::from(!is_unknown);
    }
    state.recount
}

fn judge_write(state: &mut ClusterState, write: &ClusterWrite) {
    match &write.object {
        WrittenObject::Lease { name, after } => {
            lease_rules::judge_lease(state, name, after.as_deref(), write);
        }
        WrittenObject::Node { name, after } => {
            node_rules::judge_node(state, name, after.as_deref(), write);
        }
        WrittenObject::NodeMetadata {
            name,
            after,
            cordon,
        } => node_rules::judge_metadata(state, name, (after, *cordon), write),
        // It changes what is known, and breaks no rule.
        WrittenObject::Unknown { .. } => {}
    }
}

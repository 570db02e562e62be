//! Collects the coordinators' decisions with reasons, and notes that no object shows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dogwatch_coordinator::agent::DecisionSink;
use dogwatch_core::reboot::{RebootDecision, RebootReason, RebootSnapshot};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The decisions of all coordinators. Clones share them.
#[derive(Clone, Default)]
pub struct DecisionLog(Arc<DecisionLogInner>);

#[derive(Default)]
struct DecisionLogInner {
    state: Mutex<DecisionLogState>,
    changed: Notify,
}

#[derive(Default)]
struct DecisionLogState {
    reasons: BTreeMap<String, RebootReason>,
    log: Vec<DecisionEntry>,
}

/// A decision of a coordinator, or a note about it.
#[derive(Debug, Clone)]
pub struct DecisionEntry {
    pub at: Instant,
    pub node: String,
    /// The decision's reason; `None` for a note.
    pub reason: Option<RebootReason>,
    pub text: String,
}

impl DecisionLog {
    /// Returns the sink for one node's coordinator.
    pub fn sink_for_node(&self, node: &str) -> Arc<dyn DecisionSink> {
        Arc::new(NodeDecisionSink {
            node: node.to_owned(),
            decision_log: self.clone(),
        })
    }

    pub fn newest_reason(&self, node: &str) -> Option<RebootReason> {
        self.lock_state().reasons.get(node).copied()
    }

    /// Records an event that no object shows.
    pub fn record_note(&self, node: &str, text: String) {
        self.push_entry(DecisionEntry {
            at: Instant::now(),
            node: node.to_owned(),
            reason: None,
            text,
        });
    }

    pub async fn wait_for_entry(&self) {
        self.0.changed.notified().await;
    }

    /// Returns all new entries, in order.
    pub fn take_entries(&self) -> Vec<DecisionEntry> {
        std::mem::take(&mut self.lock_state().log)
    }

    /// Whether decisions that the timeline has shown may be shown again after this reason.
    pub fn is_new_start(reason: RebootReason) -> bool {
        [
            RebootReason::NoRebootWanted,
            RebootReason::BackingOff,
            RebootReason::Rebooted,
            RebootReason::Rebooting,
        ]
        .contains(&reason)
    }

    fn push_entry(&self, thought: DecisionEntry) {
        self.lock_state().log.push(thought);
        self.0.changed.notify_one();
    }

    fn lock_state(&self) -> std::sync::MutexGuard<'_, DecisionLogState> {
        self.0.state.lock().expect("nothing panics while it thinks")
    }
}

struct NodeDecisionSink {
    node: String,
    decision_log: DecisionLog,
}

impl DecisionSink for NodeDecisionSink {
    fn on_decision(&self, _seen: &RebootSnapshot, decision: &RebootDecision) {
        let reason = decision.cause.reason;
        let before = self
            .decision_log
            .lock_state()
            .reasons
            .insert(self.node.clone(), reason);
        if before != Some(reason) {
            self.decision_log.push_entry(DecisionEntry {
                at: Instant::now(),
                node: self.node.clone(),
                reason: Some(reason),
                text: decision.cause.message.clone(),
            });
        }
    }
}

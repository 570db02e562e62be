//! What the coordinators decide and why, and what else is told besides the objects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dogwatch_coordinator::agent::Watcher;
use dogwatch_core::reboot::{Decision, Seen, reason};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Reasons that pass by themselves, or that the record says as well.
const PASSING: [&str; 20] = [
    reason::IDLE,
    reason::NODE_NOT_SEEN,
    reason::PLANNED,
    reason::ADOPTING,
    reason::LOOKING_AT_POLICIES,
    reason::LOOKING_AT_LOCK,
    reason::LOOKING_AT_GATES,
    reason::ABORTED,
    reason::NOT_OUR_TURN,
    reason::BIDDING,
    reason::SETTLING_BID,
    reason::COUNTING,
    reason::BACKING_OFF,
    reason::DRAINING,
    reason::REBOOTING,
    reason::BOOTED,
    reason::UNCORDONING,
    reason::RELEASING,
    reason::FINISHED,
    reason::TRIGGER_GONE,
];

/// What all coordinators have in mind. Clones are one.
#[derive(Clone, Default)]
pub struct Minds(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    reasons: BTreeMap<String, &'static str>,
    log: Vec<Thought>,
}

/// One thing that a coordinator has in mind, or that happens to it.
#[derive(Debug, Clone)]
pub struct Thought {
    /// Since when.
    pub at: Instant,
    /// Whose node.
    pub node: String,
    /// The decision's reason; `None` for what happens.
    pub reason: Option<&'static str>,
    /// A sentence.
    pub text: String,
}

impl Minds {
    /// One coordinator's watcher.
    pub fn of(&self, node: &str) -> Arc<dyn Watcher> {
        Arc::new(Mind {
            node: node.to_owned(),
            minds: self.clone(),
        })
    }

    /// The newest reason of a node's coordinator.
    pub fn reason(&self, node: &str) -> Option<&'static str> {
        self.state().reasons.get(node).copied()
    }

    /// Something happens that no object shows.
    pub fn note(&self, node: &str, text: String) {
        self.push(Thought {
            at: Instant::now(),
            node: node.to_owned(),
            reason: None,
            text,
        });
    }

    /// Waits for news.
    pub async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Everything new, in order.
    pub fn take(&self) -> Vec<Thought> {
        std::mem::take(&mut self.state().log)
    }

    /// Whether a reason is told by itself.
    pub fn is_passing(reason: &str) -> bool {
        PASSING.contains(&reason)
    }

    /// Whether what was told before may be told again after this.
    pub fn is_new_start(reason: &str) -> bool {
        [
            reason::IDLE,
            reason::BACKING_OFF,
            reason::FINISHED,
            reason::REBOOTING,
        ]
        .contains(&reason)
    }

    fn push(&self, thought: Thought) {
        self.state().log.push(thought);
        self.0.changed.notify_one();
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.state.lock().expect("nothing panics while it thinks")
    }
}

struct Mind {
    node: String,
    minds: Minds,
}

impl Watcher for Mind {
    fn decided(&self, _seen: &Seen, decision: &Decision) {
        let reason = decision.because.reason;
        let before = self.minds.state().reasons.insert(self.node.clone(), reason);
        if before != Some(reason) {
            self.minds.push(Thought {
                at: Instant::now(),
                node: self.node.clone(),
                reason: Some(reason),
                text: decision.because.message.clone(),
            });
        }
    }
}

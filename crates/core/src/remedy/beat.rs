//! Signs of life of a Node: only whether they move means anything. Source: specification §4.1.

use std::time::Duration;

use jiff::Timestamp;

/// A Node's sign of life: the renewal of its Lease in `kube-node-lease`, and the newest
/// `lastHeartbeatTime` of its Ready condition. Only a change of it means anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// The UID of the Node it belongs to.
    pub node_uid: Option<String>,
    /// `spec.renewTime` of the Lease.
    pub renewed: Option<Timestamp>,
    /// `lastHeartbeatTime`.
    pub posted: Option<Timestamp>,
}

/// What was seen of a Node's sign of life, over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beats {
    /// When the first of them was asked for.
    first: Duration,
    /// When the newest answer came that differed from the one before it.
    moved: Option<Duration>,
    /// When the newest was asked for, and what was said.
    newest: (Duration, Beat),
}

impl Beats {
    /// The first one.
    pub fn new(asked: Duration, beat: Beat) -> Self {
        Self {
            first: asked,
            moved: None,
            newest: (asked, beat),
        }
    }

    /// Another one. That of another Node of the same name begins anew: of the two nothing can be compared.
    #[must_use]
    pub fn saw(self, asked: Duration, answered: Duration, beat: Beat) -> Self {
        if beat.node_uid != self.newest.1.node_uid {
            return Self::new(asked, beat);
        }
        // An answer that comes late is an old one.
        if asked < self.newest.0 {
            return self;
        }
        let has_moved = beat != self.newest.1;
        Self {
            first: self.first,
            moved: if has_moved {
                Some(answered)
            } else {
                self.moved
            },
            newest: (asked, beat),
        }
    }

    /// When the first was asked for.
    pub fn first(&self) -> Duration {
        self.first
    }

    /// When the newest was asked for.
    pub fn asked(&self) -> Duration {
        self.newest.0
    }

    /// The newest.
    pub fn newest(&self) -> &Beat {
        &self.newest.1
    }

    /// When it was last seen to move. It was between the question before that answer and the answer.
    pub fn moved(&self) -> Option<Duration> {
        self.moved
    }
}

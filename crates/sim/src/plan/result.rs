//! What a plan comes to.

use std::time::Duration;

use super::Calls;

/// How a simulated rollout went.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// From the first trigger until the last node was back and its lock free.
    pub took: Duration,
    /// Nodes that were rebooted.
    pub rebooted: u32,
    /// The longest time between wanting a reboot and getting the lock.
    pub longest_wait: Stretch,
    /// The median of that time.
    pub median_wait: Duration,
    /// The longest time from getting the lock to giving it back.
    pub longest_out: Stretch,
    /// The most nodes that were out at the same moment, control plane apart.
    pub most_out: u32,
    /// The most control-plane nodes that were out at the same moment.
    pub most_control_plane_out: u32,
    /// How many may be out of the nodes.
    pub budget: u32,
    /// Locks that were handed over to a waiter.
    pub handovers: u64,
    /// The worst case of somebody who came later getting the lock earlier: how much later.
    pub worst_inversion: Duration,
    /// Calls to the API server.
    pub calls: Calls,
    /// Decisions made.
    pub decisions: u64,
}

/// A node's time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stretch {
    /// Which node.
    pub node: String,
    /// How long.
    pub time: Duration,
}

impl Stretch {
    pub(super) fn longer(&mut self, node: &str, time: Duration) {
        if time > self.time {
            *self = Self {
                node: node.to_owned(),
                time,
            };
        }
    }
}

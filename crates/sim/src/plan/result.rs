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
    /// The same for each group, by name.
    pub groups: Vec<GroupOutcome>,
}

/// How it went for one group.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroupOutcome {
    /// Its name: that of the policy that rules it, else `default` or `control-plane`.
    pub group: String,
    /// Its nodes.
    pub nodes: u32,
    /// How many of them may be out.
    pub budget: u32,
    /// The most that were out at the same moment.
    pub most_out: u32,
    /// Those that were rebooted.
    pub rebooted: u32,
    /// From the first trigger of the rollout until its last node was back.
    pub took: Duration,
    /// The longest time between wanting a reboot and getting the lock for it.
    pub longest_wait: Stretch,
    /// The median of that time.
    pub median_wait: Duration,
    /// In how many windows reboots of it began; `None`: its policy has none.
    pub windows: Option<u32>,
    /// Why the rest never got leave, in the words of the decision of one of them.
    pub held_up: Option<String>,
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

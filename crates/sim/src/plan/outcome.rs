//! The result of a plan.

use std::time::Duration;

use jiff::Timestamp;

use super::ApiCallCounts;

#[derive(Debug, Clone, PartialEq)]
pub struct RolloutOutcome {
    /// From the first trigger until the last node was back and its lock released.
    pub took: Duration,
    pub rebooted: u32,
    /// The longest time between trigger and lock.
    pub longest_wait: NodeDuration,
    /// The median time between trigger and lock.
    pub median_wait: Duration,
    /// The longest time between taking and releasing the lock.
    pub longest_out: NodeDuration,
    /// The most worker nodes that were unavailable at the same moment.
    pub most_out: u32,
    /// The most control-plane nodes that were unavailable at the same moment.
    pub most_control_plane_out: u32,
    /// How many worker nodes may be unavailable.
    pub budget: u32,
    /// Locks that a holder handed over to the next in line.
    pub handovers: u64,
    /// The worst case of a node that got the lock before a node with an earlier trigger: the time
    /// between their triggers.
    pub worst_inversion: Duration,
    pub calls: ApiCallCounts,
    pub decisions: u64,
    /// The results of each group, by name.
    pub groups: Vec<GroupOutcome>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroupOutcome {
    /// The name of the group's policy, otherwise `default` or `control-plane`.
    pub group: String,
    pub nodes: u32,
    /// How many of them may be unavailable.
    pub budget: u32,
    /// The most that were unavailable at the same moment.
    pub most_out: u32,
    pub rebooted: u32,
    /// How many are held out of service for the whole rollout, and are not rebooted.
    pub held: u32,
    /// From the first trigger of the rollout until the group's last node was back.
    pub took: Duration,
    /// The longest time between trigger and lock.
    pub longest_wait: NodeDuration,
    /// The median time between trigger and lock.
    pub median_wait: Duration,
    /// In how many windows the group's reboots began; `None`: its policy has no windows.
    pub windows: Option<u32>,
    /// Those windows, the earliest first.
    pub used_windows: Vec<UsedWindow>,
    /// Why the other nodes never began: the message of one node's decision.
    pub held_up: Option<String>,
}

/// A window in which reboots of a group began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedWindow {
    pub first_begin: Timestamp,
    pub last_begin: Timestamp,
    /// When it closes.
    pub until: Timestamp,
    /// How many nodes began.
    pub nodes: u32,
}

impl UsedWindow {
    pub(super) fn starting_with(begin: Timestamp, until: Timestamp) -> Self {
        Self {
            first_begin: begin,
            last_begin: begin,
            until,
            nodes: 0,
        }
    }

    pub(super) fn count_begin(&mut self, begin: Timestamp) {
        self.last_begin = begin;
        self.nodes += 1;
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeDuration {
    pub node: String,
    pub time: Duration,
}

impl NodeDuration {
    pub(super) fn keep_longer(&mut self, node: &str, time: Duration) {
        if time > self.time {
            *self = Self {
                node: node.to_owned(),
                time,
            };
        }
    }
}

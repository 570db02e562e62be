//! Planning a rollout: how long will it take, who waits longest, what does it cost?
//!
//! **For:** `dogwatch simulate`: thousands of nodes in seconds.
//! **May touch:** nothing; time is a number here.
//! **Promises:** every step is what [`dogwatch_core::reboot::decide`] says, taken in by the loop's
//! own [`facts`](dogwatch_coordinator::agent::facts); the same plan and seed give the same bytes.
//! What is not simulated is the API server's own work: an answer takes a fixed time, and the calls
//! are counted instead of made. Budgets that block a drain, volumes, gates and failures are not part of
//! a plan; scenarios on the embedded cluster are for those.

mod calls;
mod machine;
mod queue;
mod result;
mod rollout;
mod slots;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_core::limit::Limit;
use dogwatch_core::name::NodeName;
use dogwatch_core::policy::Policy;
use jiff::Timestamp;

pub use calls::Calls;
pub use result::{GroupOutcome, Outcome, Stretch};
pub use rollout::{run, run_watched};

use crate::seed::Seed;

/// A rollout to plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Nodes without labels of their own, beside the control plane and the `groups`.
    pub nodes: u32,
    /// Nodes with labels, which policies select by.
    pub groups: Vec<NodeGroup>,
    /// What rules them; where it is silent, what stands here does.
    pub policies: Vec<Policy>,
    /// When it begins.
    pub start: Timestamp,
    /// Control-plane nodes; their group reboots one at a time.
    pub control_plane: u32,
    /// How many of the nodes may be out at once.
    pub max_unavailable: Limit,
    /// From the reboot command until the Node is Ready again.
    pub reboot_time: Duration,
    /// How long a drain takes.
    pub drain_time: Duration,
    /// How long the Node must be Ready before it is released.
    pub settle: Duration,
    /// Each node's own times differ from the given ones by up to this many per cent.
    pub spread_percent: u8,
    /// Pods on each node that have to go.
    pub pods_per_node: u32,
    /// Within which time all nodes come to want a reboot.
    pub arrival: Duration,
    /// How long the API server takes to answer.
    pub api_latency: Duration,
    /// Decides everything random.
    pub seed: Seed,
}

/// Nodes that carry the same labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeGroup {
    /// What their names begin with: `NAME-0001` and so on. Part of a Node's name.
    pub name: NodeName,
    /// How many.
    pub count: u32,
    /// Their labels.
    pub labels: BTreeMap<String, String>,
}

impl Plan {
    /// All its nodes.
    pub fn all_nodes(&self) -> u32 {
        let labelled = self.groups.iter().map(|group| group.count);
        self.nodes + self.control_plane + labelled.sum::<u32>()
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            nodes: 100,
            groups: Vec::new(),
            policies: Vec::new(),
            start: Timestamp::UNIX_EPOCH,
            control_plane: 3,
            max_unavailable: Limit::Count(1),
            reboot_time: Duration::from_mins(4),
            drain_time: Duration::from_secs(90),
            settle: Duration::from_secs(30),
            spread_percent: 20,
            pods_per_node: 30,
            arrival: Duration::from_mins(1),
            api_latency: Duration::from_millis(5),
            seed: Seed(1),
        }
    }
}

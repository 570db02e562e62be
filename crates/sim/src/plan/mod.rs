//! Plans a rollout: how long it takes, which node waits longest, and what it costs.
//!
//! **For:** `dogwatch simulate`: thousands of nodes in seconds.
//! **May touch:** nothing; time is a number here.
//! **Promises:** every step comes from [`dogwatch_core::reboot::decide`], and the loop's own
//! [`facts`](dogwatch_coordinator::agent::facts) update its snapshot; the same plan and seed give
//! the same bytes.
//!
//! The API server is not simulated: an answer takes a fixed time, and calls are counted instead of
//! made. Budgets that block a drain, volumes, gates and failures are not part of a plan; use
//! scenarios on the embedded cluster for those.

mod api_calls;
mod event_queue;
mod outcome;
mod planned_node;
mod rollout;
mod slot_leases;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_core::limit::UnavailabilityLimit;
use dogwatch_core::name::NodeName;
use dogwatch_core::policy::Policy;
use dogwatch_kubesim::seed::SimulationSeed;
use jiff::Timestamp;

pub use api_calls::ApiCallCounts;
pub use outcome::{GroupOutcome, NodeDuration, RolloutOutcome};
pub use rollout::{run_plan, run_with_progress};

#[derive(Debug, Clone, PartialEq)]
pub struct RolloutPlan {
    /// Nodes without labels of their own, in addition to the control plane and the `groups`.
    pub nodes: u32,
    /// Nodes with labels by which policies select them.
    pub groups: Vec<NodeGroup>,
    /// The policies; a field that a policy leaves out comes from this plan.
    pub policies: Vec<Policy>,
    pub start: Timestamp,
    /// Control-plane nodes; their group reboots one at a time.
    pub control_plane: u32,
    /// How many worker nodes may be unavailable at once.
    pub max_unavailable: UnavailabilityLimit,
    /// From the reboot command until the Node is Ready again.
    pub reboot_time: Duration,
    pub drain_time: Duration,
    /// How long the Node must be Ready before its lock is released.
    pub settle: Duration,
    /// Each node's own durations differ from the given ones by up to this many per cent.
    pub spread_percent: u8,
    /// Pods on each node that a drain evicts.
    pub pods_per_node: u32,
    /// The time span within which all nodes get their triggers.
    pub arrival: Duration,
    /// How long each API call takes.
    pub api_latency: Duration,
    /// The seed of all random values.
    pub seed: SimulationSeed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeGroup {
    /// Prefix of the nodes' names: `NAME-0001` and so on. Must be valid as part of a Node's name.
    pub name: NodeName,
    pub count: u32,
    pub labels: BTreeMap<String, String>,
}

impl RolloutPlan {
    pub fn count_nodes(&self) -> u32 {
        let labelled = self.groups.iter().map(|group| group.count);
        self.nodes + self.control_plane + labelled.sum::<u32>()
    }
}

impl Default for RolloutPlan {
    fn default() -> Self {
        Self {
            nodes: 100,
            groups: Vec::new(),
            policies: Vec::new(),
            start: Timestamp::UNIX_EPOCH,
            control_plane: 3,
            max_unavailable: UnavailabilityLimit::Count(1),
            reboot_time: Duration::from_mins(4),
            drain_time: Duration::from_secs(90),
            settle: Duration::from_secs(30),
            spread_percent: 20,
            pods_per_node: 30,
            arrival: Duration::from_mins(1),
            api_latency: Duration::from_millis(5),
            seed: SimulationSeed(1),
        }
    }
}

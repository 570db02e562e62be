//! Plans a rollout: how long it takes, which node waits longest, and what it costs.
//!
//! **For:** `dogwatch simulate`: thousands of nodes in seconds; [`LivePlanner`] estimates when the
//! reboots of a real cluster are finished.
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
mod live;
mod outcome;
mod planned_node;
mod rollout;
mod slot_leases;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_core::limit::UnavailabilityLimit;
use dogwatch_core::name::NodeName;
use dogwatch_core::policy::Policy;
use dogwatch_kubesim::seed::SimulationSeed;
use jiff::Timestamp;

pub use api_calls::ApiCallCounts;
pub use live::LivePlanner;
pub use outcome::{GroupOutcome, NodeDuration, RolloutOutcome, UsedWindow};
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
    /// How long jobs that a rule lets finish still run when their node is cordoned; `None`: until
    /// the rule's timeout.
    pub job_time: Option<Duration>,
    /// Nodes that are held out of service for the whole rollout.
    pub holds: BTreeSet<NodeName>,
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

    /// A held node that is not one of the planned nodes.
    pub fn find_unknown_hold(&self) -> Option<&NodeName> {
        let labelled = self.groups.iter();
        let labelled = labelled.map(|group| (group.name.as_str(), group.count));
        let kinds: BTreeMap<&str, u32> = labelled
            .chain([("node", self.nodes), ("control", self.control_plane)])
            .collect();
        let is_planned = |name: &&NodeName| {
            let parts = name.as_str().rsplit_once('-');
            let known = parts.and_then(|(kind, number)| Some((kinds.get(kind)?, number)));
            known.is_some_and(|(count, number)| {
                let number = number.parse().ok().filter(|it| (1..=*count).contains(it));
                number.is_some_and(|it| name.as_str().ends_with(&format!("-{it:04}")))
            })
        };
        self.holds.iter().find(|name| !is_planned(name))
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
            job_time: None,
            holds: BTreeSet::new(),
            settle: Duration::from_secs(30),
            spread_percent: 20,
            pods_per_node: 30,
            arrival: Duration::from_mins(1),
            api_latency: Duration::from_millis(5),
            seed: SimulationSeed(1),
        }
    }
}

//! When reboots that wait or are under way will start and finish.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::Now;
use crate::explain::FleetSnapshot;

/// Makes estimates. The planner does; whoever assembles a program hands it to those who show them.
pub trait EstimateRollout: Send + Sync {
    /// `None`: nothing waits, and nothing is out. May take seconds.
    fn estimate_rollout(&self, fleet: &FleetSnapshot, now: Now) -> Option<FleetEstimate>;
}

/// An estimate by the planner, from many runs with the durations that the fleet has shown so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetEstimate {
    /// When the estimate was made.
    pub at: Timestamp,
    /// When the last node is back, in half of the runs at the latest. Absent if some node never
    /// starts while nothing changes (a pause without an end, a halted policy).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<Timestamp>,
    /// When the last node is back, in nine of ten runs at the latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_finish: Option<Timestamp>,
    /// By group, where somebody waits or is out and the end is known. For metrics; the view has the
    /// times of the nodes.
    #[serde(skip)]
    pub groups: BTreeMap<String, GroupEstimate>,
    /// By the Node's name: nodes that wait or are out of service.
    pub nodes: BTreeMap<String, NodeEstimate>,
    /// What the estimate does not know, one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// When the last node of a group is back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupEstimate {
    /// Median.
    pub finish: Timestamp,
    /// 90th percentile.
    pub latest_finish: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeEstimate {
    /// When its drain starts (median); in the past if it is under way.
    pub start: Timestamp,
    /// 90th percentile.
    pub latest_start: Timestamp,
    /// When it is back in service (median).
    pub finish: Timestamp,
    /// 90th percentile.
    pub latest_finish: Timestamp,
}

//! Builds the view.

use std::sync::Arc;

use super::counts::count_fleet;
use super::groups::{GroupMembers, group_views};
use super::out_nodes::out_nodes;
use super::person_tasks::person_tasks;
use super::recent::recent_outcomes;
use super::sentence::fleet_sentence;
use super::waiting_nodes::waiting_nodes;
use super::{FLEET_VIEW_VERSION, FleetEstimate, FleetView};
use crate::Now;
use crate::explain::{
    FleetSnapshot, FleetStatus, HostRow, RemediationRow, ScheduleRow, fleet_status,
};
use crate::node_reboot::ObservedNodeReboot;
use crate::policy::ClusterPolicies;

/// What was read of the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetViewInput<'a> {
    pub fleet: &'a FleetSnapshot,
    pub hosts: Vec<HostRow>,
    pub remediations: Vec<RemediationRow>,
    pub schedules: Vec<ScheduleRow>,
    /// All NodeReboots, or the open ones.
    pub node_reboots: Vec<Arc<ObservedNodeReboot>>,
    /// `None`: nothing waits or is out, or no estimate was made yet.
    pub estimate: Option<FleetEstimate>,
    /// What could not be read, one sentence each. Unreadable policies are added.
    pub unreadable: Vec<String>,
}

impl<'a> FleetViewInput<'a> {
    /// Nodes, Leases and policies alone.
    pub fn of_fleet(fleet: &'a FleetSnapshot) -> Self {
        Self {
            fleet,
            hosts: Vec::new(),
            remediations: Vec::new(),
            schedules: Vec::new(),
            node_reboots: Vec::new(),
            estimate: None,
            unreadable: Vec::new(),
        }
    }
}

/// The view of the fleet at this time.
pub fn build_fleet_view(input: FleetViewInput<'_>, now: Now) -> FleetView {
    let fleet = input.fleet;
    let FleetStatus {
        nodes,
        locks,
        waiting: waiting_hosts,
        policies,
        ..
    } = fleet_status(fleet, now);
    let members = GroupMembers::of_fleet(fleet);
    let mut unreadable = input.unreadable;
    if let ClusterPolicies::Unreadable { why } = &fleet.policies {
        unreadable.push(format!("the RebootPolicies cannot be read: {why}"));
    }
    let mut view = FleetView {
        version: FLEET_VIEW_VERSION,
        at: now.wall,
        sentence: String::new(),
        counts: count_fleet(fleet, &input.node_reboots),
        needs_person: Vec::new(),
        out: out_nodes(fleet, &nodes),
        waiting: waiting_nodes(fleet, &nodes, now),
        waiting_hosts,
        groups: group_views(fleet, &members, now),
        nodes,
        locks,
        policies,
        hosts: input.hosts,
        remediations: input.remediations,
        schedules: input.schedules,
        recent: recent_outcomes(fleet, now),
        estimate: input.estimate,
        unreadable,
    };
    view.needs_person = person_tasks(fleet, &view, now);
    view.counts.needs_person = view.needs_person.len();
    if view.counts.out + view.counts.waiting == 0 {
        view.estimate = None;
    }
    view.sentence = fleet_sentence(fleet, &view, now);
    view
}

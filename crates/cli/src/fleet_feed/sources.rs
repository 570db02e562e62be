//! What the view is made from: watches of every kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::Now;
use dogwatch_core::explain::{
    FleetSnapshot, ObservedController, RemediationReportInput, RemediationRow, remediation_rows,
    schedule_rows,
};
use dogwatch_core::node_reboot::ObservedNodeReboot;
use dogwatch_core::power::{HostName, HostSnapshot};
use dogwatch_core::report::{FleetEstimate, FleetView, FleetViewInput, build_fleet_view};
use dogwatch_core::schedule::{Schedule, ScheduleName};
use dogwatch_k8s::Error;
use dogwatch_k8s::fleet::{
    FleetClient, FleetHostsWatch, FleetNodeRebootsWatch, FleetSchedulesWatch, FleetWatch,
    NodesByHost, remediations_of_watches,
};
use dogwatch_k8s::remediation::RemediationWatch;

use crate::command::status::hosts::build_host_rows;

pub(super) const NOT_READ_YET: &str = "the Nodes and Leases have not been read yet";

const FLEET: &str = "the Nodes and Leases";
const HOSTS: &str = "the BareMetalHosts";
const SCHEDULES: &str = "the RebootSchedules";
const NODE_REBOOTS: &str = "the NodeReboots";

pub struct FeedSources {
    fleet: FleetWatch,
    hosts: FleetHostsWatch,
    schedules: FleetSchedulesWatch,
    node_reboots: FleetNodeRebootsWatch,
    remediations: RemediationWatch,
    /// The last error of a watch, by what it reads.
    errors: BTreeMap<&'static str, String>,
}

/// A copy of everything that was read; the view is made from it on another thread.
pub struct FeedSnapshot {
    pub(super) fleet: FleetSnapshot,
    hosts: BTreeMap<HostName, HostSnapshot>,
    schedules: BTreeMap<ScheduleName, Schedule>,
    node_reboots: Vec<Arc<ObservedNodeReboot>>,
    remediations: Option<RemediationReportInput>,
    unreadable: Vec<String>,
}

impl FeedSources {
    /// How errors name the watches of Nodes and Leases.
    pub const FLEET: &str = FLEET;

    /// Sends nothing before the first change is awaited.
    pub fn new(client: &FleetClient) -> Self {
        Self {
            fleet: client.watch_fleet(),
            hosts: client.watch_hosts_if_installed(),
            schedules: client.watch_schedules_if_installed(),
            node_reboots: client.watch_node_reboots_if_installed(),
            remediations: client.watch_remediations(),
            errors: BTreeMap::new(),
        }
    }

    /// Returns at a change, or with what could not be watched and the error, which is kept as well.
    /// Cancel-safe.
    pub async fn wait_for_change(&mut self) -> Result<(), (&'static str, Error)> {
        let (what, result) = tokio::select! {
            changed = self.fleet.wait_for_change() => (FLEET, changed),
            changed = self.hosts.wait_for_change() => (HOSTS, changed),
            changed = self.schedules.wait_for_change() => (SCHEDULES, changed),
            changed = self.node_reboots.wait_for_change() => (NODE_REBOOTS, changed),
            () = self.remediations.wait_for_change() => return Ok(()),
        };
        if let Err(error) = &result {
            self.errors.insert(what, error.error_chain());
        }
        result.map_err(|error| (what, error))
    }

    /// Whether some watch is being retried, so that its success would be no event.
    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Whether every watch has its first list, or has failed.
    pub fn has_first_lists(&self) -> bool {
        let is_known = [
            (FLEET, self.fleet.is_synced()),
            (HOSTS, self.hosts.current_hosts().is_some()),
            (SCHEDULES, self.schedules.current_schedules().is_some()),
            (NODE_REBOOTS, self.node_reboots.is_synced()),
        ];
        let mut is_known = is_known.into_iter();
        is_known.all(|(what, is_known)| is_known || self.errors.contains_key(what))
    }

    /// The Nodes, Leases and policies as they are known.
    pub fn current_fleet(&self) -> Option<FleetSnapshot> {
        self.fleet.current_fleet()
    }

    /// Copies what is known now. The hosts of a cluster without any cost nothing.
    pub fn take_snapshot(&mut self) -> FeedSnapshot {
        self.forget_past_errors();
        let known = self.fleet.current_fleet();
        let hosts = self.hosts.current_hosts().cloned().unwrap_or_default();
        // Without a host there is no remediation.
        let remediations = (!hosts.is_empty())
            .then(|| {
                let (fleet, hosts) = (&self.fleet, &self.hosts);
                let controller = known.as_ref().map(|known| known.controller.clone());
                let controller = controller.unwrap_or(ObservedController::Unknown);
                remediations_of_watches(&self.remediations, fleet, hosts, controller)
            })
            .flatten();
        FeedSnapshot {
            unreadable: self.list_unreadable(known.is_some(), !hosts.is_empty()),
            fleet: known.unwrap_or_default(),
            schedules: self.known_schedules(),
            node_reboots: self.node_reboots.current_reboots(),
            hosts,
            remediations,
        }
    }

    fn known_schedules(&self) -> BTreeMap<ScheduleName, Schedule> {
        let known = self.schedules.current_schedules();
        known.cloned().unwrap_or_default()
    }

    fn forget_past_errors(&mut self) {
        let connected = [
            (FLEET, self.fleet.is_connected()),
            (HOSTS, self.hosts.is_connected()),
            (SCHEDULES, self.schedules.is_connected()),
            (NODE_REBOOTS, self.node_reboots.is_connected()),
        ];
        let open = connected.into_iter().filter(|(_, is_open)| *is_open);
        for (what, _) in open {
            self.errors.remove(what);
        }
    }

    fn list_unreadable(&self, is_fleet_known: bool, has_hosts: bool) -> Vec<String> {
        let mut told: Vec<String> = self.errors.iter().map(describe_error).collect();
        if !is_fleet_known && !self.errors.contains_key(FLEET) {
            told.push(NOT_READ_YET.to_owned());
        }
        let policies = self.fleet.policy_error();
        told.extend(policies.map(|error| describe_error((&"the RebootPolicies", error))));
        if has_hosts {
            told.extend(self.remediations.present_errors().map(|(kind, error)| {
                format!("{kind} cannot be watched, so that remediations may be missing: {error}")
            }));
        }
        told
    }
}

fn describe_error((what, error): (&&str, impl AsRef<str>)) -> String {
    let error = error.as_ref();
    format!("{what} cannot be watched, and what is shown of them may be outdated: {error}")
}

impl FeedSnapshot {
    pub(super) fn build_view(&self, estimate: Option<FleetEstimate>, now: Now) -> FleetView {
        self.build_view_with(self.remediation_rows(now), estimate, now)
    }

    /// The view with the remediations of `dogwatch status`: only those under way.
    pub fn build_status_view(&self, estimate: Option<FleetEstimate>, now: Now) -> FleetView {
        let mut remediations = self.remediation_rows(now);
        remediations.retain(|row| row.under_way);
        self.build_view_with(remediations, estimate, now)
    }

    fn remediation_rows(&self, now: Now) -> Vec<RemediationRow> {
        let input = self.remediations.as_ref();
        input.map_or_else(Vec::new, |input| remediation_rows(input, now))
    }

    fn build_view_with(
        &self,
        remediations: Vec<RemediationRow>,
        estimate: Option<FleetEstimate>,
        now: Now,
    ) -> FleetView {
        let nodes = if self.hosts.is_empty() {
            NodesByHost::default()
        } else {
            NodesByHost::of_nodes(self.fleet.iter_nodes())
        };
        let input = FleetViewInput {
            fleet: &self.fleet,
            hosts: build_host_rows(self.hosts.values(), &nodes),
            remediations,
            schedules: schedule_rows(self.schedules.values(), now),
            node_reboots: self.node_reboots.clone(),
            estimate,
            unreadable: self.unreadable.clone(),
        };
        build_fleet_view(input, now)
    }
}

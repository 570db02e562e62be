//! Watches the part of the cluster that a status of one part shows.

use std::collections::BTreeMap;

use dogwatch_core::explain::{self, FleetSnapshot, FleetStatus, ObservedController, schedule_rows};
use dogwatch_k8s::Error;
use dogwatch_k8s::fleet::{
    FleetHostsWatch, FleetSchedulesWatch, FleetWatch, NodesByHost, remediations_of_watches,
};
use dogwatch_k8s::remediation::RemediationWatch;

use super::{StatusPart, StatusScope, filter_status, hosts, remediations};
use crate::cluster::{ConnectedCluster, current_time};

const FLEET: &str = "watch Nodes and Leases";
const HOSTS: &str = "watch BareMetalHosts";
const SCHEDULES: &str = "watch RebootSchedules";

/// Holds only the watches that the scope needs.
pub struct WatchedStatus {
    scope: StatusScope,
    fleet: Option<FleetWatch>,
    hosts: Option<FleetHostsWatch>,
    schedules: Option<FleetSchedulesWatch>,
    /// Needs the watches of Nodes and hosts as well.
    remediations: Option<RemediationWatch>,
    /// Which Node runs on which host, as read when the first hosts came.
    nodes_of_hosts: Option<NodesByHost>,
    /// The last error of a watch, by what it does.
    errors: BTreeMap<&'static str, String>,
}

impl WatchedStatus {
    /// Sends no request yet.
    pub fn new(connected: &ConnectedCluster, scope: StatusScope) -> Self {
        let with_remedies = scope.includes_part(StatusPart::Remediations);
        let namespace = scope.namespace.as_deref();
        // Links of remediations cross namespaces.
        let of_hosts = namespace.filter(|_| !with_remedies);
        Self {
            fleet: (scope.includes_fleet() || with_remedies).then(|| connected.fleet.watch_fleet()),
            hosts: (scope.includes_part(StatusPart::Hosts) || with_remedies)
                .then(|| connected.fleet.watch_hosts(of_hosts, None)),
            remediations: with_remedies.then(|| connected.fleet.watch_remediations()),
            schedules: scope
                .includes_part(StatusPart::Schedules)
                .then(|| connected.fleet.watch_schedules(namespace)),
            nodes_of_hosts: None,
            errors: BTreeMap::new(),
            scope,
        }
    }

    /// Returns at a change, or with what could not be watched and the error, which is kept as well.
    pub async fn wait_for_change(&mut self) -> Result<(), (&'static str, Error)> {
        let (what, changed) = tokio::select! {
            changed = wait_for_fleet(self.fleet.as_mut()) => (FLEET, changed),
            changed = wait_for_hosts(self.hosts.as_mut()) => (HOSTS, changed),
            changed = wait_for_schedules(self.schedules.as_mut()) => (SCHEDULES, changed),
            () = wait_for_remediations(self.remediations.as_mut()) => return Ok(()),
        };
        if let Err(error) = &changed {
            self.errors.insert(what, error.error_chain());
        }
        changed.map_err(|error| (what, error))
    }

    /// Whether some watch is being retried, so that its success would be no event.
    pub fn has_errors(&self) -> bool {
        let remediations = self.remediations.as_ref();
        let is_broken = remediations.is_some_and(|watch| watch.present_errors().next().is_some());
        is_broken || !self.errors.is_empty()
    }

    /// What cannot be watched now, one sentence each.
    pub fn list_unreadable(&mut self) -> Vec<String> {
        let connected = [
            (FLEET, self.fleet.as_ref().map(FleetWatch::is_connected)),
            (
                HOSTS,
                self.hosts.as_ref().map(FleetHostsWatch::is_connected),
            ),
            (
                SCHEDULES,
                self.schedules
                    .as_ref()
                    .map(FleetSchedulesWatch::is_connected),
            ),
        ];
        for (what, is_connected) in connected {
            if is_connected == Some(true) {
                self.errors.remove(what);
            }
        }
        let errors = self.errors.iter();
        let errors = errors.map(|(what, error)| {
            format!("cannot {what}, so that what is shown may be outdated: {error}")
        });
        let remediations = self.remediations.iter();
        let remediations = remediations.flat_map(RemediationWatch::present_errors);
        let remediations = remediations.map(|(kind, error)| {
            format!("{kind} cannot be watched, so that remediations may be missing: {error}")
        });
        errors.chain(remediations).collect()
    }

    /// The Nodes, Leases and policies as they are known.
    pub fn current_fleet(&self) -> Option<FleetSnapshot> {
        self.fleet.as_ref()?.current_fleet()
    }

    /// `None` until every watch has its first list.
    pub async fn current_status(&mut self, connected: &ConnectedCluster) -> Option<FleetStatus> {
        let fleet = match &self.fleet {
            Some(watch) => watch.current_fleet()?,
            None => FleetSnapshot::default(),
        };
        let mut status = filter_status(explain::fleet_status(&fleet, current_time()), &self.scope);
        if let Some(watch) = self
            .hosts
            .as_ref()
            .filter(|_| self.scope.includes_part(StatusPart::Hosts))
        {
            let seen = watch.current_hosts()?;
            if self.nodes_of_hosts.is_none() && !seen.is_empty() {
                self.nodes_of_hosts = Some(hosts::read_nodes_of_hosts(connected).await);
            }
            let carried = self.nodes_of_hosts.as_ref();
            status.hosts =
                hosts::build_host_rows(seen.values(), carried.unwrap_or(&NodesByHost::default()));
        }
        if let Some(watch) = &self.schedules {
            status.schedules = schedule_rows(watch.current_schedules()?.values(), current_time());
        }
        if self.remediations.is_some() {
            let view = self.remediation_input()?;
            status.remediations = remediations::build_remediation_rows(&view, &self.scope);
        }
        Some(status)
    }

    fn remediation_input(&self) -> Option<explain::RemediationReportInput> {
        let (fleet, hosts) = (self.fleet.as_ref()?, self.hosts.as_ref()?);
        remediations_of_watches(
            self.remediations.as_ref()?,
            fleet,
            hosts,
            ObservedController::Unknown,
        )
    }
}

async fn wait_for_remediations(watch: Option<&mut RemediationWatch>) {
    match watch {
        Some(watch) => watch.wait_for_change().await,
        None => std::future::pending().await,
    }
}

async fn wait_for_fleet(watch: Option<&mut FleetWatch>) -> Result<(), Error> {
    match watch {
        Some(watch) => watch.wait_for_change().await,
        None => std::future::pending().await,
    }
}

async fn wait_for_hosts(watch: Option<&mut FleetHostsWatch>) -> Result<(), Error> {
    match watch {
        Some(watch) => watch.wait_for_change().await,
        None => std::future::pending().await,
    }
}

async fn wait_for_schedules(watch: Option<&mut FleetSchedulesWatch>) -> Result<(), Error> {
    match watch {
        Some(watch) => watch.wait_for_change().await,
        None => std::future::pending().await,
    }
}

//! Reads everything that remediations are explained from: Machines, hosts, Nodes, requests and
//! Leases.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::explain::{FleetSnapshot, ObservedController, RemediationReportInput};
use dogwatch_core::lock::HolderId;
use dogwatch_core::name::GroupName;
use dogwatch_core::power::HostSnapshot;
use dogwatch_core::remediation::RemediationSnapshot;

use super::read::RemediationLeases;
use super::{FleetClient, FleetHostsWatch, FleetWatch, HostsFound};
use crate::remediation::{self, RemediationWatch};
use crate::{ApiErrorKind, Error};

/// How often a request is sent to an overloaded API server.
const MAX_TRIES: u32 = 5;
/// Pause between tries if the API server names none.
const DEFAULT_RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Limit of the pause, whatever the API server asks for: a person is waiting.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq)]
pub enum RemediationsFound {
    /// All objects, not only those of one remediation.
    There(Box<RemediationReportInput>),
    /// The kind BareMetalHost is not installed, so nothing can be fenced.
    NoKind,
}

impl FleetClient {
    /// Reads all namespaces, because objects refer to objects in other namespaces.
    ///
    /// # Errors
    /// When one part cannot be read: an explanation from the rest would be wrong.
    pub async fn read_remediations(&self) -> Result<RemediationsFound, Error> {
        let mut tries = 1;
        loop {
            let found = self.read_remediations_once().await;
            match found.as_ref().map_err(Error::kind) {
                // The API server answers so for a moment after a kind is installed; kubectl waits
                // as well.
                Err(ApiErrorKind::Throttled { after }) if tries < MAX_TRIES => {
                    tokio::time::sleep(after.unwrap_or(DEFAULT_RETRY_PAUSE).min(MAX_RETRY_PAUSE))
                        .await;
                    tries += 1;
                }
                Ok(_) | Err(_) => return found,
            }
        }
    }

    async fn read_remediations_once(&self) -> Result<RemediationsFound, Error> {
        let hosts = match self.list_hosts(None).await? {
            HostsFound::Hosts(hosts) => hosts,
            HostsFound::NoKind => return Ok(RemediationsFound::NoKind),
        };
        // The future of four lists is too large for the stack.
        let seen = Box::pin(remediation::read_remediation_objects(
            &self.client,
            &self.namespace,
        ));
        let (seen, (fleet, leases)) = futures::try_join!(seen, self.read_fleet_and_leases())?;
        let controller = self
            .read_controller()
            .await
            .unwrap_or(ObservedController::Unknown);
        let view = build_view(&seen, &fleet, leases, &hosts, controller);
        Ok(RemediationsFound::There(Box::new(view)))
    }

    /// Watches Machines and requests. Sends nothing before the first change is awaited.
    pub fn watch_remediations(&self) -> RemediationWatch {
        // A single watcher needs no jitter.
        RemediationWatch::new(self.client.clone(), None, || 0.5)
    }
}

/// The same data from three watches; `None` until all of it has arrived.
pub fn remediations_of_watches(
    remedy: &RemediationWatch,
    fleet: &FleetWatch,
    hosts: &FleetHostsWatch,
    controller: ObservedController,
) -> Option<RemediationReportInput> {
    let seen = remedy.current_view();
    let all = fleet.current_fleet().filter(|_| seen.synced)?;
    let hosts: Vec<HostSnapshot> = hosts.current_hosts()?.values().cloned().collect();
    Some(build_view(
        seen,
        &all,
        fleet.remediation_leases(),
        &hosts,
        controller,
    ))
}

fn build_view(
    seen: &remediation::RemediationWatchView,
    fleet: &FleetSnapshot,
    leases: RemediationLeases,
    hosts: &[HostSnapshot],
    controller: ObservedController,
) -> RemediationReportInput {
    let nodes = fleet.iter_nodes();
    let hosts = hosts.iter();
    RemediationReportInput {
        snapshot: RemediationSnapshot {
            machines: seen.machines.clone(),
            infra: seen.infra.clone(),
            requests: seen.requests.clone(),
            paused_clusters: seen.paused_clusters.clone(),
            hosts: hosts
                .map(|it| (it.name.clone(), Arc::new(it.clone())))
                .collect(),
            nodes: nodes
                .map(|it| (it.name.clone(), Arc::new(it.clone())))
                .collect(),
            leases,
            backups: seen.backups.clone(),
            // Commands read no other cluster.
            workload: None,
            synced: seen.synced,
        },
        policies: fleet.policies.clone(),
        control_plane_lock: control_plane_lock_holder(fleet),
        controller,
    }
}

/// Who holds a slot of the group `control-plane`: for a Node, its name.
fn control_plane_lock_holder(fleet: &FleetSnapshot) -> Option<String> {
    let group = GroupName::control_plane_group();
    let mut slots = fleet.leases.iter().filter(|row| row.group == group);
    let holder = slots.find_map(|row| row.lease.holder.as_ref())?;
    let mut nodes = fleet.iter_nodes();
    let node = nodes.find(|node| HolderId::for_node(&node.name) == *holder);
    Some(node.map_or_else(|| holder.to_string(), |node| node.name.to_string()))
}

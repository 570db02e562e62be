//! What remediations are explained from: Machines, hosts, Nodes, requests and Leases together.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::explain::{ControllerSeen, Fleet, RemedyView};
use dogwatch_core::lock::HolderId;
use dogwatch_core::name::GroupName;
use dogwatch_core::power::Host;
use dogwatch_core::remedy::World;

use super::read::RemedyLeases;
use super::{FleetClient, FleetWatch, HostsFound, HostsWatch};
use crate::remedy::{self, RemedyWatch};
use crate::{Error, Kind};

/// How often a busy API server is asked.
const TRIES: u32 = 5;
/// How long is waited where it does not say.
const SOON: Duration = Duration::from_secs(1);
/// No longer than this, whatever it says: a person waits.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a look for remediations found.
#[derive(Debug, Clone, PartialEq)]
pub enum RemediesFound {
    /// Everything, whoever is concerned.
    There(Box<RemedyView>),
    /// The kind BareMetalHost is not installed: there is nothing that could be fenced.
    NoKind,
}

impl FleetClient {
    /// Everything that remediations are explained from, in all namespaces: links cross them.
    ///
    /// # Errors
    /// When a part of it is not known: half of it would be explained wrongly.
    pub async fn remedies(&self) -> Result<RemediesFound, Error> {
        let mut tries = 1;
        loop {
            let found = self.remedies_now().await;
            match found.as_ref().map_err(Error::kind) {
                // A kind that was just installed answers so for a moment; kubectl waits as well.
                Err(Kind::Throttled { after }) if tries < TRIES => {
                    tokio::time::sleep(after.unwrap_or(SOON).min(PATIENCE)).await;
                    tries += 1;
                }
                Ok(_) | Err(_) => return found,
            }
        }
    }

    async fn remedies_now(&self) -> Result<RemediesFound, Error> {
        let hosts = match self.hosts(None).await? {
            HostsFound::Hosts(hosts) => hosts,
            HostsFound::NoKind => return Ok(RemediesFound::NoKind),
        };
        // Four lists at once are much to carry around.
        let seen = Box::pin(remedy::everything(&self.client, &self.namespace));
        let (seen, (fleet, leases)) = futures::try_join!(seen, self.read_whole())?;
        let controller = self.controller().await.unwrap_or(ControllerSeen::Unknown);
        let view = view(&seen, &fleet, leases, &hosts, controller);
        Ok(RemediesFound::There(Box::new(view)))
    }

    /// Keeps Machines and requests in sight. Nothing is sent before it is asked what has changed.
    pub fn watch_remedies(&self) -> RemedyWatch {
        // One person looks: pauses need no spreading.
        RemedyWatch::new(self.client.clone(), None, || 0.5)
    }
}

/// The same as three watches show it; `None` until all of it has come.
pub fn remedies_seen(
    remedy: &RemedyWatch,
    fleet: &FleetWatch,
    hosts: &HostsWatch,
    controller: ControllerSeen,
) -> Option<RemedyView> {
    let seen = remedy.view();
    let all = fleet.fleet().filter(|_| seen.synced)?;
    let hosts: Vec<Host> = hosts.hosts()?.values().cloned().collect();
    Some(view(seen, &all, fleet.remedies(), &hosts, controller))
}

fn view(
    seen: &remedy::RemedyView,
    fleet: &Fleet,
    leases: RemedyLeases,
    hosts: &[Host],
    controller: ControllerSeen,
) -> RemedyView {
    let nodes = fleet.nodes.iter();
    let hosts = hosts.iter();
    RemedyView {
        world: World {
            machines: seen.machines.clone(),
            infra: seen.infra.clone(),
            requests: seen.requests.clone(),
            hosts: hosts
                .map(|it| (it.name.clone(), Arc::new(it.clone())))
                .collect(),
            nodes: nodes
                .map(|it| (it.name.clone(), Arc::new(it.clone())))
                .collect(),
            leases,
            backups: seen.backups.clone(),
            synced: seen.synced,
        },
        policies: fleet.policies.clone(),
        control_plane_lock: control_plane_lock(fleet),
        controller,
    }
}

/// Who holds a slot of the control plane's: a Node by its name.
fn control_plane_lock(fleet: &Fleet) -> Option<String> {
    let group = GroupName::control_plane();
    let mut slots = fleet.leases.iter().filter(|row| row.group == group);
    let holder = slots.find_map(|row| row.lease.holder.as_ref())?;
    let mut nodes = fleet.nodes.iter();
    let node = nodes.find(|node| HolderId::node(&node.name) == *holder);
    Some(node.map_or_else(|| holder.to_string(), |node| node.name.to_string()))
}

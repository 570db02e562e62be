//! Reads who runs the healer.

use dogwatch_api::lease;
use dogwatch_core::explain::ObservedHealer;
use dogwatch_core::healer::ObservedPresence;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt as _;
use kube::api::ListParams;

use super::FleetClient;
use super::hosts::observed_controller;
use crate::error::Error;
use crate::lock::list_leases;

impl FleetClient {
    /// The leader of the controllers, since when it leads, and the replicas of the lock API. One
    /// list.
    pub async fn read_healer(&self) -> Result<ObservedHealer, Error> {
        let leases = list_leases(&self.lease_api(), ListParams::default()).await?;
        let leader = leases
            .iter()
            .find(|it| it.name_any() == lease::CONTROLLER_LEADER);
        let spec = leader.and_then(|leader| leader.spec.as_ref());
        let since = spec.and_then(|spec| spec.acquire_time.as_ref());
        Ok(ObservedHealer {
            controller: observed_controller(leader),
            since: since.map(|time| time.0),
            presences: leases.iter().filter_map(presence_of_lease).collect(),
        })
    }
}

/// `None` if the Lease is not that of a lock API replica; else the replica and its last renewal.
fn presence_of_lease(lease: &Lease) -> Option<(ObservedPresence, Option<Timestamp>)> {
    let name = lease.name_any();
    let process = lease::process_of_presence(&name)?.to_owned();
    let renewed = lease
        .spec
        .as_ref()
        .and_then(|spec| spec.renew_time.as_ref());
    let renewed = renewed.map(|time| time.0);
    let seen = ObservedPresence {
        process,
        uid: lease.uid().unwrap_or_default(),
        resource_version: lease.resource_version().unwrap_or_default(),
        name,
    };
    Some((seen, renewed))
}

//! Who heals, for people.

use dogwatch_api::lease;
use dogwatch_core::explain::HealerSeen;
use dogwatch_core::heal::PresenceSeen;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt as _;
use kube::api::ListParams;

use super::FleetClient;
use super::hosts::controller_seen;
use crate::error::Error;
use crate::lock::list_leases;

impl FleetClient {
    /// Who leads the controllers, since when, and which replicas of the lock API there are: one list.
    pub async fn healer(&self) -> Result<HealerSeen, Error> {
        let leases = list_leases(&self.leases(), ListParams::default()).await?;
        let leader = leases.iter().find(|it| it.name_any() == lease::LEADER);
        let spec = leader.and_then(|leader| leader.spec.as_ref());
        let since = spec.and_then(|spec| spec.acquire_time.as_ref());
        Ok(HealerSeen {
            controller: controller_seen(leader),
            since: since.map(|time| time.0),
            presences: leases.iter().filter_map(presence).collect(),
        })
    }
}

/// A replica of the lock API, if it is one, and when it last renewed its presence.
fn presence(lease: &Lease) -> Option<(PresenceSeen, Option<Timestamp>)> {
    let name = lease.name_any();
    let process = lease::process_of(&name)?.to_owned();
    let renewed = lease
        .spec
        .as_ref()
        .and_then(|spec| spec.renew_time.as_ref());
    let renewed = renewed.map(|time| time.0);
    let seen = PresenceSeen {
        process,
        uid: lease.uid().unwrap_or_default(),
        resource_version: lease.resource_version().unwrap_or_default(),
        name,
    };
    Some((seen, renewed))
}

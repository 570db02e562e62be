//! Reads the Leases of metal3's own controllers.

use std::time::Duration;

use dogwatch_api::bare_metal_host::METAL3_LEADER_LEASE;
use dogwatch_core::power::Metal3LeaderLease;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, ResourceExt as _};
use tokio::time::Instant;

use crate::error::{Error, with_timeout};
use crate::readable_dates::ReadableApi as _;
use crate::watch::ObjectSelection;

/// The time of the request, and its answer.
pub(super) type LeaderLeasesRead = (Duration, Result<Vec<Metal3LeaderLease>, Error>);

/// These Leases have the same name in every namespace.
pub(super) fn leader_lease_selection() -> ObjectSelection {
    ObjectSelection::by_fields(format!("metadata.name={METAL3_LEADER_LEASE}"))
}

pub(super) fn list_leader_leases(
    client: Client,
    began: Instant,
) -> BoxFuture<'static, LeaderLeasesRead> {
    async move {
        let asked = began.elapsed();
        let leases: Api<Lease> = Api::all(client);
        let params = leader_lease_selection().list_params();
        let answer = with_timeout(leases.list_readable(&params)).await;
        let all = answer.map(|list| list.items.iter().map(parse_leader_lease).collect());
        (asked, all)
    }
    .boxed()
}

pub(super) fn parse_leader_lease(lease: &Lease) -> Metal3LeaderLease {
    /// client-go's default for leader election.
    const DEFAULT_LEASE_DURATION: Duration = Duration::from_secs(15);
    let spec = lease.spec.clone().unwrap_or_default();
    let seconds = spec.lease_duration_seconds.map(u64::try_from);
    Metal3LeaderLease {
        namespace: lease.namespace().unwrap_or_default(),
        holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
        renewed: spec.renew_time.map(|time| time.0),
        length: seconds
            .and_then(Result::ok)
            .map_or(DEFAULT_LEASE_DURATION, Duration::from_secs),
    }
}

//! The Leases of metal3's own controllers.

use std::time::Duration;

use dogwatch_api::bare_metal_host::OPERATOR_LEASE;
use dogwatch_core::power::OperatorLease;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, ResourceExt as _};
use tokio::time::Instant;

use crate::error::{Error, ask};
use crate::watch::Selection;

/// When it was asked, and the answer.
pub(super) type Looked = (Duration, Result<Vec<OperatorLease>, Error>);

/// They have one name, in whatever namespace.
pub(super) fn leaders() -> Selection {
    Selection::fields(format!("metadata.name={OPERATOR_LEASE}"))
}

/// Lists them afresh.
pub(super) fn look(client: Client, began: Instant) -> BoxFuture<'static, Looked> {
    async move {
        let asked = began.elapsed();
        let leases: Api<Lease> = Api::all(client);
        let params = leaders().list_params();
        let answer = ask(leases.list(&params)).await;
        let all = answer.map(|list| list.items.iter().map(operator_lease).collect());
        (asked, all)
    }
    .boxed()
}

/// What is kept of one.
pub(super) fn operator_lease(lease: &Lease) -> OperatorLease {
    /// What client-go's leaders use, unless they are told.
    const USUAL: Duration = Duration::from_secs(15);
    let spec = lease.spec.clone().unwrap_or_default();
    let seconds = spec.lease_duration_seconds.map(u64::try_from);
    OperatorLease {
        namespace: lease.namespace().unwrap_or_default(),
        holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
        renewed: spec.renew_time.map(|time| time.0),
        length: seconds
            .and_then(Result::ok)
            .map_or(USUAL, Duration::from_secs),
    }
}

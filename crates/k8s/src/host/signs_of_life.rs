//! Reads the heartbeats of the Nodes that a host carries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::power::{HostSnapshot, KubeletLease, KubeletLeases};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

use super::HostClient;
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::readable_dates::ReadableApi as _;
use crate::remediation::{NODE_LEASE_NAMESPACE, read_hosted_nodes};

impl HostClient {
    /// The Leases of the Nodes that this host carries, by every known link. The result names what
    /// we may not read.
    ///
    /// # Errors
    /// When a request fails.
    pub async fn read_signs_of_life(
        &self,
        host: &Arc<HostSnapshot>,
    ) -> Result<KubeletLeases, Error> {
        let carried = read_hosted_nodes(&self.client, host, self.has_workload_clusters).await?;
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), NODE_LEASE_NAMESPACE);
        let mut signs = KubeletLeases {
            leases: BTreeMap::new(),
            unread: carried.unread,
        };
        for node in carried.nodes {
            match with_timeout(leases.get_readable_opt(node.as_str())).await {
                Ok(lease) => {
                    signs.leases.insert(node, node_lease(lease.as_ref()));
                }
                Err(error) if error.kind() == ApiErrorKind::Forbidden => {
                    signs.unread = Some(error.error_chain());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(signs)
    }
}

fn node_lease(lease: Option<&Lease>) -> KubeletLease {
    let spec = lease.and_then(|lease| lease.spec.as_ref());
    let lasts = spec.and_then(|spec| u64::try_from(spec.lease_duration_seconds?).ok());
    KubeletLease {
        renewed: spec.and_then(|spec| spec.renew_time.as_ref().map(|time| time.0)),
        lasts: lasts.map(Duration::from_secs),
    }
}

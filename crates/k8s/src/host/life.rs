//! The signs of life of the Nodes that a host carries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::power::{Host, NodeLease, SignsOfLife};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

use super::HostClient;
use crate::error::{Error, Kind, ask};
use crate::remedy::{NODE_LEASES, carried};

impl HostClient {
    /// The Leases of the Nodes that this host carries, by every link that there is. What we may not read is said in
    /// the answer.
    ///
    /// # Errors
    /// When there is no answer to go by.
    pub async fn signs_of_life(&self, host: &Arc<Host>) -> Result<SignsOfLife, Error> {
        let carried = carried(&self.client, host).await?;
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), NODE_LEASES);
        let mut signs = SignsOfLife {
            leases: BTreeMap::new(),
            unread: carried.unread,
        };
        for node in carried.nodes {
            match ask(leases.get_opt(node.as_str())).await {
                Ok(lease) => {
                    signs.leases.insert(node, node_lease(lease.as_ref()));
                }
                Err(error) if error.kind() == Kind::Forbidden => {
                    signs.unread = Some(error.in_words());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(signs)
    }
}

fn node_lease(lease: Option<&Lease>) -> NodeLease {
    let spec = lease.and_then(|lease| lease.spec.as_ref());
    let lasts = spec.and_then(|spec| u64::try_from(spec.lease_duration_seconds?).ok());
    NodeLease {
        renewed: spec.and_then(|spec| spec.renew_time.as_ref().map(|time| time.0)),
        lasts: lasts.map(Duration::from_secs),
    }
}

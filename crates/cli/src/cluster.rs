//! The way to the cluster, and the time.

use dogwatch_core::Now;
use dogwatch_k8s::fleet::FleetClient;

use crate::args::Cluster;
use crate::exit::Failure;

/// The cluster that a command works on.
pub struct Connected {
    /// A hand on it.
    pub fleet: FleetClient,
    server: String,
}

impl Connected {
    /// Makes the client; nothing is sent yet.
    pub async fn to(cluster: &Cluster) -> Result<Self, Failure> {
        let connection = dogwatch_k8s::connect_to(cluster.context.as_deref())
            .await
            .map_err(|error| Failure::connect(&error))?;
        Ok(Self {
            fleet: FleetClient::new(connection.client, cluster.namespace.clone()),
            server: connection.server,
        })
    }

    /// What a call's error means for the person.
    pub fn failed(&self, what: &str, error: &dogwatch_k8s::Error) -> Failure {
        Failure::api(what, &self.server, error)
    }
}

/// What time it is here. Ages shown are this machine's clock against the node's.
pub fn now() -> Now {
    Now {
        wall: jiff::Timestamp::now(),
        mono: std::time::Duration::ZERO,
    }
}

//! The way to the cluster, and the time.

use dogwatch_core::Now;
use dogwatch_core::explain::CoordinatorSeen;
use dogwatch_core::name::NodeName;
use dogwatch_k8s::fleet::FleetClient;

use crate::args::Cluster;
use crate::exit::{Exit, Failure};
use crate::near::near;

/// The cluster that a command works on.
pub struct Connected {
    /// A hand on it.
    pub fleet: FleetClient,
    /// Dogwatch's namespace.
    pub namespace: String,
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
            namespace: cluster.namespace.clone(),
            server: connection.server,
        })
    }

    /// That a node does not exist, and which ones may have been meant.
    pub async fn no_such_node(&self, node: &NodeName) -> Failure {
        let failure = Failure::new(
            Exit::NotFound,
            format!("there is no Node {node} in this cluster"),
        );
        let names = self.fleet.names(None).await.unwrap_or_default();
        let near = near(node.as_str(), names.iter().map(NodeName::as_str));
        if near.is_empty() {
            failure.next("`dogwatch status` lists them")
        } else {
            failure.next(format!(
                "did you mean {}? `dogwatch status` lists them",
                near.join(" or ")
            ))
        }
    }

    /// Says so where no coordinators are installed: what is asked for will not happen.
    pub async fn warn_if_not_installed(&self, node: &NodeName) {
        if let Ok(CoordinatorSeen::NoDaemonSet) = self.fleet.coordinator(node).await {
            eprintln!(
                "dogwatch: no DaemonSet dogwatch-coordinator is in namespace {}, so nothing will happen\n  \
                 → dogwatch manifests | kubectl apply --server-side -f -; or is --namespace wrong?",
                self.namespace
            );
        }
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

//! The way to the cluster, and the time.

use std::time::Duration;

use dogwatch_core::explain::{CoordinatorSeen, CoordinatorSigns};
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::Parsed;
use dogwatch_core::{Now, duration};
use dogwatch_k8s::fleet::FleetClient;
use tokio::time::Instant;

use crate::args::Cluster;
use crate::exit::{Exit, Failure};
use dogwatch_core::near::near;

/// A coordinator accepts a request within a second of it; the rest is for a slow API server.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

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

    /// Warns where no pod of a coordinator is on the node and the request stays unanswered. Coordinators may
    /// run in another way than as the DaemonSet, so what the node answers decides.
    pub async fn warn_if_unanswered(&self, node: &NodeName, is_for_later: bool) {
        let missing = match self.fleet.coordinator(node).await {
            Ok(CoordinatorSeen::NoDaemonSet) => "no DaemonSet dogwatch-coordinator is in namespace",
            Ok(CoordinatorSeen::NoPod) => {
                "this node has no pod of dogwatch-coordinator in namespace"
            }
            Ok(CoordinatorSeen::Unknown | CoordinatorSeen::Pod { .. }) | Err(_) => return,
        };
        let found = if is_for_later {
            self.no_coordinator_ever_wrote(node).await
        } else {
            self.is_unanswered(node).await
        };
        if let Some(found) = found {
            eprintln!(
                "dogwatch: {found}, and {missing} {}\n  \
                 → dogwatch check {node}; are the coordinators installed, and is --namespace right?",
                self.namespace
            );
        }
    }

    /// Nothing accepts a request before its time: then the Nodes have to show whether coordinators run.
    async fn no_coordinator_ever_wrote(&self, node: &NodeName) -> Option<String> {
        let fleet = self.fleet.read().await.ok()?;
        let nowhere = fleet.coordinator_signs(node) == CoordinatorSigns::Nowhere;
        nowhere.then(|| "no coordinator ever wrote on a Node".to_owned())
    }

    async fn is_unanswered(&self, node: &NodeName) -> Option<String> {
        let deadline = Instant::now() + ANSWERED_WITHIN;
        while Instant::now() < deadline {
            let seen = self.fleet.node(node).await.ok()??;
            if seen.record != Parsed::Absent || seen.request == Parsed::Absent {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        let within = duration::format(ANSWERED_WITHIN);
        Some(format!(
            "nothing on node {node} has accepted the request within {within}"
        ))
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
        mono: Duration::ZERO,
    }
}

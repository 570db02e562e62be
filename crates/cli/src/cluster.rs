//! The connection to the cluster, and the current time.

use std::time::Duration;

use dogwatch_core::explain::{CoordinatorSigns, ObservedCoordinator};
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::ParsedAnnotation;
use dogwatch_core::{Now, duration};
use dogwatch_k8s::fleet::FleetClient;
use tokio::time::Instant;

use crate::args::{ClusterArgs, NAMESPACE_VARIABLE};
use crate::exit::CommandFailure;
use crate::output;
use crate::resource;

/// A coordinator accepts a request within 1 s; the rest is a margin for a slow API server.
const REQUEST_ACCEPT_TIMEOUT: Duration = Duration::from_secs(5);

pub struct ConnectedCluster {
    pub fleet: FleetClient,
    pub namespace: String,
    server: String,
}

impl ConnectedCluster {
    /// Builds the client without sending a request.
    pub async fn connect_to(cluster: &ClusterArgs) -> Result<Self, CommandFailure> {
        let connection = match &cluster.given_connection {
            Some(given) => given.0.clone(),
            None => dogwatch_k8s::connect_to_context(cluster.context.as_deref())
                .await
                .map_err(|error| CommandFailure::from_connect_error(&error))?,
        };
        Ok(Self {
            fleet: FleetClient::new(connection.client, cluster.namespace.clone()),
            namespace: cluster.namespace.clone(),
            server: connection.server,
        })
    }

    /// Connects for a command on objects, whose namespace `-n` is then: Dogwatch's own namespace
    /// comes from the environment.
    pub async fn connect_for_objects(cluster: &ClusterArgs) -> Result<Self, CommandFailure> {
        if !cluster.namespace_given {
            return Self::connect_to(cluster).await;
        }
        let own = std::env::var(NAMESPACE_VARIABLE).ok();
        let own = own.filter(|name| !name.is_empty());
        let cluster = ClusterArgs {
            namespace: own.unwrap_or_else(|| dogwatch_api::DEFAULT_NAMESPACE.into()),
            namespace_given: false,
            context: cluster.context.clone(),
            given_connection: cluster.given_connection.clone(),
        };
        Self::connect_to(&cluster).await
    }

    /// Says that the node does not exist and suggests similar names.
    pub async fn no_such_node(&self, node: &NodeName) -> CommandFailure {
        let text = format!("there is no Node {node} in this cluster");
        let names = self.fleet.list_node_names(None).await.unwrap_or_default();
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        resource::not_found(text, node.as_str(), &names, "`dogwatch status` lists them")
    }

    /// Warns when the node has no coordinator pod and the request stays unanswered. Coordinators
    /// may run without the DaemonSet, so the node's answer decides.
    pub async fn warn_if_unanswered(&self, node: &NodeName, is_for_later: bool) {
        let missing = match self.fleet.read_coordinator(node).await {
            Ok(ObservedCoordinator::NoDaemonSet) => {
                "no DaemonSet dogwatch-coordinator is in namespace"
            }
            Ok(ObservedCoordinator::NoPod) => {
                "this node has no pod of dogwatch-coordinator in namespace"
            }
            Ok(ObservedCoordinator::Unknown | ObservedCoordinator::Pod { .. }) | Err(_) => return,
        };
        let found = if is_for_later {
            self.describe_missing_coordinators(node).await
        } else {
            self.describe_unanswered_request(node).await
        };
        if let Some(found) = found {
            output::print_warning(&format!(
                "dogwatch: {found}, and {missing} {}\n  \
                 → dogwatch check {node}; are the coordinators installed, and is --namespace right?",
                self.namespace
            ));
        }
    }

    /// A coordinator accepts no request before its time, so only the Nodes can show whether
    /// coordinators run.
    async fn describe_missing_coordinators(&self, node: &NodeName) -> Option<String> {
        let fleet = self.fleet.read_fleet().await.ok()?;
        let nowhere = fleet.coordinator_signs(node) == CoordinatorSigns::Nowhere;
        nowhere.then(|| "no Node carries annotations of a coordinator".to_owned())
    }

    async fn describe_unanswered_request(&self, node: &NodeName) -> Option<String> {
        let deadline = Instant::now() + REQUEST_ACCEPT_TIMEOUT;
        while Instant::now() < deadline {
            let seen = self.fleet.read_node(node).await.ok()??;
            if seen.record != ParsedAnnotation::Absent || seen.request == ParsedAnnotation::Absent {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        let within = duration::format_duration(REQUEST_ACCEPT_TIMEOUT);
        Some(format!(
            "no coordinator on node {node} has accepted the request within {within}"
        ))
    }

    pub fn api_failure(&self, what: &str, error: &dogwatch_k8s::Error) -> CommandFailure {
        CommandFailure::from_api_error(what, &self.server, error)
    }
}

/// This machine's time. The ages shown compare it with times from the nodes' clocks.
pub fn current_time() -> Now {
    Now {
        wall: jiff::Timestamp::now(),
        mono: Duration::ZERO,
    }
}

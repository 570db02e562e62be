//! Component `web` of the controller: the page for everybody who can connect, read-only.

use std::net::SocketAddr;
use std::sync::Arc;

use dogwatch_api::WEB_ACCOUNT;
use dogwatch_k8s::ClusterConnection;
use dogwatch_k8s::fleet::FleetClient;
use dogwatch_web::{DashboardAccess, DashboardConfig, DashboardLimits, DashboardServer, HostNames};
use tracing::info;

use super::runner::InProcessRunner;
use super::{command_prefix, start_failure};
use crate::args::{ClusterArgs, GivenConnection};
use crate::exit::{CliExitCode, CommandFailure};
use crate::fleet_feed::{FleetFeed, rollout_estimator};

/// The page, with its socket.
pub struct WebComponent {
    server: DashboardServer,
    feed: FleetFeed,
}

impl WebComponent {
    /// `hosts`: names beside loopback's and the Service's.
    pub async fn bind(
        cluster: &ClusterArgs,
        connection: ClusterConnection,
        listen: SocketAddr,
        hosts: &[String],
    ) -> Result<Self, CommandFailure> {
        let fleet = FleetClient::new(connection.client.clone(), cluster.namespace.clone());
        let feed = FleetFeed::start(&fleet, Some(rollout_estimator()));
        let names = service_names(&cluster.namespace).into_iter();
        let hosts = HostNames::with_loopback(names.chain(hosts.iter().cloned()));
        let config = DashboardConfig {
            listen,
            access: DashboardAccess::ReadOnly,
            hosts: hosts.map_err(|error| {
                CommandFailure::new(CliExitCode::Usage, format!("--web-hosts: {error}"))
            })?,
            command_prefix: command_prefix(cluster),
            limits: DashboardLimits::default(),
        };
        let runner = InProcessRunner {
            cluster: ClusterArgs {
                given_connection: Some(GivenConnection(connection)),
                ..cluster.clone()
            },
        };
        let server = DashboardServer::bind(config, feed.subscribe(), Arc::new(runner)).await;
        let server = server.map_err(|error| start_failure(&error, "--web-listen"))?;
        info!(address = %server.address(), "serves the dashboard");
        Ok(Self { server, feed })
    }

    pub async fn serve_until(self, stop: impl Future<Output = ()>) {
        self.server.serve_until(stop).await;
        drop(self.feed);
    }
}

/// As pods call it.
fn service_names(namespace: &str) -> [String; 4] {
    let own = format!("{WEB_ACCOUNT}.{namespace}");
    [
        WEB_ACCOUNT.to_owned(),
        format!("{own}.svc"),
        format!("{own}.svc.cluster.local"),
        own,
    ]
}

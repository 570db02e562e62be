//! Implements `dogwatch dashboard`; [`web_component`] is component `web` of the controller.

mod open_browser;
mod runner;
pub mod web_component;

use std::net::SocketAddr;
use std::sync::Arc;

use dogwatch_k8s::ClusterConnection;
use dogwatch_web::{
    DashboardAccess, DashboardConfig, DashboardError, DashboardLimits, DashboardServer, HostNames,
};

use self::runner::InProcessRunner;
use super::demo::wait_for_end_signal;
use crate::args::{ClusterArgs, GivenConnection, parse_loopback_address};
use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};
use crate::fleet_feed::{FleetFeed, rollout_estimator};
use crate::output::{print_line, print_warning};

#[derive(Debug, clap::Args)]
pub struct DashboardArgs {
    /// Address on loopback to serve the page on; port 0 picks a free port
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:0", value_parser = parse_dashboard_address)]
    listen: SocketAddr,

    /// Print the link, and do not open a browser
    #[arg(long)]
    no_open: bool,
}

fn parse_dashboard_address(text: &str) -> Result<SocketAddr, String> {
    let why = "the page acts with your rights and has no TLS (for others, run component web of the controller)";
    parse_loopback_address(text, why)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrowserChoice {
    Open,
    PrintOnly,
}

/// Serves the page until Ctrl-C.
pub async fn run(cluster: &ClusterArgs, args: &DashboardArgs) -> Result<(), CommandFailure> {
    let connected = ConnectedCluster::connect_to(cluster).await?;
    // A page without a cluster would say nothing but that.
    let answer = connected.fleet.list_node_names(None).await;
    answer.map_err(|error| connected.api_failure("list Nodes", &error))?;
    let access = DashboardAccess::OneTimeLink;
    let dashboard = LocalDashboard::start(cluster.clone(), &connected, args.listen, access).await?;
    dashboard.announce_link(if args.no_open {
        BrowserChoice::PrintOnly
    } else {
        BrowserChoice::Open
    })?;
    dashboard.serve_until(wait_for_end_signal()).await;
    Ok(())
}

/// The page on loopback, behind a one-time link.
pub struct LocalDashboard {
    server: DashboardServer,
    access: DashboardAccess,
    _feed: FleetFeed,
}

impl LocalDashboard {
    pub async fn start(
        cluster: ClusterArgs,
        connected: &ConnectedCluster,
        listen: SocketAddr,
        access: DashboardAccess,
    ) -> Result<Self, CommandFailure> {
        let feed = FleetFeed::start(&connected.fleet, Some(rollout_estimator()));
        let config = DashboardConfig {
            listen,
            access,
            hosts: HostNames::default(),
            command_prefix: command_prefix(&cluster),
            limits: DashboardLimits {
                // A few windows of one person.
                streams: 64,
                ..DashboardLimits::default()
            },
        };
        let runner = Arc::new(InProcessRunner { cluster });
        let server = DashboardServer::bind(config, feed.subscribe(), runner).await;
        Ok(Self {
            server: server.map_err(|error| start_failure(&error, "--listen"))?,
            access,
            _feed: feed,
        })
    }

    /// For the demo's cluster, which has no access rights.
    pub async fn start_for_demo(connection: ClusterConnection) -> Result<Self, CommandFailure> {
        let cluster = ClusterArgs {
            namespace: dogwatch_api::DEFAULT_NAMESPACE.to_owned(),
            namespace_given: false,
            context: None,
            given_connection: Some(GivenConnection(connection)),
        };
        let connected = ConnectedCluster::connect_to(&cluster).await?;
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::start(cluster, &connected, any_port, DashboardAccess::DemoLink).await
    }

    /// Prints the link, and opens it if there is a browser.
    pub fn announce_link(&self, browser: BrowserChoice) -> Result<(), CommandFailure> {
        let url = self.server.opening_url();
        let rights = self.access.describe_rights();
        print_line(&format!("the dashboard {rights}; its link works once:"))?;
        print_line(&format!("  {url}"))?;
        print_line("press Ctrl-C to end it")?;
        if browser == BrowserChoice::Open
            && let Err(why) = open_browser::open_in_browser(&url)
        {
            print_warning(&format!(
                "dogwatch: no browser was opened: {why}\n  → open the link above yourself; --no-open does not try"
            ));
        }
        Ok(())
    }

    pub async fn serve_until(self, stop: impl Future<Output = ()>) {
        self.server.serve_until(stop).await;
    }
}

/// How a command line begins that reaches the same cluster.
fn command_prefix(cluster: &ClusterArgs) -> Vec<String> {
    let mut words = vec!["dogwatch".to_owned()];
    if let Some(context) = &cluster.context {
        words.push(format!("--context={context}"));
    }
    if cluster.namespace != dogwatch_api::DEFAULT_NAMESPACE {
        words.push(format!("--namespace={}", cluster.namespace));
    }
    words
}

fn start_failure(error: &DashboardError, flag: &str) -> CommandFailure {
    let text = dogwatch_k8s::error::error_chain(error);
    let failure = CommandFailure::new(CliExitCode::Failed, text);
    match error {
        DashboardError::PortInUse(address) => {
            failure.with_next_step(format!("for any free port: {flag} {}:0", address.ip()))
        }
        DashboardError::Bind(..) => failure.with_next_step(format!("give {flag} another IP:PORT")),
        DashboardError::Secret(_) => failure,
    }
}

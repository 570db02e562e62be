//! Implements `dogwatch demo --top`: the demo's cluster under `dogwatch top`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use dogwatch_k8s::fleet::FleetClient;
use dogwatch_sim::demo::Demo;

use super::demo_failure;
use super::serve::DemoApiServer;
use crate::args::NAMESPACE_VARIABLE;
use crate::command::top::TopSession;
use crate::exit::CommandFailure;
use crate::fleet_feed::{FleetFeed, rollout_estimator};

/// The user that the demo's kubeconfig names.
const VIEWER: &str = "person";

/// Plays the demo until the person leaves; the cluster then goes on without stories.
pub async fn watch_in_top(
    demo: &mut Demo,
    address: Option<SocketAddr>,
    folder: &Path,
) -> Result<(), CommandFailure> {
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    // The commands of the keys are programs of their own, which need an API to connect to.
    let serving = DemoApiServer::start_serving(demo, address.unwrap_or(any_port), folder).await?;
    let namespace = dogwatch_api::DEFAULT_NAMESPACE;
    let client = demo.api_server().client_for_user(VIEWER);
    let feed = FleetFeed::start(
        &FleetClient::new(client, namespace),
        Some(rollout_estimator()),
    );
    let session = TopSession {
        views: feed.subscribe(),
        cluster_flags: Vec::new(),
        environment: vec![
            ("KUBECONFIG", serving.kubeconfig_path().to_owned()),
            (NAMESPACE_VARIABLE, PathBuf::from(namespace)),
        ],
    };
    let mut watching = std::pin::pin!(session.run_until_quit());
    loop {
        tokio::select! {
            done = &mut watching => return done,
            told = demo.next_lines() => {
                told.map_err(|error| demo_failure(&error))?;
            }
        }
    }
}

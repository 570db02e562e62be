//! Builds the demo's cluster.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_coordinator::host::sentinel::SentinelError;
use dogwatch_core::reboot::RebootConfig;
use dogwatch_kubesim::api::{ApiServer, ApiServerOptions};
use dogwatch_kubesim::clock::TokioClock;
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_kubesim::world::cluster::{
    ClusterBuildError, ClusterClients, HeartbeatSpec, SimulatedWorkload, WorkloadBudget,
    WorkloadKind,
};
use dogwatch_kubesim::world::{ClusterSpec, SimulatedCluster};
use jiff::Timestamp;

use crate::bare_metal::AdminRequestError;

#[derive(Debug, Clone)]
pub struct DemoConfig {
    /// Worker nodes; at least two, because drained pods need another node.
    pub nodes: u32,
    pub control_plane: u32,
    /// The seed of all random values.
    pub seed: u64,
    /// Speed factor; 1 takes about 30 seconds with four nodes.
    pub speed: f64,
    /// Absolute path of the folder for the nodes' folders.
    pub folder: PathBuf,
    /// The clock's time at the start.
    pub now: Timestamp,
}

/// Why the demo cannot run.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error("failed to build the cluster")]
    Build(#[from] ClusterBuildError),
    #[error("failed to write the nodes' files")]
    Files(#[from] io::Error),
    #[error("failed to watch the nodes' files")]
    Watch(#[from] SentinelError),
    #[error("failed to change the cluster: {0}")]
    Refused(String),
    #[error("failed to change a host: {0}")]
    Host(#[from] AdminRequestError),
}

impl DemoConfig {
    /// A duration of the demo at speed 1, in seconds, scaled to the configured speed.
    pub(super) fn scaled_time(&self, seconds: f64) -> Duration {
        Duration::try_from_secs_f64(seconds / self.speed).unwrap_or(Duration::from_millis(1))
    }

    /// The number of web server pods.
    pub(super) fn web_replicas(&self) -> u32 {
        self.nodes * 2 + 1
    }

    pub(super) fn cluster_spec(&self) -> ClusterSpec {
        let mut spec = ClusterSpec::new(self.nodes, SimulationSeed(self.seed));
        spec.control_plane = self.control_plane;
        spec.namespaces = vec![dogwatch_api::DEFAULT_NAMESPACE.into()];
        spec.workloads = self.workloads();
        spec.heartbeat = HeartbeatSpec::Lease {
            every: Duration::from_secs(10),
        };
        spec.ready_after = self.scaled_time(0.4);
        spec.reboot_takes = self.scaled_time(1.5);
        spec.starts_after = self.scaled_time(0.4);
        spec.stops_after = self.scaled_time(0.4);
        spec
    }

    /// Web servers of which two may be unavailable, a database whose budget blocks drains at first,
    /// and an agent on every node.
    fn workloads(&self) -> Vec<SimulatedWorkload> {
        let mut web = SimulatedWorkload::new(
            WorkloadKind::Deployment {
                replicas: self.web_replicas(),
            },
            "web",
        );
        web.budget = Some(WorkloadBudget::MaxUnavailable("2".into()));
        let mut db = SimulatedWorkload::new(WorkloadKind::ReplicaSet { replicas: 2 }, "db");
        db.budget = Some(WorkloadBudget::MinAvailable("2".into()));
        db.stops_after = Some(self.scaled_time(0.8));
        let mut agent = SimulatedWorkload::new(WorkloadKind::DaemonSet, "agent");
        agent.tolerates_all = true;
        vec![web, db, agent]
    }

    pub(super) fn coordinator_config(&self) -> RebootConfig {
        RebootConfig {
            drain_timeout: Duration::from_mins(10),
            reboot_timeout: Duration::from_mins(10),
            settle: self.scaled_time(0.8),
            gate_timeout: Duration::from_mins(5),
            ..RebootConfig::default()
        }
    }

    /// Builds the cluster and waits until it has settled.
    pub(super) async fn build_cluster(
        &self,
    ) -> Result<(ApiServer, Arc<TokioClock>, Arc<SimulatedCluster>), DemoError> {
        let clock = Arc::new(TokioClock::starting_at(self.now));
        let options = ApiServerOptions {
            seed: self.seed,
            audit: false,
            ..ApiServerOptions::default()
        };
        let server = ApiServer::new(Arc::clone(&clock) as Arc<_>, options);
        let clients = ClusterClients::for_embedded_server(&server);
        let cluster = SimulatedCluster::build_and_settle(
            self.cluster_spec(),
            clients,
            Arc::clone(&clock) as Arc<_>,
        )
        .await?;
        Ok((server, clock, Arc::new(cluster)))
    }
}

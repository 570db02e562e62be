//! Building the demo's cluster.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_coordinator::host::sentinel::SentinelError;
use dogwatch_core::reboot::Config;
use jiff::Timestamp;

use crate::api::{ApiServer, Options};
use crate::clock::TokioClock;
use crate::metal::Refused;
use crate::seed::Seed;
use crate::world::cluster::{Budget, BuildError, Clients, HeartbeatSpec, Workload, WorkloadKind};
use crate::world::{Cluster, ClusterSpec};

/// What to show.
#[derive(Debug, Clone)]
pub struct DemoConfig {
    /// Worker nodes, at least two: drained pods have to go somewhere.
    pub nodes: u32,
    /// Control-plane nodes.
    pub control_plane: u32,
    /// Where everything random comes from.
    pub seed: u64,
    /// How many times as fast: 1 takes some 30 seconds with four nodes.
    pub speed: f64,
    /// Where the nodes' folders go; absolute.
    pub folder: PathBuf,
    /// What time it is.
    pub now: Timestamp,
}

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The cluster.
    #[error("failed to build the cluster")]
    Build(#[from] BuildError),
    /// The nodes' folders.
    #[error("failed to write the nodes' files")]
    Files(#[from] io::Error),
    /// Their sentinels.
    #[error("failed to watch the nodes' files")]
    Watch(#[from] SentinelError),
    /// A person's change of the play was refused.
    #[error("failed to change the cluster: {0}")]
    Refused(String),
    /// Of the hosts.
    #[error("failed to change a host: {0}")]
    Host(#[from] Refused),
}

impl DemoConfig {
    /// A time of the play, at its speed.
    pub(super) fn time(&self, seconds: f64) -> Duration {
        Duration::try_from_secs_f64(seconds / self.speed).unwrap_or(Duration::from_millis(1))
    }

    /// So many web servers run.
    pub(super) fn web(&self) -> u32 {
        self.nodes * 2 + 1
    }

    pub(super) fn spec(&self) -> ClusterSpec {
        let mut spec = ClusterSpec::new(self.nodes, Seed(self.seed));
        spec.control_plane = self.control_plane;
        spec.workloads = self.workloads();
        spec.heartbeat = HeartbeatSpec::Lease {
            every: Duration::from_secs(10),
        };
        spec.ready_after = self.time(0.5);
        spec.reboot_takes = self.time(2.5);
        spec.starts_after = self.time(0.6);
        spec.stops_after = self.time(0.8);
        spec
    }

    /// Servers of which two may be away, a database whose budget allows nothing at first, and an
    /// agent on every node.
    fn workloads(&self) -> Vec<Workload> {
        let mut web = Workload::new(
            WorkloadKind::Deployment {
                replicas: self.web(),
            },
            "web",
        );
        web.budget = Some(Budget::MaxUnavailable("2".into()));
        let mut db = Workload::new(WorkloadKind::ReplicaSet { replicas: 2 }, "db");
        db.budget = Some(Budget::MinAvailable("2".into()));
        db.stops_after = Some(self.time(1.5));
        let mut agent = Workload::new(WorkloadKind::DaemonSet, "agent");
        agent.tolerates_all = true;
        vec![web, db, agent]
    }

    pub(super) fn coordinator(&self) -> Config {
        Config {
            drain_timeout: Duration::from_mins(10),
            reboot_timeout: Duration::from_mins(10),
            settle: self.time(1.5),
            gate_timeout: Duration::from_mins(5),
            ..Config::default()
        }
    }

    /// The cluster, settled.
    pub(super) async fn build(
        &self,
    ) -> Result<(ApiServer, Arc<TokioClock>, Arc<Cluster>), DemoError> {
        let clock = Arc::new(TokioClock::starting_at(self.now));
        let options = Options {
            seed: self.seed,
            audit: false,
            ..Options::default()
        };
        let server = ApiServer::new(Arc::clone(&clock) as Arc<_>, options);
        let clients = Clients::embedded(&server);
        let cluster = Cluster::build(self.spec(), clients, Arc::clone(&clock) as Arc<_>).await?;
        Ok((server, clock, Arc::new(cluster)))
    }
}

//! The flags of remediation. Source: specification §4.4.

use std::num::NonZeroU32;
use std::time::Duration;

use dogwatch_core::duration;
use dogwatch_core::reboot;
use dogwatch_core::remediation::RemediationConfig;
use dogwatch_k8s::workload_cluster::KubeconfigSecret;

#[derive(Debug, Clone, clap::Args)]
pub struct RemediationArgs {
    /// How many hosts remediation may hold off at once; hosts whose BMC does not answer are not
    /// counted
    #[arg(
        long,
        env = "DOGWATCH_MAX_FENCED",
        value_name = "N",
        default_value = "5"
    )]
    pub max_fenced: NonZeroU32,

    /// How long a host is left alone after its remediation
    #[arg(long, env = "DOGWATCH_FENCE_COOLDOWN", value_name = "DURATION", default_value = "5m", value_parser = duration::parse_duration)]
    pub fence_cooldown: Duration,

    /// Release no node unless its host's BMC reports the node's system UUID
    #[arg(long, env = "DOGWATCH_REQUIRE_HOST_IDENTITY")]
    pub require_host_identity: bool,

    /// Look for the Nodes of Machines of Cluster API in their workload clusters, by the kubeconfig
    /// in Secret CLUSTER-dogwatch-kubeconfig beside the Cluster
    #[arg(long, env = "DOGWATCH_WORKLOAD_CLUSTERS", value_name = "SOURCE")]
    pub workload_clusters: Option<WorkloadClusterSource>,

    /// Reach workload clusters as an administrator, by Cluster API's own Secret CLUSTER-kubeconfig
    #[arg(
        long,
        env = "DOGWATCH_USE_CLUSTER_KUBECONFIG",
        requires = "workload_clusters"
    )]
    pub use_cluster_kubeconfig: bool,
}

/// What names the workload clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum WorkloadClusterSource {
    /// Machines of Cluster API
    ClusterApi,
}

impl RemediationArgs {
    /// Which Secrets have the kubeconfigs of workload clusters; `None`: all Nodes are in the
    /// controller's own cluster.
    pub fn kubeconfig_secret(&self) -> Option<KubeconfigSecret> {
        let WorkloadClusterSource::ClusterApi = self.workload_clusters?;
        Some(if self.use_cluster_kubeconfig {
            KubeconfigSecret::ClusterApi
        } else {
            KubeconfigSecret::Dogwatch
        })
    }

    /// `reboot` holds the flags of planned reboots.
    pub fn remediation_config(&self, reboot: reboot::RebootConfig) -> RemediationConfig {
        RemediationConfig {
            max_fenced: self.max_fenced.get(),
            cooldown: self.fence_cooldown,
            require_identity: self.require_host_identity,
            reboot,
        }
    }
}

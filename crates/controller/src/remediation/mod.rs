//! Remediation: holds a failed machine off, proves it, releases its workloads, and brings it back.
//!
//! **For:** `dogwatch controller --components remediation`; [`RemediationRegistry`] for tests and
//! whoever wants to know.
//! **May touch:** what [`RemediationClient`](dogwatch_k8s::remediation::RemediationClient) may; the
//! power of hosts only through keys, and [`HostRegistry`] to read it.
//! **Promises:**
//! - Nothing is written unless this process leads for as long as the call may take. A process that
//!   lost the lead remembers nothing.
//! - One job for each remediation: an error, a BMC or a call that hangs delays no other (L1).
//! - Workloads are released only on a proof that was checked right before (S2).
//!
//! Decided in `dogwatch_core::remediation`. Source: specification §4.

mod action_names;
mod api_calls;
mod call_answers;
mod case_memory;
mod concurrency;
mod node_cluster_calls;
mod observer;
mod registry;
mod remediation_job;
mod remediation_metrics;
mod remediation_ops;
mod remediator;
mod workload_clusters;

use std::sync::Arc;

use dogwatch_core::power;
use dogwatch_core::remediation::RemediationConfig;
use dogwatch_k8s::workload_cluster::KubeconfigSecret;

use self::api_calls::RemediationApiCalls;
use self::remediation_job::RemediationDeps;
use self::remediator::RemediatorLoop;
use self::workload_clusters::WorkloadRegistry;
use crate::ControllerContext;
use crate::power::HostRegistry;

pub(crate) use action_names::action_label;
pub use registry::{DecidedRemediation, RemediationRegistry};

#[derive(Debug, Clone)]
pub struct RemediationSettings {
    /// The guards, like `--max-fenced`.
    pub config: RemediationConfig,
    /// The power controller's view of the hosts.
    pub power: HostRegistry,
    /// The power controller's settings, which proofs depend on.
    pub power_config: power::PowerConfig,
    /// Publishes the decisions.
    pub board: RemediationRegistry,
    /// Which Secrets have the kubeconfigs of workload clusters; `None`: all Nodes are in this
    /// cluster.
    pub workload: Option<KubeconfigSecret>,
}

pub async fn run_remediation(context: ControllerContext, settings: RemediationSettings) {
    let leadership = context.leadership.clone();
    let stop = context.stop.clone();
    let workload = WorkloadRegistry::default();
    let calls = Arc::new(RemediationApiCalls::new(&context, workload.clone()));
    let means = RemediationDeps {
        ops: calls,
        clock: context.clock.clone(),
        leadership: leadership.clone(),
        power: settings.power.clone(),
        power_config: settings.power_config,
        decision_log: context.decision_log.clone(),
    };
    leadership
        .run_while_leading(&stop, |_| {
            let (context, settings) = (context.clone(), settings.clone());
            RemediatorLoop::new(context, settings, means.clone(), workload.clone()).run_as_leader()
        })
        .await;
}

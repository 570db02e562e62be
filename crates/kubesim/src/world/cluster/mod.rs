//! Builds a whole cluster around an API server and waits until it has settled.

mod manifests;
mod settle;
mod spec;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::PostParams;
use kube::{Api, Client, Resource};
use serde_json::Value;
use tokio::sync::mpsc;

pub use settle::UnsettledCluster;
pub use spec::{ClusterSpec, HeartbeatSpec, SimulatedWorkload, WorkloadBudget, WorkloadKind};

use super::ActorTask;
use super::kubelet::{KubeletConfig, KubeletHandle, KubeletHeartbeat, PodSource, SimulatedKubelet};
use super::manager;
use super::pod_hub::PodHub;
use crate::api::ApiServer;
use crate::clock::ClusterClock;

/// User name of the simulated kube-controller-manager.
pub const CONTROLLER_MANAGER_USER: &str = "system:kube-controller-manager";
/// User name of the simulated kube-scheduler.
pub const SCHEDULER_USER: &str = "system:kube-scheduler";
/// User name for creating the cluster's objects.
pub const BUILDER_USER: &str = "system:admin";
/// The label and the taint of control-plane nodes.
const CONTROL_PLANE_LABEL: &str = "node-role.kubernetes.io/control-plane";

pub fn kubelet_user(node: &str) -> String {
    format!("system:node:{node}")
}

/// Gives each user name its client.
#[derive(Clone)]
pub struct ClusterClients(Arc<dyn Fn(&str) -> Client + Send + Sync>);

impl ClusterClients {
    /// A separate client of the embedded server for each user.
    pub fn for_embedded_server(server: &ApiServer) -> Self {
        let server = server.clone();
        Self(Arc::new(move |user| server.client_for_user(user)))
    }

    /// The same client for every user, for example of a real server.
    pub fn with_shared_client(client: Client) -> Self {
        Self(Arc::new(move |_| client.clone()))
    }

    pub fn client_for_user(&self, user: &str) -> Client {
        (self.0)(user)
    }
}

/// The cluster could not be built.
#[derive(Debug, thiserror::Error)]
pub enum ClusterBuildError {
    #[error("failed to create {what}")]
    Create {
        what: String,
        /// The API server's error.
        source: kube::Error,
    },
    /// The cluster did not settle in time.
    #[error("the cluster did not settle")]
    Unsettled(#[from] UnsettledCluster),
}

/// A running cluster. Dropping it stops everything in it except the API server.
pub struct SimulatedCluster {
    spec: ClusterSpec,
    clients: ClusterClients,
    kubelets: BTreeMap<String, KubeletHandle>,
    _controllers: ActorTask,
}

impl SimulatedCluster {
    /// Builds the cluster and waits until every node is Ready, every workload is complete and every
    /// budget is counted.
    pub async fn build_and_settle(
        spec: ClusterSpec,
        clients: ClusterClients,
        clock: Arc<dyn ClusterClock>,
    ) -> Result<Self, ClusterBuildError> {
        let admin = clients.client_for_user(BUILDER_USER);
        for namespace in spec.needed_namespaces() {
            create_if_missing::<Namespace>(
                &Api::all(admin.clone()),
                manifests::namespace_manifest(&namespace),
            )
            .await?;
        }
        let (reports, inbox) = mpsc::unbounded_channel();
        let controllers = manager::start_manager(manager::ManagerSetup {
            controllers: clients.client_for_user(CONTROLLER_MANAGER_USER),
            scheduler: clients.client_for_user(SCHEDULER_USER),
            clock: Arc::clone(&clock),
            names: spec.controllers.clone(),
            reports: inbox,
        });
        let hub = spec
            .shared_watch
            .then(|| PodHub::start_watching(&clients.client_for_user(CONTROLLER_MANAGER_USER)));
        let kubelets = spec.node_names().map(|node| {
            let config = kubelet_config(&spec, node.clone(), &clock, &reports, hub.as_ref());
            let client = clients.client_for_user(&kubelet_user(&node));
            (node, SimulatedKubelet::start_machine(client, config))
        });
        let cluster = Self {
            kubelets: kubelets.collect(),
            _controllers: controllers,
            clients,
            spec,
        };
        // Pods that are created before the nodes would all become unschedulable.
        cluster.wait_until_settled().await?;
        for workload in &cluster.spec.workloads {
            cluster.add_workload(workload).await?;
        }
        cluster.wait_until_settled().await?;
        Ok(cluster)
    }

    /// Adds a workload without waiting for it. Its namespace must exist.
    pub async fn add_workload(
        &self,
        workload: &SimulatedWorkload,
    ) -> Result<(), ClusterBuildError> {
        let admin = || self.clients.client_for_user(BUILDER_USER);
        let namespace = workload.namespace.as_str();
        if workload.volume {
            let claims = Api::<PersistentVolumeClaim>::namespaced(admin(), namespace);
            create_if_missing::<PersistentVolume>(
                &Api::all(admin()),
                manifests::volume_manifest(workload),
            )
            .await?;
            create_if_missing(&claims, manifests::claim_manifest(workload)).await?;
        }
        if let Some(budget) = &workload.budget {
            let budgets = Api::<PodDisruptionBudget>::namespaced(admin(), namespace);
            create_if_missing(&budgets, manifests::budget_manifest(workload, budget)).await?;
        }
        let owner = manifests::workload_manifest(workload);
        match workload.kind {
            WorkloadKind::ReplicaSet { .. } => {
                let sets =
                    Api::<k8s_openapi::api::apps::v1::ReplicaSet>::namespaced(admin(), namespace);
                create_if_missing(&sets, owner).await
            }
            WorkloadKind::Deployment { .. } => {
                let deployments =
                    Api::<k8s_openapi::api::apps::v1::Deployment>::namespaced(admin(), namespace);
                create_if_missing(&deployments, owner).await
            }
            WorkloadKind::DaemonSet => {
                let sets =
                    Api::<k8s_openapi::api::apps::v1::DaemonSet>::namespaced(admin(), namespace);
                create_if_missing(&sets, owner).await
            }
        }
    }

    /// Waits until every node is Ready, every workload is complete and every budget is counted.
    pub async fn wait_until_settled(&self) -> Result<(), UnsettledCluster> {
        settle::wait_until_settled(
            &self.clients.client_for_user(BUILDER_USER),
            self.kubelets.len(),
            self.spec.settles_within,
        )
        .await
    }

    pub fn spec(&self) -> &ClusterSpec {
        &self.spec
    }

    pub fn clients(&self) -> &ClusterClients {
        &self.clients
    }

    pub fn kubelets(&self) -> &BTreeMap<String, KubeletHandle> {
        &self.kubelets
    }

    pub fn find_kubelet(&self, node: &str) -> Option<&KubeletHandle> {
        self.kubelets.get(node)
    }
}

fn kubelet_config(
    spec: &ClusterSpec,
    node: String,
    clock: &Arc<dyn ClusterClock>,
    reports: &mpsc::UnboundedSender<super::kubelet::PowerReport>,
    hub: Option<&PodHub>,
) -> KubeletConfig {
    let mut config = KubeletConfig::new(node, spec.seed, Arc::clone(clock));
    config.ready_after = spec.ready_after;
    config.reboot_takes = spec.reboot_takes;
    config.starts_after = spec.starts_after;
    config.stops_after = spec.stops_after;
    config.heartbeat = match spec.heartbeat {
        HeartbeatSpec::Lease { every } => KubeletHeartbeat::Lease { every },
        HeartbeatSpec::Quiet => KubeletHeartbeat::Quiet(reports.clone()),
    };
    config.pods = hub.map_or(PodSource::Own, |hub| PodSource::Shared(hub.clone()));
    if spec.is_control_plane(&config.node) {
        config
            .labels
            .insert(CONTROL_PLANE_LABEL.into(), String::new());
        config.taints = manifests::control_plane_taints();
        config.static_pods.clone_from(&spec.static_pods);
    }
    config
}

/// Creates the object; an existing one stays as it is.
async fn create_if_missing<K>(api: &Api<K>, object: Value) -> Result<(), ClusterBuildError>
where
    K: Resource<DynamicType = ()>
        + Clone
        + serde::de::DeserializeOwned
        + serde::Serialize
        + std::fmt::Debug,
{
    let what = format!(
        "{} {}",
        K::kind(&()),
        object["metadata"]["name"].as_str().unwrap_or_default()
    );
    let failed = |source| ClusterBuildError::Create { what, source };
    let object = match serde_json::from_value(object) {
        Ok(object) => object,
        Err(error) => return Err(failed(kube::Error::SerdeError(error))),
    };
    match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(failed(error)),
        Ok(_) => Ok(()),
    }
}

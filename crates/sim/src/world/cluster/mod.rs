//! A whole cluster, built around an API server and waited for.

mod objects;
mod settle;
mod spec;

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::name::NodeName;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::PostParams;
use kube::{Api, Client, Resource};
use serde_json::Value;
use tokio::sync::mpsc;

pub use settle::Unsettled;
pub use spec::{Budget, ClusterSpec, HeartbeatSpec, Workload, WorkloadKind};

use super::Actor;
use super::kubelet::{Heartbeat, Kubelet, KubeletConfig, KubeletHandle, PodSource};
use super::manager;
use super::pod_hub::PodHub;
use crate::api::ApiServer;
use crate::clock::Clock;

/// The user name of the simulated kube-controller-manager.
pub const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
/// The user name of the simulated kube-scheduler.
pub const SCHEDULER: &str = "system:kube-scheduler";
/// The user name of whoever builds the cluster.
pub const BUILDER: &str = "system:admin";

/// The user name of a node's kubelet.
pub fn kubelet_user(node: &NodeName) -> String {
    format!("system:node:{node}")
}

/// Who gets which client.
#[derive(Clone)]
pub struct Clients(Arc<dyn Fn(&str) -> Client + Send + Sync>);

impl Clients {
    /// Everybody a client of their own, of the embedded server.
    pub fn embedded(server: &ApiServer) -> Self {
        let server = server.clone();
        Self(Arc::new(move |user| server.client(user)))
    }

    /// Everybody the same client: of a real server, for instance.
    pub fn shared(client: Client) -> Self {
        Self(Arc::new(move |_| client.clone()))
    }

    /// This user's client.
    pub fn of(&self, user: &str) -> Client {
        (self.0)(user)
    }
}

/// Why a cluster could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// An object could not be made.
    #[error("failed to create {what}")]
    Create {
        /// Which.
        what: String,
        /// What the API server said.
        source: kube::Error,
    },
    /// It did not come to rest in time.
    #[error("the cluster did not settle")]
    Unsettled(#[from] Unsettled),
}

/// A running cluster. Dropping it stops everything in it but the API server.
pub struct Cluster {
    spec: ClusterSpec,
    clients: Clients,
    kubelets: BTreeMap<NodeName, KubeletHandle>,
    _controllers: Actor,
}

impl Cluster {
    /// Builds what the spec says and waits until every node is Ready, every workload is whole and
    /// every budget is counted.
    pub async fn build(
        spec: ClusterSpec,
        clients: Clients,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, BuildError> {
        let admin = clients.of(BUILDER);
        for namespace in spec.namespaces() {
            create::<Namespace>(&Api::all(admin.clone()), objects::namespace(&namespace)).await?;
        }
        let (reports, inbox) = mpsc::unbounded_channel();
        let controllers = manager::start(manager::Setup {
            controllers: clients.of(CONTROLLER_MANAGER),
            scheduler: clients.of(SCHEDULER),
            clock: Arc::clone(&clock),
            names: spec.controllers.clone(),
            reports: inbox,
        });
        let hub = spec
            .shared_watch
            .then(|| PodHub::start(&clients.of(CONTROLLER_MANAGER)));
        let kubelets = spec.node_names().map(|node| {
            let config = kubelet(&spec, node.clone(), &clock, &reports, hub.as_ref());
            let client = clients.of(&kubelet_user(&node));
            (node, Kubelet::start(client, config))
        });
        let cluster = Self {
            kubelets: kubelets.collect(),
            _controllers: controllers,
            clients,
            spec,
        };
        // Pods that come before there are nodes would all be told that there is no room.
        cluster.settled().await?;
        for workload in &cluster.spec.workloads {
            cluster.add(workload).await?;
        }
        cluster.settled().await?;
        Ok(cluster)
    }

    /// Adds a workload, without waiting for it. Its namespace must be there.
    pub async fn add(&self, workload: &Workload) -> Result<(), BuildError> {
        let admin = || self.clients.of(BUILDER);
        let namespace = workload.namespace.as_str();
        if workload.volume {
            let claims = Api::<PersistentVolumeClaim>::namespaced(admin(), namespace);
            create::<PersistentVolume>(&Api::all(admin()), objects::volume(workload)).await?;
            create(&claims, objects::claim(workload)).await?;
        }
        if let Some(budget) = &workload.budget {
            let budgets = Api::<PodDisruptionBudget>::namespaced(admin(), namespace);
            create(&budgets, objects::budget(workload, budget)).await?;
        }
        let owner = objects::owner(workload);
        match workload.kind {
            WorkloadKind::ReplicaSet { .. } => {
                let sets =
                    Api::<k8s_openapi::api::apps::v1::ReplicaSet>::namespaced(admin(), namespace);
                create(&sets, owner).await
            }
            WorkloadKind::Deployment { .. } => {
                let deployments =
                    Api::<k8s_openapi::api::apps::v1::Deployment>::namespaced(admin(), namespace);
                create(&deployments, owner).await
            }
            WorkloadKind::DaemonSet => {
                let sets =
                    Api::<k8s_openapi::api::apps::v1::DaemonSet>::namespaced(admin(), namespace);
                create(&sets, owner).await
            }
        }
    }

    /// Waits until every node is Ready, every workload is whole and every budget is counted.
    pub async fn settled(&self) -> Result<(), Unsettled> {
        settle::settled(
            &self.clients.of(BUILDER),
            self.kubelets.len(),
            self.spec.settles_within,
        )
        .await
    }

    /// What it was built from.
    pub fn spec(&self) -> &ClusterSpec {
        &self.spec
    }

    /// Who gets which client.
    pub fn clients(&self) -> &Clients {
        &self.clients
    }

    /// The machines, by the names of their Nodes.
    pub fn kubelets(&self) -> &BTreeMap<NodeName, KubeletHandle> {
        &self.kubelets
    }

    /// One machine.
    pub fn kubelet(&self, node: &str) -> Option<&KubeletHandle> {
        self.kubelets.get(&NodeName::new(node).ok()?)
    }
}

fn kubelet(
    spec: &ClusterSpec,
    node: NodeName,
    clock: &Arc<dyn Clock>,
    reports: &mpsc::UnboundedSender<super::kubelet::PowerReport>,
    hub: Option<&PodHub>,
) -> KubeletConfig {
    let mut config = KubeletConfig::new(node, spec.seed, Arc::clone(clock));
    config.ready_after = spec.ready_after;
    config.reboot_takes = spec.reboot_takes;
    config.starts_after = spec.starts_after;
    config.stops_after = spec.stops_after;
    config.heartbeat = match spec.heartbeat {
        HeartbeatSpec::Lease { every } => Heartbeat::Lease { every },
        HeartbeatSpec::Quiet => Heartbeat::Quiet(reports.clone()),
    };
    config.pods = hub.map_or(PodSource::Own, |hub| PodSource::Shared(hub.clone()));
    if spec.is_control_plane(&config.node) {
        let role = dogwatch_api::label::CONTROL_PLANE;
        config.labels.insert(role.into(), String::new());
        config.taints = objects::control_plane_taints();
        config.static_pods.clone_from(&spec.static_pods);
    }
    config
}

/// Makes it; what is there already is left as it is.
async fn create<K>(api: &Api<K>, object: Value) -> Result<(), BuildError>
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
    let failed = |source| BuildError::Create { what, source };
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

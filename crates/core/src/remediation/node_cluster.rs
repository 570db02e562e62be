//! The cluster of a Node, where Machines and Nodes live in two clusters. Source: specification
//! §10.5.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::RemediationReason;
use super::host_link::RemediationProblem;
use super::machine::{MachineApi, ObjectName, ObservedMachine};
use super::record::RemediationRecord;
use super::snapshot::{HeldRemediationLease, RemediationSnapshot};
use crate::name::NodeName;
use crate::reboot::ObservedNode;

/// Where a Node lives.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum NodeCluster {
    /// The cluster of the controller.
    #[default]
    Management,
    /// The workload cluster of this Cluster of Cluster API.
    Workload(ObjectName),
}

/// What is known about a workload cluster.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkloadClusterState {
    /// Its kubeconfig names the controller's own cluster.
    IsManagement,
    Readable(ReadableCluster),
    /// Why no Node of it can be read. The message says what to do.
    Unreadable(RemediationProblem),
}

/// A workload cluster whose lists have arrived.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReadableCluster {
    /// UID of its namespace `kube-system`: no two clusters share one.
    pub uid: String,
    pub nodes: BTreeMap<NodeName, Arc<ObservedNode>>,
    /// The held `dogwatch-remedy-NODE` Leases, by Node.
    pub leases: BTreeMap<NodeName, HeldRemediationLease>,
    /// Whether Dogwatch is installed there, so that its budgets count our Leases.
    pub has_dogwatch: bool,
}

/// By Cluster.
pub type WorkloadClusters = BTreeMap<ObjectName, WorkloadClusterState>;

/// The cluster of one remediation's Node.
#[derive(Debug, Clone, PartialEq)]
pub struct RemediationCluster {
    pub name: NodeCluster,
    /// UID of a workload cluster that is readable.
    pub uid: Option<String>,
    /// Whether a Lease there counts the Node as unavailable.
    pub has_dogwatch: bool,
    /// Why nothing is known about the Node. Nothing is begun or released, and that the Node is not
    /// seen means nothing.
    pub problem: Option<RemediationProblem>,
}

impl RemediationCluster {
    /// The cluster of the controller.
    pub fn management() -> Self {
        Self {
            name: NodeCluster::Management,
            uid: None,
            has_dogwatch: true,
            problem: None,
        }
    }
}

impl NodeCluster {
    pub fn workload(&self) -> Option<&ObjectName> {
        match self {
            NodeCluster::Management => None,
            NodeCluster::Workload(name) => Some(name),
        }
    }

    /// The cluster with this name in a record or a backup; no name is the controller's own.
    pub(super) fn from_record(name: Option<&str>) -> Self {
        let Some(name) = name else {
            return NodeCluster::Management;
        };
        // A name that cannot be parsed is that of no readable cluster.
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        NodeCluster::Workload(ObjectName::new(namespace, name))
    }

    /// The name for a record or a backup.
    pub fn record_name(&self) -> Option<String> {
        self.workload().map(ToString::to_string)
    }
}

impl fmt::Display for NodeCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeCluster::Management => f.write_str("the management cluster"),
            NodeCluster::Workload(name) => write!(f, "workload cluster {name}"),
        }
    }
}

impl RemediationSnapshot {
    /// The cluster of a Machine's Node. A Machine of Cluster API that names no Cluster is in a
    /// cluster that nobody can read.
    pub(super) fn cluster_of_machine(&self, machine: &ObservedMachine) -> NodeCluster {
        let namespace = &machine.name.object.namespace;
        self.cluster_of_owner(machine.name.api, namespace, machine.cluster.as_deref())
    }

    /// The cluster that a Machine names, also if that is the controller's own.
    pub(super) fn named_cluster(&self, machine: &ObservedMachine) -> NodeCluster {
        match (&self.workload, machine.name.api) {
            (None, _) | (_, MachineApi::OpenShift) => NodeCluster::Management,
            (Some(_), MachineApi::ClusterApi) => NodeCluster::Workload(ObjectName::new(
                &machine.name.object.namespace,
                machine.cluster.as_deref().unwrap_or_default(),
            )),
        }
    }

    /// As [`Self::cluster_of_machine`], for a Machine that may be gone.
    pub(super) fn cluster_of_owner(
        &self,
        api: MachineApi,
        namespace: &str,
        cluster: Option<&str>,
    ) -> NodeCluster {
        let Some(workload) = &self.workload else {
            return NodeCluster::Management;
        };
        match api {
            MachineApi::OpenShift => NodeCluster::Management,
            MachineApi::ClusterApi => {
                let name = ObjectName::new(namespace, cluster.unwrap_or_default());
                match workload.get(&name) {
                    Some(WorkloadClusterState::IsManagement) => NodeCluster::Management,
                    Some(
                        WorkloadClusterState::Readable(_) | WorkloadClusterState::Unreadable(_),
                    )
                    | None => NodeCluster::Workload(name),
                }
            }
        }
    }

    /// The cluster that a record or a backup names.
    pub(super) fn cluster_by_record(&self, name: Option<&str>) -> NodeCluster {
        let cluster = NodeCluster::from_record(name);
        let states = self.workload.as_ref();
        let state = cluster.workload().and_then(|name| states?.get(name));
        match state {
            Some(WorkloadClusterState::IsManagement) => NodeCluster::Management,
            Some(WorkloadClusterState::Readable(_) | WorkloadClusterState::Unreadable(_))
            | None => cluster,
        }
    }

    fn readable_cluster(&self, name: &ObjectName) -> Result<&ReadableCluster, RemediationProblem> {
        let states = self.workload.as_ref();
        match states.and_then(|states| states.get(name)) {
            Some(WorkloadClusterState::Readable(cluster)) => Ok(cluster),
            Some(WorkloadClusterState::Unreadable(problem)) => Err(problem.clone()),
            Some(WorkloadClusterState::IsManagement) | None => {
                Err(unread_cluster_problem(name, states.is_some()))
            }
        }
    }

    /// Why the Nodes of this cluster may not be used, as far as its objects say.
    pub(super) fn cluster_problem(
        &self,
        name: &NodeCluster,
        record: Option<&RemediationRecord>,
        is_confirmed: bool,
    ) -> Option<RemediationProblem> {
        let record = record.filter(|record| record.ended_at().is_none());
        if let Some(problem) = record.and_then(|record| moved_problem(name, record)) {
            return Some(problem);
        }
        let name = name.workload()?;
        let cluster = match self.readable_cluster(name) {
            Ok(cluster) => cluster,
            Err(problem) => return Some(problem),
        };
        match record.and_then(|record| record.cluster_uid.as_ref()) {
            Some(uid) if *uid == cluster.uid => None,
            Some(uid) => Some(other_cluster_problem(
                name,
                &format!(
                    "its namespace kube-system has UID {}, and had {uid} when the host was powered off",
                    cluster.uid
                ),
            )),
            None if is_confirmed => None,
            None => Some(other_cluster_problem(
                name,
                "none of its Nodes has the name and the spec.providerID of a Machine of this Cluster",
            )),
        }
    }

    /// The Nodes of a cluster, as far as they can be read.
    pub(super) fn nodes_of_cluster(
        &self,
        name: &NodeCluster,
    ) -> Option<&BTreeMap<NodeName, Arc<ObservedNode>>> {
        match name {
            NodeCluster::Management => Some(&self.nodes),
            NodeCluster::Workload(name) => self
                .readable_cluster(name)
                .ok()
                .map(|cluster| &cluster.nodes),
        }
    }

    /// The held Leases of a cluster, as far as they can be read.
    pub(super) fn leases_of_cluster(
        &self,
        name: &NodeCluster,
    ) -> Option<&BTreeMap<NodeName, HeldRemediationLease>> {
        match name {
            NodeCluster::Management => Some(&self.leases),
            NodeCluster::Workload(name) => self
                .readable_cluster(name)
                .ok()
                .map(|cluster| &cluster.leases),
        }
    }

    /// The cluster of a remediation, with this problem.
    pub(super) fn remediation_cluster(
        &self,
        name: NodeCluster,
        problem: Option<RemediationProblem>,
    ) -> RemediationCluster {
        let readable = name.workload().map(|name| self.readable_cluster(name));
        match readable {
            None => RemediationCluster {
                problem,
                ..RemediationCluster::management()
            },
            Some(Ok(cluster)) => RemediationCluster {
                uid: Some(cluster.uid.clone()),
                has_dogwatch: cluster.has_dogwatch,
                problem,
                name,
            },
            Some(Err(unreadable)) => RemediationCluster {
                uid: None,
                has_dogwatch: false,
                problem: Some(unreadable),
                name,
            },
        }
    }
}

/// Whether a Node of a workload cluster is this Machine's: Cluster API sets `status.nodeRef` only
/// when both have the same `spec.providerID`.
pub(super) fn is_node_of_machine(node: &ObservedNode, machine: &ObservedMachine) -> bool {
    let ids = node.provider_id.as_ref().zip(machine.provider_id.as_ref());
    ids.is_some_and(|(node, machine)| node == machine)
}

/// The kubeconfig of a Cluster names the controller's own cluster, in which none of its Machines is
/// recognized. A remediation that began there with a Node is finished there.
pub(super) fn unconfirmed_management_problem(
    name: &ObjectName,
    record: Option<&RemediationRecord>,
) -> Option<RemediationProblem> {
    let record = record.filter(|record| record.ended_at().is_none());
    let has_begun =
        record.is_some_and(|record| record.cluster.is_none() && record.node_uid.is_some());
    let what = "it names the controller's own cluster, none of whose Nodes has the name and the \
                spec.providerID of a Machine of this Cluster";
    (!has_begun).then(|| other_cluster_problem(name, what))
}

/// The Node has the name, and is not the Machine's.
pub(super) fn foreign_node_problem(
    cluster: &ObjectName,
    node: &ObservedNode,
    machine: &ObservedMachine,
) -> RemediationProblem {
    let id = |id: &Option<String>| id.clone().unwrap_or_else(|| "none".to_owned());
    other_cluster_problem(
        cluster,
        &format!(
            "node {} there has spec.providerID {}, and machine {} has {}",
            node.name,
            id(&node.provider_id),
            machine.name,
            id(&machine.provider_id)
        ),
    )
}

/// The remediation began for a Node of another cluster. An older version named no cluster, and saw no
/// Node.
fn moved_problem(name: &NodeCluster, record: &RemediationRecord) -> Option<RemediationProblem> {
    let has_moved = record.cluster != name.record_name();
    let is_known = record.cluster.is_some() || record.node_uid.is_some();
    let text = || {
        format!(
            "the remediation began for a Node of {}, and the Machine's Node is in {name} now; check \
             the Machine's spec.clusterName and the controller's flag --workload-clusters",
            NodeCluster::from_record(record.cluster.as_deref())
        )
    };
    (has_moved && is_known).then(|| (RemediationReason::OtherCluster, text()))
}

fn other_cluster_problem(name: &ObjectName, what: &str) -> RemediationProblem {
    let text = format!(
        "the kubeconfig of workload cluster {name} may name another cluster: {what}; correct Secret \
         {name}-dogwatch-kubeconfig, or the Machine's status.nodeRef"
    );
    (RemediationReason::OtherCluster, text)
}

fn unread_cluster_problem(name: &ObjectName, is_enabled: bool) -> RemediationProblem {
    if is_enabled && !name.name.is_empty() {
        let text = format!("workload cluster {name} is being read");
        return (RemediationReason::TakenUp, text);
    }
    let text = if name.name.is_empty() {
        format!(
            "the Machine in namespace {} names no Cluster (spec.clusterName), so that its Node's cluster is not known",
            name.namespace
        )
    } else {
        format!(
            "the Node is in workload cluster {name}, and the controller runs without --workload-clusters"
        )
    };
    (RemediationReason::WorkloadClusterUnreachable, text)
}

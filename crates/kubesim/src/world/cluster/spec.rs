//! The specification of a simulated cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::seed::SimulationSeed;
use crate::world::controllers::ControllerName;

/// How nodes report that they are alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeartbeatSpec {
    /// By renewing their Leases at an interval.
    Lease { every: Duration },
    /// Inside the process, without API calls; the cluster does not notice a node that is cut off
    /// from the API server.
    Quiet,
}

/// The kind of object that owns a workload's pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkloadKind {
    ReplicaSet { replicas: u32 },
    Deployment { replicas: u32 },
    DaemonSet,
}

/// The workload's PodDisruptionBudget: a number or a percentage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkloadBudget {
    MinAvailable(String),
    MaxUnavailable(String),
}

/// A workload of identical pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedWorkload {
    pub kind: WorkloadKind,
    pub namespace: String,
    /// Its name, also the value of its pods' label `app`.
    pub name: String,
    /// Time until a pod is ready; `None` takes the cluster's.
    pub starts_after: Option<Duration>,
    /// Time that a pod takes to stop; `None` takes the cluster's.
    pub stops_after: Option<Duration>,
    /// The pods' grace period.
    pub grace: Duration,
    pub budget: Option<WorkloadBudget>,
    /// Whether its pods use a volume (all share one, so use it with one replica).
    pub volume: bool,
    /// Whether no two of its pods may share a node.
    pub anti_affinity: bool,
    /// Whether its pods tolerate every taint.
    pub tolerates_all: bool,
}

impl SimulatedWorkload {
    /// A workload in namespace `default` with the cluster's times and a grace period of 30s.
    pub fn new(kind: WorkloadKind, name: &str) -> Self {
        Self {
            kind,
            namespace: "default".into(),
            name: name.into(),
            starts_after: None,
            stops_after: None,
            grace: Duration::from_secs(30),
            budget: None,
            volume: false,
            anti_affinity: false,
            tolerates_all: false,
        }
    }
}

/// The specification of a cluster to build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSpec {
    /// Number of worker nodes. They are named `n1`, `n2` and so on, with as many digits as the last
    /// one needs.
    pub nodes: u32,
    /// Number of control-plane nodes. They are named `cp1` and so on, and have the usual taint.
    pub control_plane: u32,
    /// Names of the static pods on each control-plane node.
    pub static_pods: Vec<String>,
    /// Namespaces besides the usual ones and those of the workloads.
    pub namespaces: Vec<String>,
    pub workloads: Vec<SimulatedWorkload>,
    /// The source of everything random.
    pub seed: SimulationSeed,
    /// How nodes report that they are alive.
    pub heartbeat: HeartbeatSpec,
    /// Whether all kubelets share one watch on pods.
    pub shared_watch: bool,
    /// From a kubelet's start until its Node is Ready.
    pub ready_after: Duration,
    /// From a machine's stop until its kubelet runs again.
    pub reboot_takes: Duration,
    pub starts_after: Duration,
    pub stops_after: Duration,
    pub controllers: BTreeSet<ControllerName>,
    /// Time limit for the cluster to settle.
    pub settles_within: Duration,
}

impl ClusterSpec {
    /// A cluster with this number of workers and no workloads, with heartbeats and watches as in a
    /// real one.
    pub fn new(nodes: u32, seed: SimulationSeed) -> Self {
        Self {
            nodes,
            control_plane: 0,
            static_pods: vec!["kube-apiserver".into()],
            namespaces: Vec::new(),
            workloads: Vec::new(),
            seed,
            heartbeat: HeartbeatSpec::Lease {
                every: Duration::from_secs(10),
            },
            shared_watch: false,
            ready_after: Duration::from_secs(2),
            reboot_takes: Duration::from_secs(30),
            starts_after: Duration::from_secs(1),
            stops_after: Duration::from_secs(1),
            controllers: ControllerName::ALL.into(),
            settles_within: Duration::from_mins(10),
        }
    }

    /// The names of all nodes, the control plane's first.
    pub fn node_names(&self) -> impl Iterator<Item = String> + use<> {
        let named = |prefix: &'static str, count: u32| {
            let digits = count.to_string().len();
            (1..=count).map(move |number| format!("{prefix}{number:0digits$}"))
        };
        named("cp", self.control_plane).chain(named("n", self.nodes))
    }

    pub fn is_control_plane(&self, node: &str) -> bool {
        node.starts_with("cp")
    }

    pub fn needed_namespaces(&self) -> BTreeSet<String> {
        let fixed = ["default", "kube-system", "kube-node-lease"];
        let workloads = self
            .workloads
            .iter()
            .map(|workload| workload.namespace.clone());
        fixed
            .into_iter()
            .map(str::to_owned)
            .chain(self.namespaces.iter().cloned())
            .chain(workloads)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_names_sort_as_they_count() {
        let mut spec = ClusterSpec::new(12, SimulationSeed(1));
        spec.control_plane = 2;
        let names: Vec<_> = spec.node_names().collect();
        assert_eq!(names[..3], ["cp1", "cp2", "n01"]);
        assert_eq!(names[13], "n12");
    }
}

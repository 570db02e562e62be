//! What a simulated cluster consists of.

use std::collections::BTreeSet;
use std::time::Duration;

use dogwatch_core::name::NodeName;

use crate::seed::Seed;
use crate::world::controllers::Name;

/// How nodes show that they live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeartbeatSpec {
    /// By their Leases, so often.
    Lease {
        /// The interval.
        every: Duration,
    },
    /// Within the process, at no cost; a node that is cut off from the API server is not noticed.
    Quiet,
}

/// What owns a workload's pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkloadKind {
    /// A ReplicaSet of so many.
    ReplicaSet {
        /// How many.
        replicas: u32,
    },
    /// A Deployment of so many.
    Deployment {
        /// How many.
        replicas: u32,
    },
    /// A DaemonSet.
    DaemonSet,
}

/// How many of a workload's pods must, or may not, be there: a number or a percentage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Budget {
    /// At least so many.
    MinAvailable(String),
    /// At most so many away.
    MaxUnavailable(String),
}

/// Pods of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// What owns them.
    pub kind: WorkloadKind,
    /// Its namespace.
    pub namespace: String,
    /// Its name, also the value of its pods' label `app`.
    pub name: String,
    /// How long a pod takes to be ready; `None` is the cluster's.
    pub starts_after: Option<Duration>,
    /// How long a pod takes to stop; `None` is the cluster's.
    pub stops_after: Option<Duration>,
    /// The pods' grace period.
    pub grace: Duration,
    /// Its budget.
    pub budget: Option<Budget>,
    /// Whether its pods use a volume (one for all: it makes sense for one replica).
    pub volume: bool,
    /// Whether no two of its pods may share a node.
    pub apart: bool,
    /// Whether its pods tolerate every taint.
    pub tolerates_all: bool,
}

impl Workload {
    /// Pods in namespace `default` with the cluster's times and 30s of grace.
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
            apart: false,
            tolerates_all: false,
        }
    }
}

/// A cluster to build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSpec {
    /// Worker nodes, named `n1`, `n2` and so on, with as many digits as the last needs.
    pub nodes: u32,
    /// Control-plane nodes, named `cp1` and so on, tainted as usual.
    pub control_plane: u32,
    /// Names of the static pods on each control-plane node.
    pub static_pods: Vec<String>,
    /// What runs on it.
    pub workloads: Vec<Workload>,
    /// Where everything random comes from.
    pub seed: Seed,
    /// How nodes show that they live.
    pub heartbeat: HeartbeatSpec,
    /// Whether all kubelets share one watch on pods.
    pub shared_watch: bool,
    /// From a kubelet's start until its Node is Ready.
    pub ready_after: Duration,
    /// From a machine's stop until its kubelet runs again.
    pub reboot_takes: Duration,
    /// How long a pod takes to be ready.
    pub starts_after: Duration,
    /// How long a pod takes to stop.
    pub stops_after: Duration,
    /// The controllers that run.
    pub controllers: BTreeSet<Name>,
    /// How long it may take to come to rest.
    pub settles_within: Duration,
}

impl ClusterSpec {
    /// So many workers and nothing on them, with heartbeats and watches as in a real cluster.
    pub fn new(nodes: u32, seed: Seed) -> Self {
        Self {
            nodes,
            control_plane: 0,
            static_pods: vec!["kube-apiserver".into()],
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
            controllers: Name::ALL.into(),
            settles_within: Duration::from_mins(10),
        }
    }

    /// The names of all nodes, the control plane's first.
    pub fn node_names(&self) -> impl Iterator<Item = NodeName> + use<> {
        let named = |prefix: &'static str, count: u32| {
            let digits = count.to_string().len();
            (1..=count).map(move |number| {
                NodeName::new(format!("{prefix}{number:0digits$}")).expect("letters and digits")
            })
        };
        named("cp", self.control_plane).chain(named("n", self.nodes))
    }

    /// Whether this is one of the control plane's nodes.
    pub fn is_control_plane(&self, node: &NodeName) -> bool {
        node.as_str().starts_with("cp")
    }

    /// The namespaces that it needs.
    pub fn namespaces(&self) -> BTreeSet<String> {
        let fixed = [
            "default",
            "kube-system",
            "kube-node-lease",
            dogwatch_api::DEFAULT_NAMESPACE,
        ];
        let workloads = self
            .workloads
            .iter()
            .map(|workload| workload.namespace.clone());
        fixed
            .into_iter()
            .map(str::to_owned)
            .chain(workloads)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_names_sort_as_they_count() {
        let mut spec = ClusterSpec::new(12, Seed(1));
        spec.control_plane = 2;
        let names: Vec<_> = spec.node_names().map(String::from).collect();
        assert_eq!(names[..3], ["cp1", "cp2", "n01"]);
        assert_eq!(names[13], "n12");
    }
}

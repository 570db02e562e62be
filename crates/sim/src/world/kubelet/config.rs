//! What a simulated kubelet is told about its node.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::name::NodeName;
use k8s_openapi::api::core::v1::Taint;
use tokio::sync::mpsc;

use super::PowerReport;
use crate::clock::Clock;
use crate::seed::Seed;
use crate::world::pod_hub::PodHub;

/// How a node shows that it lives.
#[derive(Debug, Clone)]
pub enum Heartbeat {
    /// As a real kubelet: its Lease in `kube-node-lease` so often (a real one: 10s), and the times
    /// in its Node's conditions every thirtieth time.
    Lease {
        /// The interval.
        every: Duration,
    },
    /// Not at all over the API, for simulations of thousands of nodes over days: going off and
    /// coming back are reported here, to the controllers' manager.
    Quiet(mpsc::UnboundedSender<PowerReport>),
}

/// Where the kubelet learns of its pods.
#[derive(Clone)]
pub enum PodSource {
    /// By a watch of its own, as a real one.
    Own,
    /// By a watch that many kubelets share: thousands of watches cost more than they prove.
    Shared(PodHub),
}

/// A simulated kubelet and the machine it runs on.
#[derive(Clone)]
pub struct KubeletConfig {
    /// The Node's name.
    pub node: NodeName,
    /// Labels that it registers with, beside its host name's.
    pub labels: BTreeMap<String, String>,
    /// Taints that it registers with.
    pub taints: Vec<Taint>,
    /// Where its boot ids and machine id come from.
    pub seed: Seed,
    /// What time it is on this node.
    pub clock: Arc<dyn Clock>,
    /// From its start until the Node is Ready.
    pub ready_after: Duration,
    /// From the machine's stop in [`reboot`](super::KubeletHandle::reboot) until its kubelet runs.
    pub reboot_takes: Duration,
    /// How long a pod takes to be ready, where it does not say.
    pub starts_after: Duration,
    /// How long a pod takes to stop, where it does not say.
    pub stops_after: Duration,
    /// How it shows that it lives.
    pub heartbeat: Heartbeat,
    /// Names of the static pods that it runs: the API shows them as mirror pods in `kube-system`.
    pub static_pods: Vec<String>,
    /// How many pods it can run.
    pub capacity: u32,
    /// Where it learns of its pods.
    pub pods: PodSource,
}

impl KubeletConfig {
    /// A worker with the times of a quick machine: Ready after 2s, a reboot of 30s, pods that start
    /// and stop in 1s each, heartbeats as in a real cluster.
    pub fn new(node: NodeName, seed: Seed, clock: Arc<dyn Clock>) -> Self {
        Self {
            node,
            labels: BTreeMap::new(),
            taints: Vec::new(),
            seed,
            clock,
            ready_after: Duration::from_secs(2),
            reboot_takes: Duration::from_secs(30),
            starts_after: Duration::from_secs(1),
            stops_after: Duration::from_secs(1),
            heartbeat: Heartbeat::Lease {
                every: Duration::from_secs(10),
            },
            static_pods: Vec::new(),
            capacity: 500,
            pods: PodSource::Own,
        }
    }
}

//! Configuration of a simulated kubelet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Taint;
use tokio::sync::mpsc;

use super::PowerReport;
use crate::clock::ClusterClock;
use crate::seed::SimulationSeed;
use crate::world::pod_hub::PodHub;

/// How a node reports that it is alive.
#[derive(Debug, Clone)]
pub enum KubeletHeartbeat {
    /// Like a real kubelet: it renews its Lease in `kube-node-lease` at this interval (a real one:
    /// 10s), and posts the times in its Node's conditions at every thirtieth renewal.
    Lease { every: Duration },
    /// No heartbeats over the API, for simulations of thousands of nodes over days: power-off and
    /// power-on are reported to the controllers' manager through this channel.
    Quiet(mpsc::UnboundedSender<PowerReport>),
}

/// Where the kubelet gets its pods from.
#[derive(Clone)]
pub enum PodSource {
    /// From its own watch, like a real kubelet.
    Own,
    /// From a watch that many kubelets share: thousands of watches cost more than they prove.
    Shared(PodHub),
}

/// A simulated kubelet and the machine it runs on.
#[derive(Clone)]
pub struct KubeletConfig {
    pub node: String,
    /// Labels of the Node, besides its host name.
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    /// The source of its boot ids and machine id.
    pub seed: SimulationSeed,
    /// The clock of this node.
    pub clock: Arc<dyn ClusterClock>,
    /// From the kubelet's start until the Node is Ready.
    pub ready_after: Duration,
    /// From the machine's stop in [`reboot`](super::KubeletHandle::reboot) until its kubelet runs.
    pub reboot_takes: Duration,
    /// Time until a pod is ready, unless the pod's annotation gives one.
    pub starts_after: Duration,
    /// Time that a pod takes to stop, unless the pod's annotation gives one.
    pub stops_after: Duration,
    pub heartbeat: KubeletHeartbeat,
    /// Names of its static pods: the API shows them as mirror pods in `kube-system`.
    pub static_pods: Vec<String>,
    /// Number of pods that it can run.
    pub capacity: u32,
    pub pods: PodSource,
}

impl KubeletConfig {
    /// A worker on a fast machine: Ready after 2s, a reboot of 30s, pods that start and stop in 1s
    /// each, heartbeats as in a real cluster.
    pub fn new(
        node: impl Into<String>,
        seed: SimulationSeed,
        clock: Arc<dyn ClusterClock>,
    ) -> Self {
        Self {
            node: node.into(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            seed,
            clock,
            ready_after: Duration::from_secs(2),
            reboot_takes: Duration::from_secs(30),
            starts_after: Duration::from_secs(1),
            stops_after: Duration::from_secs(1),
            heartbeat: KubeletHeartbeat::Lease {
                every: Duration::from_secs(10),
            },
            static_pods: Vec::new(),
            capacity: 500,
            pods: PodSource::Own,
        }
    }
}

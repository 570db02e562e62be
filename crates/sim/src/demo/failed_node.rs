//! The failed machine of the demo: its kubelet dies while the host keeps writing to a volume. No
//! other machine may write before that host is proved off.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::annotation::{EXTERNAL_REMEDIATION, FENCING, NODE, NODE_BACKUP};
use dogwatch_core::power::{HostSnapshot, REBOOT_ANNOTATION};
use dogwatch_core::remediation::{RemediationRecord, RemediationStep};
use dogwatch_kubesim::api::ApiServer;
use dogwatch_kubesim::clock::{ClusterClock, TokioClock};
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_kubesim::world::cluster::kubelet_user;
use dogwatch_kubesim::world::{KubeletConfig, KubeletHandle, SimulatedKubelet};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::cluster::{DemoConfig, DemoError};
use crate::bare_metal::{BareMetalLab, SharedVolume};
use crate::observer::{ClusterObserver, NodeView, ObservedKind, parse_host};

/// The node that fails; its host has the same name.
pub(super) const FAILED_NODE: &str = "s1";
/// The node on which the workload continues.
pub(super) const SECOND_NODE: &str = "s2";
/// A label that an admin has set on the failing node.
pub(super) const ADMIN_LABEL: (&str, &str) = ("rack", "r7");
/// How long a node is silent before the simulated health check marks it, in seconds.
const NODE_SILENCE_SECONDS: f64 = 1.5;
/// How often each writer writes.
const WRITE_INTERVAL: Duration = Duration::from_millis(20);

/// Two storage nodes outside the rest of the cluster.
pub(super) struct FailedNodeDemo {
    kubelets: [KubeletHandle; 2],
    pub volume: SharedVolume,
    silent_for: Duration,
    act: FailedNodeStage,
    /// Whether the node may fail now.
    may_fail: bool,
    /// The UID of the first Node object.
    uid: String,
    pub second_since: Option<Timestamp>,
    /// The time of the proof of "off" in the host's status.
    pub proved_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailedNodeStage {
    /// The nodes are starting.
    Beginning,
    /// The kubelet has died.
    Silent { since: Instant },
    /// The node has the remediation mark.
    Marked,
    /// The Node is deleted, and the second node writes.
    Released,
}

impl FailedNodeDemo {
    pub fn start_nodes(
        config: &DemoConfig,
        server: &ApiServer,
        clock: &Arc<TokioClock>,
        yard: &mut BareMetalLab,
    ) -> Result<Self, DemoError> {
        let mut kubelet = |name: &str| -> Result<KubeletHandle, DemoError> {
            let kubelet = spawn_kubelet(name, config, server, clock);
            yard.add_host(name, Some(&kubelet), |machine, bmc| {
                machine.boots_after = config.scaled_time(2.5);
                bmc.acts_after = config.scaled_time(0.2);
            })?;
            yard.annotate_host(name, NODE, Some(name))?;
            Ok(kubelet)
        };
        Ok(Self {
            kubelets: [kubelet(FAILED_NODE)?, kubelet(SECOND_NODE)?],
            volume: SharedVolume::open_volume(WRITE_INTERVAL),
            silent_for: config.scaled_time(NODE_SILENCE_SECONDS),
            act: FailedNodeStage::Beginning,
            may_fail: false,
            uid: String::new(),
            second_since: None,
            proved_at: None,
        })
    }

    /// Lets the node fail as soon as it is Ready.
    pub fn permit_failure(&mut self) {
        self.may_fail = true;
    }

    /// Advances the stage if possible; returns what it did.
    pub fn advance_failure(
        &mut self,
        yard: &BareMetalLab,
        observer: &ClusterObserver,
    ) -> Result<Vec<String>, DemoError> {
        let node = observer.get_object(ObservedKind::Node, FAILED_NODE);
        if let Some(at) = observed_host(observer).and_then(|host| off_proved_at(&host)) {
            self.proved_at = Some(at);
        }
        match self.act {
            FailedNodeStage::Beginning => match node {
                Some(node) if self.may_fail && NodeView::from_object(node).ready => {
                    self.kill_kubelet(yard, node)
                }
                Some(_) | None => Ok(Vec::new()),
            },
            FailedNodeStage::Silent { since } if since.elapsed() >= self.silent_for => {
                self.act = FailedNodeStage::Marked;
                yard.patch_node(FAILED_NODE, &annotation_patch(EXTERNAL_REMEDIATION))?;
                let text = format!(
                    "a health check has seen no heartbeat of {FAILED_NODE} for a while: it marks the Node with {EXTERNAL_REMEDIATION}"
                );
                Ok(vec![text])
            }
            FailedNodeStage::Marked if node.is_none() => {
                self.act = FailedNodeStage::Released;
                self.second_since = Some(yard.now());
                let machine = yard
                    .machine_of_host(SECOND_NODE)
                    .expect("it was added at the start");
                self.volume.mount_on_machine(SECOND_NODE, &machine);
                let text = format!(
                    "Node {FAILED_NODE} was deleted: its database starts on {SECOND_NODE} and writes to the same volume"
                );
                Ok(vec![text])
            }
            FailedNodeStage::Silent { .. }
            | FailedNodeStage::Marked
            | FailedNodeStage::Released => Ok(Vec::new()),
        }
    }

    fn kill_kubelet(
        &mut self,
        yard: &BareMetalLab,
        node: &Value,
    ) -> Result<Vec<String>, DemoError> {
        let machine = yard
            .machine_of_host(FAILED_NODE)
            .expect("it was added at the start");
        object_uid(node).clone_into(&mut self.uid);
        self.act = FailedNodeStage::Silent {
            since: Instant::now(),
        };
        let (name, value) = ADMIN_LABEL;
        let label = json!({ "metadata": { "labels": { name: value } } });
        yard.patch_node(FAILED_NODE, &label)?;
        self.volume.mount_on_machine(FAILED_NODE, &machine);
        self.kubelets[0].kill_kubelet();
        Ok(vec![format!(
            "the kubelet of {FAILED_NODE} dies; the database on {FAILED_NODE} keeps running and writing to its volume"
        )])
    }

    /// Whether the Node is a new object, Ready and labelled, with no trace of the remediation.
    pub fn is_recovered(&self, observer: &ClusterObserver) -> bool {
        let node = observer.get_object(ObservedKind::Node, FAILED_NODE);
        let is_back = node.is_some_and(|node| {
            let marks = &node["metadata"]["annotations"];
            NodeView::from_object(node).ready
                && object_uid(node) != self.uid
                && has_admin_label(node)
                && marks[FENCING].is_null()
        });
        let is_clean = observed_host(observer).is_some_and(|host| {
            let mut names = host.annotations.keys();
            !names.any(|name| name.starts_with(REBOOT_ANNOTATION) || name == NODE_BACKUP)
                && remediation_record(&host)
                    .is_some_and(|record| record.time_of_step(RemediationStep::NodeReady).is_some())
        });
        self.act == FailedNodeStage::Released && is_back && is_clean
    }
}

pub(super) fn has_admin_label(node: &Value) -> bool {
    let (name, value) = ADMIN_LABEL;
    node["metadata"]["labels"][name] == value
}

fn spawn_kubelet(
    name: &str,
    config: &DemoConfig,
    server: &ApiServer,
    clock: &Arc<TokioClock>,
) -> KubeletHandle {
    let clock = Arc::clone(clock) as Arc<dyn ClusterClock>;
    let client = server.client_for_user(&kubelet_user(name));
    let mut kubelet = KubeletConfig::new(name, SimulationSeed(config.seed), clock);
    kubelet.ready_after = config.scaled_time(0.3);
    // Keeps other pods of the demo away, and planned reboots from counting the node.
    let taint = json!({ "key": "storage", "value": "only", "effect": "NoSchedule" });
    kubelet.taints = vec![serde_json::from_value(taint).expect("a taint")];
    let ignored = (dogwatch_api::label::IGNORE.to_owned(), "true".to_owned());
    kubelet.labels.extend([ignored]);
    SimulatedKubelet::start_machine(client, kubelet)
}

fn annotation_patch(name: &str) -> Value {
    json!({ "metadata": { "annotations": { name: "" } } })
}

fn object_uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

fn observed_host(observer: &ClusterObserver) -> Option<HostSnapshot> {
    observer
        .get_object(ObservedKind::Host, FAILED_NODE)
        .and_then(parse_host)
}

fn remediation_record(host: &HostSnapshot) -> Option<RemediationRecord> {
    let text = host
        .annotations
        .get(dogwatch_api::annotation::REMEDIATION)?;
    serde_json::from_str(text).ok()
}

fn off_proved_at(host: &HostSnapshot) -> Option<Timestamp> {
    remediation_record(host)?.time_of_step(RemediationStep::OffProved)
}

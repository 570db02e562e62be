//! The failed machine's part of the play: a kubelet dies while its host keeps writing to a volume. Nobody
//! else may write before that host is proved off.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::annotation::{EXTERNAL_REMEDIATION, FENCING, NODE, NODE_BACKUP};
use dogwatch_core::name::NodeName;
use dogwatch_core::power::{Host, REBOOT};
use dogwatch_core::remedy::{Record, Step};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::cluster::{DemoConfig, DemoError};
use crate::api::ApiServer;
use crate::chronicle::{Kind, NodeView, Observer, host_of};
use crate::clock::{Clock, TokioClock};
use crate::metal::{Volume, Yard};
use crate::seed::Seed;
use crate::world::cluster::kubelet_user;
use crate::world::{Kubelet, KubeletConfig, KubeletHandle};

/// The node that fails, and its host.
pub(super) const FAILED: &str = "s1";
/// Where its work goes on.
pub(super) const SECOND: &str = "s2";
/// What an admin had put on the node that fails.
pub(super) const LABEL: (&str, &str) = ("rack", "r7");
/// How long nothing is heard of a node before the pretend health check marks it.
const SILENT_FOR: f64 = 2.0;
/// So often a writer writes.
const WRITES_EVERY: Duration = Duration::from_millis(20);

/// Two storage nodes, no others of the cluster's.
pub(super) struct Failed {
    kubelets: [KubeletHandle; 2],
    pub volume: Volume,
    silent_for: Duration,
    act: Act,
    /// Whose Node was there at first.
    uid: String,
    /// When the second writer started.
    pub second_since: Option<Timestamp>,
    /// When off was proved, as the host's own record has it.
    pub proved_at: Option<Timestamp>,
}

/// How far the play is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// The nodes come up.
    Beginning,
    /// Its kubelet has died.
    Silent { since: Instant },
    /// It is marked.
    Marked,
    /// Its Node is gone, and the second one writes.
    Released,
}

impl Failed {
    pub fn start(
        config: &DemoConfig,
        server: &ApiServer,
        clock: &Arc<TokioClock>,
        yard: &mut Yard,
    ) -> Result<Self, DemoError> {
        let mut kubelet = |name: &str| -> Result<KubeletHandle, DemoError> {
            let kubelet = kubelet(name, config, server, clock);
            yard.add(name, Some(&kubelet), |machine, bmc| {
                machine.boots_after = config.time(2.5);
                bmc.acts_after = config.time(0.2);
            })?;
            yard.annotate(name, NODE, Some(name))?;
            Ok(kubelet)
        };
        Ok(Self {
            kubelets: [kubelet(FAILED)?, kubelet(SECOND)?],
            volume: Volume::open(WRITES_EVERY),
            silent_for: config.time(SILENT_FOR),
            act: Act::Beginning,
            uid: String::new(),
            second_since: None,
            proved_at: None,
        })
    }

    /// Goes on where it can; what was done.
    pub fn play(&mut self, yard: &Yard, observer: &Observer) -> Result<Vec<String>, DemoError> {
        let node = observer.get(Kind::Node, FAILED);
        if let Some(at) = host(observer).and_then(|host| proved_at(&host)) {
            self.proved_at = Some(at);
        }
        match self.act {
            Act::Beginning => match node {
                Some(node) if NodeView::of(node).ready => self.dies(yard, node),
                Some(_) | None => Ok(Vec::new()),
            },
            Act::Silent { since } if since.elapsed() >= self.silent_for => {
                self.act = Act::Marked;
                yard.change_node(FAILED, &annotations(EXTERNAL_REMEDIATION))?;
                let text = format!(
                    "a health check has heard nothing of {FAILED} for a while: it marks the Node with {EXTERNAL_REMEDIATION}"
                );
                Ok(vec![text])
            }
            Act::Marked if node.is_none() => {
                self.act = Act::Released;
                self.second_since = Some(yard.now());
                let machine = yard.machine(SECOND).expect("it was added at the start");
                self.volume.mount(SECOND, &machine);
                let text = format!(
                    "Node {FAILED} is gone: its database starts on {SECOND}, and writes to the same volume"
                );
                Ok(vec![text])
            }
            Act::Silent { .. } | Act::Marked | Act::Released => Ok(Vec::new()),
        }
    }

    fn dies(&mut self, yard: &Yard, node: &Value) -> Result<Vec<String>, DemoError> {
        let machine = yard.machine(FAILED).expect("it was added at the start");
        uid(node).clone_into(&mut self.uid);
        self.act = Act::Silent {
            since: Instant::now(),
        };
        let (name, value) = LABEL;
        let label = json!({ "metadata": { "labels": { name: value } } });
        yard.change_node(FAILED, &label)?;
        self.volume.mount(FAILED, &machine);
        self.kubelets[0].kubelet_dies();
        Ok(vec![format!(
            "the kubelet of {FAILED} dies; its database runs on, and keeps writing to its volume"
        )])
    }

    /// The Node is another one, Ready and labelled, and nothing of the remediation is left.
    pub fn is_over(&self, observer: &Observer) -> bool {
        let node = observer.get(Kind::Node, FAILED);
        let is_back = node.is_some_and(|node| {
            let marks = &node["metadata"]["annotations"];
            NodeView::of(node).ready
                && uid(node) != self.uid
                && is_labelled(node)
                && marks[FENCING].is_null()
        });
        let is_clean = host(observer).is_some_and(|host| {
            let mut names = host.annotations.keys();
            !names.any(|name| name.starts_with(REBOOT) || name == NODE_BACKUP)
                && record(&host).is_some_and(|record| record.at(Step::NodeReady).is_some())
        });
        self.act == Act::Released && is_back && is_clean
    }
}

pub(super) fn is_labelled(node: &Value) -> bool {
    let (name, value) = LABEL;
    node["metadata"]["labels"][name] == value
}

fn kubelet(
    name: &str,
    config: &DemoConfig,
    server: &ApiServer,
    clock: &Arc<TokioClock>,
) -> KubeletHandle {
    let node = NodeName::new(name).expect("letters and digits");
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let client = server.client(&kubelet_user(&node));
    let mut kubelet = KubeletConfig::new(node, Seed(config.seed), clock);
    kubelet.ready_after = config.time(0.3);
    // No pod of the other parts comes here, and planned reboots do not count it.
    let taint = json!({ "key": "storage", "value": "only", "effect": "NoSchedule" });
    kubelet.taints = vec![serde_json::from_value(taint).expect("a taint")];
    let ignored = (dogwatch_api::label::IGNORE.to_owned(), "true".to_owned());
    kubelet.labels.extend([ignored]);
    Kubelet::start(client, kubelet)
}

fn annotations(name: &str) -> Value {
    json!({ "metadata": { "annotations": { name: "" } } })
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

fn host(observer: &Observer) -> Option<Host> {
    observer.get(Kind::Host, FAILED).and_then(host_of)
}

fn record(host: &Host) -> Option<Record> {
    let text = host
        .annotations
        .get(dogwatch_api::annotation::REMEDIATION)?;
    serde_json::from_str(text).ok()
}

fn proved_at(host: &Host) -> Option<Timestamp> {
    record(host)?.at(Step::OffProved)
}

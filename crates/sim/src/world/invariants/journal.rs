//! What was seen of Nodes and pods, as far as it is judged, in the order of resource versions.

use std::collections::BTreeMap;

use dogwatch_api::{annotation, label};
use dogwatch_core::reboot::{Phase, Record};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;

use crate::world::cache::Change;
use crate::world::controllers::words;

/// A Node at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// `control-plane` or `default`.
    pub group: &'static str,
    /// Its Ready condition is True.
    pub ready: bool,
    /// It is cordoned.
    pub unschedulable: bool,
    /// The phase of its planned reboot.
    pub phase: Option<Phase>,
    /// Its boot id; empty before it told one.
    pub boot_id: String,
}

/// Whose a pod is, as far as a drain cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kin {
    /// A static pod's shadow.
    Mirror,
    /// A DaemonSet's.
    Daemon,
    /// Anybody else's: it has to leave.
    Other,
}

/// A pod at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodState {
    /// `namespace/name`.
    pub name: String,
    /// Where it runs.
    pub node: String,
    /// Whose it is.
    pub kin: Kin,
    /// It is being deleted.
    pub deleting: bool,
    /// It ended by itself, or has not started: nothing is lost with it.
    pub idle: bool,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A Node is like this now; `None`: it is gone.
    Node(String, Option<NodeState>),
    /// A pod, by its UID.
    Pod(String, Option<PodState>),
}

/// All changes. Heartbeats and the like change nothing that is judged and are not written.
#[derive(Debug, Default)]
pub struct Journal {
    /// By resource version; where several share one (a list after a gap), by their order.
    entries: BTreeMap<(u64, usize), (Timestamp, Entry)>,
    nodes: BTreeMap<String, NodeState>,
    pods: BTreeMap<String, PodState>,
}

impl Journal {
    /// The entries, in order.
    pub fn entries(&self) -> impl Iterator<Item = (Timestamp, &Entry)> {
        self.entries.values().map(|(at, entry)| (*at, entry))
    }

    /// Writes down a change of the cache.
    pub fn write(&mut self, change: &Change, now: Timestamp) {
        match change {
            Change::Node(shift) => match (&shift.old, &shift.new) {
                (_, Some(node)) => self.node(node, now),
                (Some(node), None) => self.node_gone(node, self.last_version(), now),
                (None, None) => {}
            },
            Change::Pod(shift) => match (&shift.old, &shift.new) {
                (_, Some(pod)) => self.pod(pod, now),
                (Some(pod), None) => self.pod_gone(pod, self.last_version(), now),
                (None, None) => {}
            },
            Change::ReplicaSet(_)
            | Change::DaemonSet(_)
            | Change::Deployment(_)
            | Change::Budget(_)
            | Change::Attachment(_)
            | Change::Claim(_)
            | Change::NodeLease(_)
            | Change::Power { .. } => {}
        }
    }

    /// A Node was deleted at this version.
    pub fn node_gone(&mut self, node: &Node, version: u64, now: Timestamp) {
        if self.nodes.remove(&node.name_any()).is_some() {
            self.enter(version, now, Entry::Node(node.name_any(), None));
        }
    }

    /// A pod was deleted at this version.
    pub fn pod_gone(&mut self, pod: &Pod, version: u64, now: Timestamp) {
        let uid = pod.uid().unwrap_or_default();
        let known = self.pods.remove(&uid);
        // A deletion without grace is told by its end only.
        if let Some(mut state) = known {
            if !state.deleting {
                state.deleting = true;
                self.enter(version, now, Entry::Pod(uid.clone(), Some(state)));
            }
            self.enter(version, now, Entry::Pod(uid, None));
        }
    }

    fn node(&mut self, node: &Node, now: Timestamp) {
        let (name, state) = (node.name_any(), node_state(node));
        if self.nodes.get(&name) != Some(&state) {
            self.nodes.insert(name.clone(), state.clone());
            self.enter(version(&node.metadata), now, Entry::Node(name, Some(state)));
        }
    }

    fn pod(&mut self, pod: &Pod, now: Timestamp) {
        let uid = pod.uid().unwrap_or_default();
        let Some(state) = pod_state(pod) else { return };
        if self.pods.get(&uid) != Some(&state) {
            self.pods.insert(uid.clone(), state.clone());
            self.enter(version(&pod.metadata), now, Entry::Pod(uid, Some(state)));
        }
    }

    fn enter(&mut self, version: u64, now: Timestamp, entry: Entry) {
        let serial = self.entries.len();
        self.entries.insert((version, serial), (now, entry));
    }

    fn last_version(&self) -> u64 {
        self.entries
            .last_key_value()
            .map_or(0, |((version, _), _)| *version)
    }
}

/// The object's place in the order of all changes.
pub fn version(meta: &ObjectMeta) -> u64 {
    let text = meta.resource_version.as_deref().unwrap_or_default();
    text.parse().unwrap_or(0)
}

fn node_state(node: &Node) -> NodeState {
    let record = node.annotations().get(annotation::REBOOT);
    let record = record.and_then(|text| serde_json::from_str::<Record>(text).ok());
    let info = node
        .status
        .as_ref()
        .and_then(|status| status.node_info.as_ref());
    NodeState {
        group: if node.labels().contains_key(label::CONTROL_PLANE) {
            "control-plane"
        } else {
            "default"
        },
        ready: words::node_ready(node) == "True",
        unschedulable: words::is_unschedulable(node),
        phase: record.map(|record| record.phase),
        boot_id: info.map(|info| info.boot_id.clone()).unwrap_or_default(),
    }
}

fn pod_state(pod: &Pod) -> Option<PodState> {
    let owner = words::controller(&pod.metadata);
    let kin = if pod.annotations().contains_key(annotation::MIRROR_POD) {
        Kin::Mirror
    } else if owner.is_some_and(|owner| owner.kind == "DaemonSet") {
        Kin::Daemon
    } else {
        Kin::Other
    };
    Some(PodState {
        name: format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any()),
        node: words::node_of(pod)?.to_owned(),
        kin,
        deleting: words::is_deleting(pod),
        idle: words::phase(pod) != "Running",
    })
}

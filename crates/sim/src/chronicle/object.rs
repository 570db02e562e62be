//! What matters of an object.

use std::collections::BTreeMap;

use dogwatch_api::{annotation, label};
use dogwatch_core::reboot::{LastReboot, Parsed, Phase, Record};
use serde_json::Value;

/// A text deep in an object; empty where there is none.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn labels(object: &Value) -> BTreeMap<String, String> {
    let labels = object["metadata"]["labels"].as_object();
    let all = labels.into_iter().flatten();
    all.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}

fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][name].as_str()
}

/// A Node.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "they are the object's own")]
pub struct NodeView {
    /// `spec.unschedulable`.
    pub cordoned: bool,
    /// Condition `Ready` is `True`.
    pub ready: bool,
    /// `status.nodeInfo.bootID`.
    pub boot: String,
    /// The record of the reboot under way.
    pub record: Option<Record>,
    /// The last reboot.
    pub last: Option<LastReboot>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether it is labelled as waiting for the lock.
    pub waiting_label: bool,
    /// Whether it is labelled to count in no budget.
    pub ignored: bool,
    /// Whether the lock API has taken it out of service.
    pub api_lock: bool,
    /// Its conditions that are `True`, with their reasons.
    pub conditions: Vec<(String, String, String)>,
}

impl NodeView {
    /// Reads a Node.
    pub fn of(node: &Value) -> Self {
        let conditions = node["status"]["conditions"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let is_true = |condition: &&Value| condition["status"] == "True";
        let labels = labels(node);
        Self {
            cordoned: node["spec"]["unschedulable"].as_bool().unwrap_or(false),
            ready: conditions
                .iter()
                .filter(is_true)
                .any(|condition| condition["type"] == "Ready"),
            boot: text(node, "/status/nodeInfo/bootID").to_owned(),
            record: Parsed::read(annotation(node, annotation::REBOOT))
                .get()
                .cloned(),
            last: Parsed::read(annotation(node, annotation::LAST_REBOOT))
                .get()
                .cloned(),
            waiting_label: labels.contains_key(label::REBOOT),
            ignored: labels
                .get(label::IGNORE)
                .is_some_and(|value| value == "true"),
            labels,
            api_lock: annotation(node, annotation::API_LOCK).is_some(),
            conditions: conditions
                .iter()
                .filter(is_true)
                .map(|condition| {
                    let word = |field| text(condition, field).to_owned();
                    (word("/type"), word("/reason"), word("/message"))
                })
                .collect(),
        }
    }

    /// The reason and message of a condition, if it is `True`.
    pub fn condition(&self, kind: &str) -> Option<(&str, &str)> {
        let found = self.conditions.iter().find(|(name, ..)| name == kind);
        found.map(|(_, reason, message)| (reason.as_str(), message.as_str()))
    }

    /// Whether Dogwatch keeps it out of service: a reboot has begun and is not over, and no pod can
    /// run there. After the boot a cordon that is somebody else's is on their account.
    pub fn is_out_by_us(&self) -> bool {
        let Some(record) = &self.record else {
            return false;
        };
        match record.phase {
            Phase::Waiting => false,
            Phase::Draining | Phase::Rebooting => self.cordoned || !self.ready,
            Phase::Returning => (self.cordoned && record.cordoned_by_us) || !self.ready,
        }
    }
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodView {
    /// Where it runs; empty while it is nowhere.
    pub node: String,
    /// The value of its label `app`.
    pub app: String,
    /// Whether it was told to end.
    pub leaving: bool,
    /// Whether it is Ready.
    pub ready: bool,
    /// Whether the node's kubelet runs it whatever the scheduler does: a DaemonSet's, a mirror.
    pub stays: bool,
}

impl PodView {
    /// Reads a pod.
    pub fn of(pod: &Value) -> Self {
        let conditions = pod["status"]["conditions"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let owners = pod["metadata"]["ownerReferences"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let owned = owners
            .iter()
            .any(|owner| owner["kind"] == "DaemonSet" || owner["kind"] == "Node");
        Self {
            node: text(pod, "/spec/nodeName").to_owned(),
            app: text(pod, "/metadata/labels/app").to_owned(),
            leaving: !pod["metadata"]["deletionTimestamp"].is_null(),
            ready: conditions
                .iter()
                .any(|one| one["type"] == "Ready" && one["status"] == "True"),
            stays: owned || annotation(pod, annotation::MIRROR_POD).is_some(),
        }
    }
}

/// The holder of a Lease.
pub fn holder_of(lease: &Value) -> Option<&str> {
    lease["spec"]["holderIdentity"]
        .as_str()
        .filter(|holder| !holder.is_empty())
}

/// Healthy and desired pods of a budget, if it is counted and has fewer than it wants.
pub fn budget_shortage(budget: &Value) -> Option<(i64, i64)> {
    let status = &budget["status"];
    let counted = status["observedGeneration"] == budget["metadata"]["generation"];
    let (healthy, desired) = (
        status["currentHealthy"].as_i64()?,
        status["desiredHealthy"].as_i64()?,
    );
    (counted && healthy < desired).then_some((healthy, desired))
}

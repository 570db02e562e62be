//! Views of the objects' fields that observers need.

use std::collections::BTreeMap;

use dogwatch_api::node_reboot::RebootMethod;
use dogwatch_api::{annotation, label};
use dogwatch_core::policy::RolloutCandidate;
use dogwatch_core::reboot::{LastReboot, ParsedAnnotation, RebootPhase, RebootRecord};
use serde_json::Value;

/// The text at a JSON pointer; empty if there is none.
pub fn text_at_pointer<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn object_labels(object: &Value) -> BTreeMap<String, String> {
    let labels = object["metadata"]["labels"].as_object();
    let all = labels.into_iter().flatten();
    all.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}

fn object_annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][name].as_str()
}

#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "they are the object's own")]
pub struct NodeView {
    pub uid: String,
    /// `spec.unschedulable`.
    pub cordoned: bool,
    /// Condition `Ready` is `True`.
    pub ready: bool,
    /// `status.nodeInfo.bootID`.
    pub boot: String,
    /// The record of a reboot in progress.
    pub record: Option<RebootRecord>,
    pub last: Option<LastReboot>,
    pub labels: BTreeMap<String, String>,
    /// Whether a label says that it waits for the lock.
    pub waiting_label: bool,
    /// Whether a label excludes it from budgets.
    pub ignored: bool,
    /// Whether the lock API has cordoned it.
    pub api_lock: bool,
    /// The type, reason and message of each condition that is `True`.
    pub conditions: Vec<(String, String, String)>,
}

impl NodeView {
    pub fn from_object(node: &Value) -> Self {
        let conditions = node["status"]["conditions"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let is_true = |condition: &&Value| condition["status"] == "True";
        let labels = object_labels(node);
        Self {
            uid: text_at_pointer(node, "/metadata/uid").to_owned(),
            cordoned: node["spec"]["unschedulable"].as_bool().unwrap_or(false),
            ready: conditions
                .iter()
                .filter(is_true)
                .any(|condition| condition["type"] == "Ready"),
            boot: text_at_pointer(node, "/status/nodeInfo/bootID").to_owned(),
            record: ParsedAnnotation::from_text(object_annotation(node, annotation::REBOOT))
                .get()
                .cloned(),
            last: ParsedAnnotation::from_text(object_annotation(node, annotation::LAST_REBOOT))
                .get()
                .cloned(),
            waiting_label: labels.contains_key(label::REBOOT),
            ignored: labels
                .get(label::IGNORE)
                .is_some_and(|value| value == "true"),
            labels,
            api_lock: object_annotation(node, annotation::API_LOCK).is_some(),
            conditions: conditions
                .iter()
                .filter(is_true)
                .map(|condition| {
                    let word = |field| text_at_pointer(condition, field).to_owned();
                    (word("/type"), word("/reason"), word("/message"))
                })
                .collect(),
        }
    }

    /// Who begins, for the rollout of its policy.
    pub fn rollout_candidate<'a>(&'a self, name: &'a str) -> RolloutCandidate<'a> {
        let record = self.record.as_ref();
        if record.is_some_and(|record| record.trigger.method == RebootMethod::Hold) {
            return RolloutCandidate::Hold;
        }
        RolloutCandidate::Reboot {
            node: name,
            uid: &self.uid,
            boot_id: record.map(|record| &record.boot_id),
        }
    }

    /// The reason and message of a condition, if it is `True`.
    pub fn true_condition(&self, kind: &str) -> Option<(&str, &str)> {
        let found = self.conditions.iter().find(|(name, ..)| name == kind);
        found.map(|(_, reason, message)| (reason.as_str(), message.as_str()))
    }

    /// Whether Dogwatch keeps the node out of service: a reboot is in progress, and no pod can run
    /// there. After the boot, a cordon that Dogwatch did not set does not count, nor does a boot that
    /// somebody else brought about, without a lock.
    pub fn is_out_by_us(&self) -> bool {
        let Some(record) = &self.record else {
            return false;
        };
        match record.phase {
            RebootPhase::Waiting => false,
            RebootPhase::Draining | RebootPhase::Holding | RebootPhase::Rebooting => {
                self.cordoned || !self.ready
            }
            RebootPhase::Returning => {
                (self.cordoned && record.cordoned_by_us) || (!self.ready && record.lease.is_some())
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodView {
    /// The node that runs the pod; empty while it is not scheduled.
    pub node: String,
    /// The value of its label `app`.
    pub app: String,
    /// Whether the pod is being deleted.
    pub leaving: bool,
    pub ready: bool,
    /// Whether the kubelet runs it whatever the scheduler does: a DaemonSet's pod or a mirror pod.
    pub stays: bool,
}

impl PodView {
    pub fn from_object(pod: &Value) -> Self {
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
            node: text_at_pointer(pod, "/spec/nodeName").to_owned(),
            app: text_at_pointer(pod, "/metadata/labels/app").to_owned(),
            leaving: !pod["metadata"]["deletionTimestamp"].is_null(),
            ready: conditions
                .iter()
                .any(|one| one["type"] == "Ready" && one["status"] == "True"),
            stays: owned || object_annotation(pod, annotation::MIRROR_POD).is_some(),
        }
    }
}

pub fn lease_holder(lease: &Value) -> Option<&str> {
    lease["spec"]["holderIdentity"]
        .as_str()
        .filter(|holder| !holder.is_empty())
}

/// Healthy and desired pods of a PodDisruptionBudget, if its status is current and too few pods are
/// healthy.
pub fn budget_shortage(budget: &Value) -> Option<(i64, i64)> {
    let status = &budget["status"];
    let counted = status["observedGeneration"] == budget["metadata"]["generation"];
    let (healthy, desired) = (
        status["currentHealthy"].as_i64()?,
        status["desiredHealthy"].as_i64()?,
    );
    (counted && healthy < desired).then_some((healthy, desired))
}

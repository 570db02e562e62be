//! What a remediation stores: the record of its steps on the host, and the backup of the Node.

use std::collections::BTreeMap;

use crate::json_default::is_default;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Annotation `dogwatch.dev/remediation` on a host: its newest remediation. It is for people, for
/// the cooldown and for durations; nothing is released because of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemediationRecord {
    /// `machine/NS/NAME`, `node/NAME` or `powerremediation/NS/NAME`.
    pub subject: String,
    /// UID of the subject.
    pub uid: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(default, rename = "nodeUID", skip_serializing_if = "Option::is_none")]
    pub node_uid: Option<String>,
    /// `NAMESPACE/NAME` of the Cluster whose Node it is; `None`: the controller's own cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// UID of namespace `kube-system` of that cluster.
    #[serde(
        default,
        rename = "clusterUID",
        skip_serializing_if = "Option::is_none"
    )]
    pub cluster_uid: Option<String>,
    /// The boot that the remediation ends.
    #[serde(default, rename = "bootID", skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Counted from 1.
    pub attempt: u32,
    /// Oldest first.
    pub steps: Vec<StepStamp>,
}

/// When a step was done, by the clock of the leader at the time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepStamp {
    pub step: RemediationStep,
    pub at: Timestamp,
}

/// The steps of a remediation, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RemediationStep {
    /// The remediation was requested, and Dogwatch saw it.
    Requested,
    KeyAdded,
    OffProved,
    /// The Node was deleted or tainted.
    Released,
    KeyRemoved,
    PoweredOn,
    /// The Node is Ready with another boot.
    NodeReady,
    /// Withdrawn before the host was off.
    Withdrawn,
    /// Dogwatch gave up.
    Failed,
}

impl RemediationStep {
    /// The step's name in annotations and status.
    pub fn as_str(self) -> &'static str {
        match self {
            RemediationStep::Requested => "Requested",
            RemediationStep::KeyAdded => "KeyAdded",
            RemediationStep::OffProved => "OffProved",
            RemediationStep::Released => "Released",
            RemediationStep::KeyRemoved => "KeyRemoved",
            RemediationStep::PoweredOn => "PoweredOn",
            RemediationStep::NodeReady => "NodeReady",
            RemediationStep::Withdrawn => "Withdrawn",
            RemediationStep::Failed => "Failed",
        }
    }

    pub fn is_end(self) -> bool {
        matches!(
            self,
            RemediationStep::NodeReady | RemediationStep::Withdrawn | RemediationStep::Failed
        )
    }
}

impl RemediationRecord {
    pub fn time_of_step(&self, step: RemediationStep) -> Option<Timestamp> {
        let mut steps = self.steps.iter();
        steps.find(|stamp| stamp.step == step).map(|stamp| stamp.at)
    }

    /// Adds the step, unless it is in the record already.
    pub fn push_step(&mut self, stamp: StepStamp) {
        if self.time_of_step(stamp.step).is_none() {
            self.steps.push(stamp);
        }
    }

    pub fn ended_at(&self) -> Option<Timestamp> {
        let mut steps = self.steps.iter();
        steps
            .find(|stamp| stamp.step.is_end())
            .map(|stamp| stamp.at)
    }
}

/// The labels, annotations, taints and cordon of a Node that is deleted. What the new Node has
/// already wins. Never contains `dogwatch.dev/…` and the mark.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeBackup {
    pub node: String,
    /// UID of the deleted Node. A Node of that name with another UID is the new one.
    pub uid: String,
    /// `NAMESPACE/NAME` of the Cluster whose Node it was; `None`: the controller's own cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// `status.nodeInfo.systemUUID`, as the kubelet reported it.
    #[serde(
        default,
        rename = "systemUUID",
        skip_serializing_if = "Option::is_none"
    )]
    pub system_uuid: Option<String>,
    /// The Node's `spec.providerID`.
    #[serde(
        default,
        rename = "providerID",
        skip_serializing_if = "Option::is_none"
    )]
    pub provider_id: Option<String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// Without the taints that Kubernetes itself sets and lifts.
    #[serde(default)]
    pub taints: Vec<NodeTaint>,
    /// The Node was cordoned, and not by a planned reboot of ours.
    #[serde(default)]
    pub cordoned: bool,
    /// How many annotations were left out because they were too long.
    #[serde(default, skip_serializing_if = "is_default")]
    pub left_out: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeTaint {
    pub key: String,
    #[serde(default)]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

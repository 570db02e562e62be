//! The types of a remediation: its subject, links and decision.

use crate::remediation::RemediationReason;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::action::{RemediationAction, RemediationObserve};
use super::key::KeyOwner;
use super::legacy_backup::LegacyBackup;
use super::machine::{MachineName, ObjectName, ObservedMachine};
use super::node_cluster::RemediationCluster;
use super::record::RemediationRecord;
use super::request::PowerRequest;
use super::snapshot::HeldRemediationLease;
use super::stored_backup::{HostBackup, StoredBackup};
use crate::name::NodeName;
use crate::power::{HostName, HostSnapshot};
use crate::reboot::ObservedNode;

pub type RemediationDecision =
    crate::Decision<RemediationAction, RemediationObserve, RemediationReason>;

/// What a remediation is about; its name in logs, Events and `explain`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RemediationSubject {
    /// A Machine that is marked, or whose key is on a host.
    Machine(MachineName),
    /// A Node that is marked, or whose key is on a host.
    Node(NodeName),
    Request(ObjectName),
    /// A Node of a workload cluster that carries something of ours that no remediation handles.
    WorkloadNode(ObjectName, NodeName),
    /// A host with a key of ours whose Machine, Node or request is gone, or with a backup that
    /// waits for its Node.
    Host(HostName),
}

impl fmt::Display for RemediationSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RemediationSubject::Machine(name) => write!(f, "machine/{name}"),
            RemediationSubject::Node(name) => write!(f, "node/{name}"),
            RemediationSubject::Request(name) => write!(f, "powerremediation/{name}"),
            RemediationSubject::WorkloadNode(cluster, node) => {
                write!(f, "node/{cluster}/{node}")
            }
            RemediationSubject::Host(name) => write!(f, "host/{name}"),
        }
    }
}

/// One remediation, with the links between its objects resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Remediation {
    pub subject: RemediationSubject,
    pub key: KeyOwner,
    /// Whether the Machine or Node is marked. For a request: it is not served, withdrawn or given
    /// up yet.
    pub needs_remediation: bool,
    /// Its host, or why there is none: a reason of [`super::reason`], and a message.
    pub host: Result<Arc<HostSnapshot>, (RemediationReason, String)>,
    /// The name of its Node, also if the Node does not exist.
    pub node_name: Option<NodeName>,
    /// Its Node, if it exists.
    pub node: Option<Arc<ObservedNode>>,
    /// The cluster of its Node.
    pub cluster: RemediationCluster,
    /// Why nothing is begun or released although the host is known: a reason, and a message. What
    /// was begun is undone.
    pub problem: Option<(RemediationReason, String)>,
    /// The Lease `dogwatch-remedy-NODE` of its Node, if it is held.
    pub held_lease: Option<HeldRemediationLease>,
    /// The host's record of this remediation.
    pub record: Option<RemediationRecord>,
    /// The stored backup of its host's Node.
    pub stored_backup: Option<Arc<StoredBackup>>,
    /// The same backup and what becomes of it, if this remediation handles it. Of several
    /// remediations of one host only one does.
    pub host_backup: Option<HostBackup>,
    /// The backup that an older version of Dogwatch left on the host, if this remediation handles
    /// it.
    pub legacy_backup: Option<LegacyBackup>,
    pub control_plane: bool,
    /// The Machine that is marked or that owns the request.
    pub machine: Option<Arc<ObservedMachine>>,
    pub request: Option<Arc<PowerRequest>>,
}

impl Remediation {
    /// The labels of its Node; of a deleted Node those in the stored backup.
    pub fn node_labels(&self) -> Option<&BTreeMap<String, String>> {
        let node = self.node.as_ref().map(|node| &node.labels);
        node.or_else(|| self.labels_in_backup())
    }

    fn labels_in_backup(&self) -> Option<&BTreeMap<String, String>> {
        let backup = &self.stored_backup.as_ref()?.backup;
        let is_of_node = self.node_name.as_ref().map(NodeName::as_str) == Some(&*backup.node)
            && backup.cluster == self.cluster.name.record_name();
        is_of_node.then_some(&backup.labels)
    }

    /// Why nothing new is begun, if the Machine, its Cluster or the request is paused. Source:
    /// Cluster API's contract for controllers.
    pub(super) fn describe_pause(&self) -> Option<String> {
        let machine = self.machine.as_ref();
        if let Some(machine) = machine.filter(|machine| machine.paused) {
            return Some(format!(
                "machine {} has annotation cluster.x-k8s.io/paused",
                machine.name
            ));
        }
        if let Some(machine) = machine.filter(|machine| machine.cluster_paused) {
            return Some(format!(
                "cluster {}/{} of machine {} is paused (spec.paused)",
                machine.name.object.namespace,
                machine.cluster.as_deref().unwrap_or_default(),
                machine.name
            ));
        }
        let request = self.request.as_ref().filter(|request| request.paused)?;
        Some(format!(
            "request {} has annotation cluster.x-k8s.io/paused",
            request.name
        ))
    }
}

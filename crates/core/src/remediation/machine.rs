//! Machines, and the objects that link them to their hosts.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::condition::CurrentCondition;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    pub namespace: String,
    pub name: String,
}

impl ObjectName {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MachineApi {
    /// `machine.openshift.io/v1beta1`.
    OpenShift,
    /// `cluster.x-k8s.io`: v1beta2, or v1beta1 if the cluster serves no v1beta2.
    ClusterApi,
}

impl MachineApi {
    pub const fn group(self) -> &'static str {
        match self {
            MachineApi::OpenShift => "machine.openshift.io",
            MachineApi::ClusterApi => "cluster.x-k8s.io",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MachineName {
    pub api: MachineApi,
    pub object: ObjectName,
}

impl fmt::Display for MachineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)
    }
}

/// The fields of a Machine that remediation needs.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "they are the object's own")]
pub struct ObservedMachine {
    pub name: MachineName,
    pub uid: String,
    pub resource_version: String,
    pub deleting: bool,
    /// Value of annotation `host.metal3.io/external-remediation`.
    pub need: Option<String>,
    /// Annotation `metal3.io/BareMetalHost`, not parsed.
    pub host: Option<String>,
    /// `spec.infrastructureRef`.
    pub infra: Option<InfraRef>,
    /// `spec.providerID`.
    pub provider_id: Option<String>,
    /// `spec.clusterName`: the Cluster of Cluster API in the Machine's namespace.
    pub cluster: Option<String>,
    /// `status.nodeRef.name`.
    pub node: Option<String>,
    /// Whether its labels say that it is a control-plane machine.
    pub control_plane: bool,
    /// Annotation `cluster.x-k8s.io/paused`: a person or tool wants the Machine left alone.
    pub paused: bool,
    /// `spec.paused` of its Cluster. No Machine shows it: the discovery of remediations sets it.
    pub cluster_paused: bool,
    /// The `status.conditions` that Dogwatch writes.
    pub conditions: Vec<CurrentCondition>,
}

/// The Machine as its Cluster is paused or not.
pub(super) fn with_cluster_pause(
    machine: Arc<ObservedMachine>,
    paused_clusters: &BTreeSet<ObjectName>,
) -> Arc<ObservedMachine> {
    let namespace = &machine.name.object.namespace;
    let cluster = machine.cluster.as_ref();
    let cluster = cluster.map(|name| ObjectName::new(namespace, name));
    if cluster.is_none_or(|cluster| !paused_clusters.contains(&cluster)) {
        return machine;
    }
    Arc::new(ObservedMachine {
        cluster_paused: true,
        ..Arc::unwrap_or_clone(machine)
    })
}

/// A Machine's `spec.infrastructureRef`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InfraRef {
    pub group: String,
    /// Only `Metal3Machine` leads to a host.
    pub kind: String,
    /// v1beta2 has no namespace in the reference: it is the Machine's.
    pub object: ObjectName,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InfraMachine {
    pub name: ObjectName,
    pub uid: String,
    /// Annotation `metal3.io/BareMetalHost`, not parsed.
    pub host: Option<String>,
    /// `spec.providerID`.
    pub provider_id: Option<String>,
}

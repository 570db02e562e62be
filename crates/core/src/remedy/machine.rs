//! Machines, and what is between them and their hosts.

use std::fmt;

use crate::condition::Condition;

/// Namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ObjectName {
    /// Both parts.
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

/// Whose Machines they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MachineApi {
    /// `machine.openshift.io/v1beta1`.
    OpenShift,
    /// `cluster.x-k8s.io`, v1beta2, or v1beta1 where that is all there is.
    ClusterApi,
}

impl MachineApi {
    /// The API group.
    pub const fn group(self) -> &'static str {
        match self {
            MachineApi::OpenShift => "machine.openshift.io",
            MachineApi::ClusterApi => "cluster.x-k8s.io",
        }
    }
}

/// Which Machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MachineName {
    /// Whose API.
    pub api: MachineApi,
    /// Namespace and name.
    pub object: ObjectName,
}

impl fmt::Display for MachineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)
    }
}

/// One Machine, as far as remediation goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Which.
    pub name: MachineName,
    /// Its UID.
    pub uid: String,
    /// What a write to it relies on.
    pub resource_version: String,
    /// It is being deleted.
    pub deleting: bool,
    /// Annotation `host.metal3.io/external-remediation`: its value.
    pub need: Option<String>,
    /// Annotation `metal3.io/BareMetalHost`, as it stands.
    pub host: Option<String>,
    /// `spec.infrastructureRef`.
    pub infra: Option<InfraRef>,
    /// `spec.providerID`: what its provider calls the machine.
    pub provider_id: Option<String>,
    /// `status.nodeRef.name`.
    pub node: Option<String>,
    /// It is a control-plane machine, by its labels.
    pub control_plane: bool,
    /// Annotation `cluster.x-k8s.io/paused`: whoever set it wants it left alone.
    pub paused: bool,
    /// `status.conditions`, those of ours.
    pub conditions: Vec<Condition>,
}

/// A Machine's `spec.infrastructureRef`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InfraRef {
    /// API group.
    pub group: String,
    /// Kind; only `Metal3Machine` leads to a host.
    pub kind: String,
    /// Namespace and name; v1beta2 names none: the Machine's.
    pub object: ObjectName,
}

/// A `Metal3Machine`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InfraMachine {
    /// Which.
    pub name: ObjectName,
    /// Its UID.
    pub uid: String,
    /// Annotation `metal3.io/BareMetalHost`, as it stands.
    pub host: Option<String>,
    /// `spec.providerID`.
    pub provider_id: Option<String>,
}

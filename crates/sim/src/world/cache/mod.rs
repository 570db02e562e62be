//! What the controllers know of the cluster: their own small copy of it, with the indices they need
//! so that thousands of nodes and pods cost no scans.

mod index;
mod store;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::Resource;
use serde::de::DeserializeOwned;

pub use index::PodIndex;
pub use store::{Key, Shift, Store};

/// The copy.
#[derive(Debug, Default)]
pub struct Cache {
    /// Pods.
    pub pods: Store<Pod>,
    /// Pods by owner, by node, and those without a node.
    pub index: PodIndex,
    /// Nodes.
    pub nodes: Store<Node>,
    /// ReplicaSets.
    pub replica_sets: Store<ReplicaSet>,
    /// DaemonSets.
    pub daemon_sets: Store<DaemonSet>,
    /// Deployments.
    pub deployments: Store<Deployment>,
    /// PodDisruptionBudgets.
    pub budgets: Store<PodDisruptionBudget>,
    /// VolumeAttachments.
    pub attachments: Store<VolumeAttachment>,
    /// PersistentVolumeClaims.
    pub claims: Store<PersistentVolumeClaim>,
    /// The Leases in `kube-node-lease`.
    pub node_leases: Store<Lease>,
}

/// Something changed in the cache.
#[derive(Debug, Clone)]
pub enum Change {
    /// A pod.
    Pod(Shift<Pod>),
    /// A Node.
    Node(Shift<Node>),
    /// A ReplicaSet.
    ReplicaSet(Shift<ReplicaSet>),
    /// A DaemonSet.
    DaemonSet(Shift<DaemonSet>),
    /// A Deployment.
    Deployment(Shift<Deployment>),
    /// A PodDisruptionBudget.
    Budget(Shift<PodDisruptionBudget>),
    /// A VolumeAttachment.
    Attachment(Shift<VolumeAttachment>),
    /// A PersistentVolumeClaim.
    Claim(Shift<PersistentVolumeClaim>),
    /// A Node's Lease.
    NodeLease(Shift<Lease>),
    /// A machine whose kubelet sends no heartbeats went off, or came back.
    Power {
        /// The node.
        node: String,
        /// Whether it runs.
        on: bool,
    },
}

/// A kind that the cache keeps.
pub trait Kept:
    Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static
{
    /// Where it is kept.
    fn store(cache: &mut Cache) -> &mut Store<Self>;
    /// Its change, as a change of the cache.
    fn change(shift: Shift<Self>) -> Change;
}

macro_rules! kept {
    ($($kind:ty, $field:ident, $change:ident;)*) => {$(
        impl Kept for $kind {
            fn store(cache: &mut Cache) -> &mut Store<Self> {
                &mut cache.$field
            }
            fn change(shift: Shift<Self>) -> Change {
                Change::$change(shift)
            }
        }
    )*};
}

kept! {
    Pod, pods, Pod;
    Node, nodes, Node;
    ReplicaSet, replica_sets, ReplicaSet;
    DaemonSet, daemon_sets, DaemonSet;
    Deployment, deployments, Deployment;
    PodDisruptionBudget, budgets, Budget;
    VolumeAttachment, attachments, Attachment;
    PersistentVolumeClaim, claims, Claim;
    Lease, node_leases, NodeLease;
}

impl Cache {
    /// Takes in a state of an object, unless a newer one is known.
    pub fn seen<K: Kept>(&mut self, object: K) -> Option<Change> {
        let shift = K::store(self).seen(object);
        shift.map(|shift| self.indexed(K::change(shift)))
    }

    /// The watch says that this object is gone.
    pub fn deleted<K: Kept>(&mut self, object: &K) -> Option<Change> {
        let shift = K::store(self).deleted(object);
        shift.map(|shift| self.indexed(K::change(shift)))
    }

    /// Our own call ended with this object being gone.
    pub fn known_gone<K: Kept>(&mut self, key: &Key, uid: &str) -> Option<Change> {
        let shift = K::store(self).known_gone(key, uid);
        shift.map(|shift| self.indexed(K::change(shift)))
    }

    /// The complete list of a kind.
    pub fn listed<K: Kept>(&mut self, objects: Vec<K>) -> Vec<Change> {
        let shifts = K::store(self).listed(objects);
        let changes = shifts.into_iter().map(K::change);
        changes.map(|change| self.indexed(change)).collect()
    }

    /// The pods that belong to this owner (as controller), by name.
    pub fn pods_of<'a>(
        &'a self,
        owner_uid: &'a str,
    ) -> impl Iterator<Item = &'a std::sync::Arc<Pod>> + 'a {
        self.index
            .of_owner(owner_uid)
            .filter_map(|key| self.pods.get(key))
    }

    /// The pods bound to this node.
    pub fn pods_on<'a>(
        &'a self,
        node: &'a str,
    ) -> impl Iterator<Item = &'a std::sync::Arc<Pod>> + 'a {
        self.index
            .on_node(node)
            .filter_map(|key| self.pods.get(key))
    }

    /// The pods of a namespace with this label.
    pub fn pods_labelled<'a>(
        &'a self,
        namespace: &str,
        label: &str,
        value: &str,
    ) -> impl Iterator<Item = &'a std::sync::Arc<Pod>> + use<'a> {
        self.index
            .labelled(namespace, label, value)
            .filter_map(|key| self.pods.get(key))
    }

    /// Our own call changed this object, and the answer does not show it: taken as if it were seen,
    /// until something newer is.
    pub fn assume<K: Kept>(&mut self, object: K) -> Change {
        let shift = K::store(self).assume(object);
        self.indexed(K::change(shift))
    }

    fn indexed(&mut self, change: Change) -> Change {
        match &change {
            Change::Pod(shift) => self.index.pod(shift),
            Change::Node(shift) => self.index.node(shift),
            Change::ReplicaSet(_)
            | Change::DaemonSet(_)
            | Change::Deployment(_)
            | Change::Budget(_)
            | Change::Attachment(_)
            | Change::Claim(_)
            | Change::NodeLease(_)
            | Change::Power { .. } => {}
        }
        change
    }
}

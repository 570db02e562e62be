//! The controllers' cache of the cluster, with the indices they need, so that thousands of nodes
//! and pods need no scans.

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
pub use store::{CachedObjects, ObjectChange, ObjectKey};

#[derive(Debug, Default)]
pub struct ControllerCache {
    pub pods: CachedObjects<Pod>,
    /// Pods by owner, by node, and those without a node.
    pub index: PodIndex,
    pub nodes: CachedObjects<Node>,
    pub replica_sets: CachedObjects<ReplicaSet>,
    pub daemon_sets: CachedObjects<DaemonSet>,
    pub deployments: CachedObjects<Deployment>,
    pub budgets: CachedObjects<PodDisruptionBudget>,
    pub attachments: CachedObjects<VolumeAttachment>,
    pub claims: CachedObjects<PersistentVolumeClaim>,
    /// The Leases in `kube-node-lease`.
    pub node_leases: CachedObjects<Lease>,
}

#[derive(Debug, Clone)]
pub enum CacheChange {
    Pod(ObjectChange<Pod>),
    Node(ObjectChange<Node>),
    ReplicaSet(ObjectChange<ReplicaSet>),
    DaemonSet(ObjectChange<DaemonSet>),
    Deployment(ObjectChange<Deployment>),
    Budget(ObjectChange<PodDisruptionBudget>),
    Attachment(ObjectChange<VolumeAttachment>),
    Claim(ObjectChange<PersistentVolumeClaim>),
    /// A Node's heartbeat Lease.
    NodeLease(ObjectChange<Lease>),
    /// A machine without heartbeats was switched off or on.
    Power {
        node: String,
        on: bool,
    },
}

/// A kind that the cache holds.
pub trait CachedKind:
    Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static
{
    fn store(cache: &mut ControllerCache) -> &mut CachedObjects<Self>;
    fn change(shift: ObjectChange<Self>) -> CacheChange;
}

macro_rules! kept {
    ($($kind:ty, $field:ident, $change:ident;)*) => {$(
        impl CachedKind for $kind {
            fn store(cache: &mut ControllerCache) -> &mut CachedObjects<Self> {
                &mut cache.$field
            }
            fn change(shift: ObjectChange<Self>) -> CacheChange {
                CacheChange::$change(shift)
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

impl ControllerCache {
    /// Stores a state of an object, unless a newer one is cached.
    pub fn observe_object<K: CachedKind>(&mut self, object: K) -> Option<CacheChange> {
        let shift = K::store(self).observe_object(object);
        shift.map(|shift| self.update_index(K::change(shift)))
    }

    /// Removes an object that the watch reported as deleted.
    pub fn observe_deleted<K: CachedKind>(&mut self, object: &K) -> Option<CacheChange> {
        let shift = K::store(self).observe_deleted(object);
        shift.map(|shift| self.update_index(K::change(shift)))
    }

    /// Removes an object that our own call has deleted.
    pub fn assume_deleted<K: CachedKind>(
        &mut self,
        key: &ObjectKey,
        uid: &str,
    ) -> Option<CacheChange> {
        let shift = K::store(self).assume_deleted(key, uid);
        shift.map(|shift| self.update_index(K::change(shift)))
    }

    /// Replaces a kind by its complete list.
    pub fn observe_list<K: CachedKind>(&mut self, objects: Vec<K>) -> Vec<CacheChange> {
        let shifts = K::store(self).observe_list(objects);
        let changes = shifts.into_iter().map(K::change);
        changes.map(|change| self.update_index(change)).collect()
    }

    pub fn pods_of_owner<'a>(
        &'a self,
        owner_uid: &'a str,
    ) -> impl Iterator<Item = &'a std::sync::Arc<Pod>> + 'a {
        self.index
            .keys_of_owner(owner_uid)
            .filter_map(|key| self.pods.get(key))
    }

    pub fn pods_on_node<'a>(
        &'a self,
        node: &'a str,
    ) -> impl Iterator<Item = &'a std::sync::Arc<Pod>> + 'a {
        self.index
            .keys_on_node(node)
            .filter_map(|key| self.pods.get(key))
    }

    pub fn pods_with_label<'a>(
        &'a self,
        namespace: &str,
        label: &str,
        value: &str,
    ) -> impl Iterator<Item = &'a std::sync::Arc<Pod>> + use<'a> {
        self.index
            .keys_with_label(namespace, label, value)
            .filter_map(|key| self.pods.get(key))
    }

    /// Stores the result of our own call when the answer did not contain it; kept until the watch
    /// shows something newer.
    pub fn assume_object<K: CachedKind>(&mut self, object: K) -> CacheChange {
        let shift = K::store(self).assume_object(object);
        self.update_index(K::change(shift))
    }

    fn update_index(&mut self, change: CacheChange) -> CacheChange {
        match &change {
            CacheChange::Pod(shift) => self.index.update_pod(shift),
            CacheChange::Node(shift) => self.index.update_node(shift),
            CacheChange::ReplicaSet(_)
            | CacheChange::DaemonSet(_)
            | CacheChange::Deployment(_)
            | CacheChange::Budget(_)
            | CacheChange::Attachment(_)
            | CacheChange::Claim(_)
            | CacheChange::NodeLease(_)
            | CacheChange::Power { .. } => {}
        }
        change
    }
}

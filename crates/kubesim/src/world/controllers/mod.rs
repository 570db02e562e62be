//! What kube-controller-manager and kube-scheduler do in a cluster, as far as Dogwatch depends on
//! it.
//!
//! Each controller is a pure function from the cache, the time and one key to the writes for that
//! key, and is tested with tables. The [manager](crate::world::manager) calls it and performs the
//! writes.

pub mod action;
pub mod attach_detach;
pub mod daemonset;
pub mod deployment;
pub mod disruption;
pub mod garbage_collector;
pub mod node_lifecycle;
pub mod object_queries;
pub mod replicaset;
pub mod scheduler;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

pub use action::{ControllerAction, WritableKind, WriteVerb};

use crate::world::cache::{CacheChange, ControllerCache, ObjectKey};

/// The result of reconciling one key.
#[derive(Debug, Default)]
pub struct ReconcileOutcome {
    pub actions: Vec<ControllerAction>,
    /// Reconcile again after this time, even without a change.
    pub requeue_after: Option<Duration>,
}

impl ReconcileOutcome {
    /// Only these actions, without a requeue.
    pub fn with_actions(actions: Vec<ControllerAction>) -> Self {
        Self {
            actions,
            requeue_after: None,
        }
    }
}

pub trait SimulatedController: Send {
    /// The name for logs.
    fn name(&self) -> &'static str;
    /// Adds the keys that a change affects.
    fn enqueue_keys(
        &mut self,
        cache: &ControllerCache,
        change: &CacheChange,
        now: Timestamp,
        keys: &mut BTreeSet<ObjectKey>,
    );
    fn reconcile(
        &mut self,
        cache: &ControllerCache,
        key: &ObjectKey,
        now: Timestamp,
    ) -> ReconcileOutcome;
}

/// Names of the controllers, to choose which run: a real kube-controller-manager may run the
/// others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ControllerName {
    /// Creates and deletes the pods of ReplicaSets.
    ReplicaSet,
    /// Creates and deletes the pods of DaemonSets.
    DaemonSet,
    /// Maintains one ReplicaSet for each Deployment.
    Deployment,
    /// Updates the status of PodDisruptionBudgets.
    Disruption,
    /// Binds pods to nodes.
    Scheduler,
    /// Marks silent nodes as Unknown, maintains taints and evicts by them.
    NodeLifecycle,
    /// Creates and deletes VolumeAttachments.
    AttachDetach,
    /// Deletes objects whose owner or node is gone.
    Garbage,
}

impl ControllerName {
    pub const ALL: [ControllerName; 8] = [
        ControllerName::ReplicaSet,
        ControllerName::DaemonSet,
        ControllerName::Deployment,
        ControllerName::Disruption,
        ControllerName::Scheduler,
        ControllerName::NodeLifecycle,
        ControllerName::AttachDetach,
        ControllerName::Garbage,
    ];

    pub fn build_controller(self) -> Box<dyn SimulatedController> {
        match self {
            ControllerName::ReplicaSet => Box::new(replicaset::ReplicaSetController),
            ControllerName::DaemonSet => Box::new(daemonset::DaemonSetController),
            ControllerName::Deployment => Box::new(deployment::DeploymentController),
            ControllerName::Disruption => Box::new(disruption::DisruptionController),
            ControllerName::Scheduler => Box::new(scheduler::PodScheduler),
            ControllerName::NodeLifecycle => {
                Box::new(node_lifecycle::NodeLifecycleController::default())
            }
            ControllerName::AttachDetach => {
                Box::new(attach_detach::AttachDetachController::default())
            }
            ControllerName::Garbage => Box::new(garbage_collector::GarbageCollector::default()),
        }
    }
}

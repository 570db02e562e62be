//! What kube-controller-manager and kube-scheduler do in a cluster, as far as Dogwatch meets it.
//!
//! Each controller is a function from what is known and the time to what is to be done about one
//! key: pure, tested by tables. The [manager](crate::world::manager) feeds it and does what it says.

pub mod action;
pub mod attach_detach;
pub mod daemonset;
pub mod deployment;
pub mod disruption;
pub mod garbage;
pub mod node_lifecycle;
pub mod replicaset;
pub mod scheduler;
pub mod words;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

pub use action::{Action, Kind, Verb};

use crate::world::cache::{Cache, Change, Key};

/// What one look at one key leads to.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What to do, in any order.
    pub actions: Vec<Action>,
    /// When to look again although nothing changed.
    pub again_in: Option<Duration>,
}

impl Verdict {
    /// To do this, and nothing later by itself.
    pub fn act(actions: Vec<Action>) -> Self {
        Self {
            actions,
            again_in: None,
        }
    }
}

/// A controller of the simulated world.
pub trait Controller: Send {
    /// Its name, as in logs.
    fn name(&self) -> &'static str;
    /// Adds the keys that must be looked at because of a change.
    fn touched(&mut self, cache: &Cache, change: &Change, now: Timestamp, keys: &mut BTreeSet<Key>);
    /// Looks at one key.
    fn reconcile(&mut self, cache: &Cache, key: &Key, now: Timestamp) -> Verdict;
}

/// Which controllers run: the others are somebody else's, such as a real kube-controller-manager's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// Keeps the pods of ReplicaSets.
    ReplicaSet,
    /// Keeps the pods of DaemonSets.
    DaemonSet,
    /// Keeps one ReplicaSet for each Deployment.
    Deployment,
    /// Keeps the status of budgets.
    Disruption,
    /// Binds pods to nodes.
    Scheduler,
    /// Writes off nodes that fell silent, and keeps their taints.
    NodeLifecycle,
    /// Keeps VolumeAttachments.
    AttachDetach,
    /// Deletes what lost its owner or its node.
    Garbage,
}

impl Name {
    /// All of them.
    pub const ALL: [Name; 8] = [
        Name::ReplicaSet,
        Name::DaemonSet,
        Name::Deployment,
        Name::Disruption,
        Name::Scheduler,
        Name::NodeLifecycle,
        Name::AttachDetach,
        Name::Garbage,
    ];

    /// The controller of this name.
    pub fn make(self) -> Box<dyn Controller> {
        match self {
            Name::ReplicaSet => Box::new(replicaset::ReplicaSets),
            Name::DaemonSet => Box::new(daemonset::DaemonSets),
            Name::Deployment => Box::new(deployment::Deployments),
            Name::Disruption => Box::new(disruption::Budgets),
            Name::Scheduler => Box::new(scheduler::Scheduler),
            Name::NodeLifecycle => Box::new(node_lifecycle::NodeLifecycle::default()),
            Name::AttachDetach => Box::new(attach_detach::AttachDetach::default()),
            Name::Garbage => Box::new(garbage::Garbage::default()),
        }
    }
}

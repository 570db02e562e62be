//! One pod of each kind that `kubectl drain` treats differently.

use serde_json::{Value, json};

use super::world::{World, merge};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Bare,
    BareFinished,
    BarePending,
    EmptyDir,
    EmptyDirFinished,
    JobFailed,
    Mirror,
    MirrorFinished,
    OfDaemonSet,
    OfDaemonSetFinished,
    OfDaemonSetThatIsGone,
    OfDaemonSetWithEmptyDir,
    OfForeignDaemonSet,
    OfReplicaSet,
    OwnedNotControlled,
    Unready,
}

/// In the order of their names.
pub const ALL: &[Kind] = &[
    Kind::Bare,
    Kind::BareFinished,
    Kind::BarePending,
    Kind::EmptyDir,
    Kind::EmptyDirFinished,
    Kind::JobFailed,
    Kind::Mirror,
    Kind::MirrorFinished,
    Kind::OfDaemonSet,
    Kind::OfDaemonSetFinished,
    Kind::OfDaemonSetThatIsGone,
    Kind::OfDaemonSetWithEmptyDir,
    Kind::OfForeignDaemonSet,
    Kind::OfReplicaSet,
    Kind::OwnedNotControlled,
    Kind::Unready,
];

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Bare => "bare",
            Kind::BareFinished => "bare-finished",
            Kind::BarePending => "bare-pending",
            Kind::EmptyDir => "emptydir",
            Kind::EmptyDirFinished => "emptydir-finished",
            Kind::JobFailed => "job-failed",
            Kind::Mirror => "mirror",
            Kind::MirrorFinished => "mirror-finished",
            Kind::OfDaemonSet => "of-daemonset",
            Kind::OfDaemonSetFinished => "of-daemonset-finished",
            Kind::OfDaemonSetThatIsGone => "of-daemonset-that-is-gone",
            Kind::OfDaemonSetWithEmptyDir => "of-daemonset-with-emptydir",
            Kind::OfForeignDaemonSet => "of-foreign-daemonset",
            Kind::OfReplicaSet => "of-replicaset",
            Kind::OwnedNotControlled => "owned-not-controlled",
            Kind::Unready => "unready",
        }
    }

    pub fn goes(self) -> bool {
        match self {
            Kind::Mirror
            | Kind::MirrorFinished
            | Kind::OfDaemonSet
            | Kind::OfDaemonSetWithEmptyDir => false,
            Kind::Bare
            | Kind::BareFinished
            | Kind::BarePending
            | Kind::EmptyDir
            | Kind::EmptyDirFinished
            | Kind::JobFailed
            | Kind::OfDaemonSetFinished
            | Kind::OfDaemonSetThatIsGone
            | Kind::OfForeignDaemonSet
            | Kind::OfReplicaSet
            | Kind::OwnedNotControlled
            | Kind::Unready => true,
        }
    }

    fn object(self) -> Value {
        let finished = json!({"status": {"phase": "Succeeded"}});
        let emptydir = json!({"spec": {"volumes": [{"name": "tmp", "emptyDir": {}}]}});
        let mirror = json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}});
        let agent = owned("apps/v1", "DaemonSet", "agent", true);
        match self {
            Kind::Bare => json!({}),
            Kind::BareFinished => finished,
            Kind::BarePending => json!({"status": {"phase": "Pending"}}),
            Kind::EmptyDir => emptydir,
            Kind::EmptyDirFinished => both(emptydir, finished),
            Kind::JobFailed => both(
                owned("batch/v1", "Job", "job", true),
                json!({"status": {"phase": "Failed"}}),
            ),
            Kind::Mirror => mirror,
            Kind::MirrorFinished => both(mirror, finished),
            Kind::OfDaemonSet => agent,
            Kind::OfDaemonSetFinished => both(agent, finished),
            Kind::OfDaemonSetThatIsGone => owned("apps/v1", "DaemonSet", "gone", true),
            Kind::OfDaemonSetWithEmptyDir => both(agent, emptydir),
            Kind::OfForeignDaemonSet => {
                owned("apps.kruise.io/v1alpha1", "DaemonSet", "agent", true)
            }
            Kind::OfReplicaSet => owned("apps/v1", "ReplicaSet", "web", true),
            Kind::OwnedNotControlled => owned("apps/v1", "DaemonSet", "agent", false),
            Kind::Unready => {
                json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}})
            }
        }
    }
}

fn owned(api_version: &str, kind: &str, name: &str, controller: bool) -> Value {
    json!({"metadata": {"ownerReferences": [{
        "apiVersion": api_version, "kind": kind, "name": name,
        "uid": format!("00000000-0000-4000-8000-{:012}", name.len()), "controller": controller,
    }]}})
}

fn both(mut one: Value, other: Value) -> Value {
    merge(&mut one, other);
    one
}

pub async fn owners(world: &World) {
    world.daemonset("agent").await;
    world.replicaset("web").await;
}

pub async fn create(world: &World, kind: Kind) {
    create_as(world, kind, kind.name()).await;
}

pub async fn create_as(world: &World, kind: Kind, name: &str) {
    world.pod(name, kind.object()).await;
}

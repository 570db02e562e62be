//! What is seen of an object that is restarted, and what is said of it.

use std::fmt;
use std::time::Duration;

use crate::Because;

/// What replaces pods when a template changes, and what does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `apps` Deployment.
    Deployment,
    /// `apps` StatefulSet.
    StatefulSet,
    /// `apps` DaemonSet.
    DaemonSet,
    /// `apps` ReplicaSet: its template is for pods to come only.
    ReplicaSet,
    /// ReplicationController: likewise.
    ReplicationController,
    /// `batch` Job: its template cannot change.
    Job,
    /// `batch` CronJob: each run makes pods anew.
    CronJob,
    /// A pod.
    Pod,
    /// Anything else.
    Other,
}

impl Kind {
    /// By API group (empty for the core group) and kind.
    pub fn of(group: &str, kind: &str) -> Self {
        match (group, kind) {
            ("apps", "Deployment") => Kind::Deployment,
            ("apps", "StatefulSet") => Kind::StatefulSet,
            ("apps", "DaemonSet") => Kind::DaemonSet,
            ("apps", "ReplicaSet") => Kind::ReplicaSet,
            ("", "ReplicationController") => Kind::ReplicationController,
            ("batch", "Job") => Kind::Job,
            ("batch", "CronJob") => Kind::CronJob,
            ("", "Pod") => Kind::Pod,
            (_, _) => Kind::Other,
        }
    }
}

/// The controller that made an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its kind, as in `kind:`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// The object, as its API server shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts of an object"
)]
pub struct ObjectSeen {
    /// What it is.
    pub kind: Kind,
    /// As a person writes it: `deployment/web`.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// `metadata.generation`; 0 where the kind counts none.
    pub generation: i64,
    /// `status.observedGeneration`.
    pub observed: Option<i64>,
    /// Whether `spec.template` is there and looks like a PodTemplateSpec.
    pub template: bool,
    /// [`super::RESTARTED_AT`] of the template.
    pub stamp: Option<String>,
    /// `spec.paused`.
    pub paused: bool,
    /// Whether its update strategy is `OnDelete`.
    pub on_delete: bool,
    /// `spec.updateStrategy.rollingUpdate.partition`: pods below it keep the old template.
    pub partition: u32,
    /// How many pods are wanted: `spec.replicas`, or the DaemonSet's count of nodes.
    pub wanted: Option<u32>,
    /// Its status' counts.
    pub counts: Counts,
    /// Whether `status.currentRevision` is `status.updateRevision`; true where there are none.
    pub one_revision: bool,
    /// Its status' conditions.
    pub conditions: Vec<ConditionSeen>,
    /// Its controller.
    pub owner: Option<Owner>,
}

/// Counts of a status; what is absent is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Pods of any template.
    pub total: u32,
    /// Pods of the present template.
    pub updated: u32,
    /// Pods of any template that are ready.
    pub ready: u32,
    /// Those that have been ready for long enough.
    pub available: u32,
}

/// One condition of a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionSeen {
    /// Its type.
    pub kind: String,
    /// Whether its status is `True`.
    pub is_true: bool,
    /// Its reason.
    pub reason: String,
    /// Its message.
    pub message: String,
}

/// One pod that the object's selector selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodSeen {
    /// Its name.
    pub name: String,
    /// [`super::RESTARTED_AT`], which it has from its template.
    pub stamp: Option<String>,
    /// Whether it is Ready.
    pub ready: bool,
    /// Whether it is being deleted, or has ended.
    pub leaving: bool,
    /// What keeps it from being ready: `ImagePullBackOff: …`, `Unschedulable: …`.
    pub trouble: Option<String>,
}

/// Everything that is known of one restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The object; `None` once it is gone.
    pub object: Option<ObjectSeen>,
    /// The UID that was restarted.
    pub uid: String,
    /// The pods that it selects.
    pub pods: Vec<PodSeen>,
    /// The last Warning about the object itself, `FailedCreate: …`.
    pub warning: Option<String>,
}

/// How long it has been waited, and how long it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// Since the restart was written.
    pub waited: Duration,
    /// The time limit.
    pub limit: Duration,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Pods that are wanted of the new template.
    pub wanted: u32,
    /// Pods that have it.
    pub updated: u32,
    /// Those of them that are ready.
    pub ready: u32,
}

impl fmt::Display for Progress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            wanted,
            updated,
            ready,
        } = self;
        write!(formatter, "{updated} of {wanted} updated, {ready} ready")
    }
}

/// Where a restart stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Under way.
    Going,
    /// The new pods are there.
    Done,
    /// It does not get there, or not in time.
    Failed,
}

/// What is said of a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Where it stands.
    pub state: State,
    /// How far it is.
    pub progress: Progress,
    /// Why it stands there: one of [`reason`], and a sentence.
    pub because: Because,
}

/// The reasons of a [`Verdict`].
pub mod reason {
    /// Its controller has not seen the change yet.
    pub const NOT_OBSERVED: &str = "NotObserved";
    /// Pods of the new template are still to be made.
    pub const UPDATING: &str = "Updating";
    /// Pods of the old template are still there.
    pub const OLD_PODS_LEFT: &str = "OldPodsLeft";
    /// New pods are not ready yet.
    pub const NOT_READY: &str = "NotReady";
    /// The new pods are there and ready.
    pub const RESTARTED: &str = "Restarted";
    /// Those above the partition are.
    pub const PARTITION_RESTARTED: &str = "PartitionRestarted";
    /// No pods are wanted.
    pub const NO_PODS_WANTED: &str = "NoPodsWanted";
    /// The Deployment's own time limit has passed.
    pub const PROGRESS_DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
    /// Ours has.
    pub const TIMED_OUT: &str = "TimedOut";
    /// The object is gone, or another one has its name.
    pub const GONE: &str = "Gone";
    /// Somebody took the restart back.
    pub const UNDONE: &str = "Undone";
    /// Somebody paused it.
    pub const PAUSED: &str = "Paused";
}

impl Verdict {
    /// The time limit passed before the object or its pods could be seen.
    pub fn unseen(limit: Duration, troubled: Option<&str>) -> Self {
        let limit = crate::duration::format(limit);
        let message = match troubled {
            Some(why) => format!("it was restarted, and cannot be seen for {limit}: {why}"),
            None => format!("it was restarted, and not seen within {limit}"),
        };
        Self {
            state: State::Failed,
            progress: Progress::default(),
            because: Because::new(reason::TIMED_OUT, message),
        }
    }
}

//! The observed state of a restarted workload, and the verdict on its restart.

use std::fmt;
use std::time::Duration;

use crate::DecisionCause;

/// Kinds of objects, by whether a new template replaces their pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartTargetKind {
    /// `apps` Deployment.
    Deployment,
    /// `apps` StatefulSet.
    StatefulSet,
    /// `apps` DaemonSet.
    DaemonSet,
    /// `apps` ReplicaSet: a new template applies to future pods only.
    ReplicaSet,
    /// A new template applies to future pods only.
    ReplicationController,
    /// `batch` Job: its template cannot change.
    Job,
    /// `batch` CronJob: each run creates new pods.
    CronJob,
    Pod,
    Other,
}

impl RestartTargetKind {
    /// `group` is empty for the core group.
    pub fn from_group_kind(group: &str, kind: &str) -> Self {
        match (group, kind) {
            ("apps", "Deployment") => RestartTargetKind::Deployment,
            ("apps", "StatefulSet") => RestartTargetKind::StatefulSet,
            ("apps", "DaemonSet") => RestartTargetKind::DaemonSet,
            ("apps", "ReplicaSet") => RestartTargetKind::ReplicaSet,
            ("", "ReplicationController") => RestartTargetKind::ReplicationController,
            ("batch", "Job") => RestartTargetKind::Job,
            ("batch", "CronJob") => RestartTargetKind::CronJob,
            ("", "Pod") => RestartTargetKind::Pod,
            (_, _) => RestartTargetKind::Other,
        }
    }
}

/// The controller that created an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadOwner {
    /// As in the field `kind:`.
    pub kind: String,
    pub name: String,
}

/// The workload, as the API server shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts of an object"
)]
pub struct ObservedWorkload {
    pub kind: RestartTargetKind,
    /// As a person writes it: `deployment/web`.
    pub name: String,
    pub uid: String,
    pub deleting: bool,
    /// `metadata.generation`; 0 if the kind has none.
    pub generation: i64,
    /// `status.observedGeneration`.
    pub observed: Option<i64>,
    /// Whether `spec.template` exists and looks like a PodTemplateSpec.
    pub template: bool,
    /// [`super::RESTARTED_AT_ANNOTATION`] of the template.
    pub restarted_at: Option<String>,
    /// `spec.paused`.
    pub paused: bool,
    /// Whether its update strategy is `OnDelete`.
    pub on_delete: bool,
    /// `spec.updateStrategy.rollingUpdate.partition`: pods with a lower ordinal keep the old
    /// template.
    pub partition: u32,
    /// How many pods are wanted: `spec.replicas`, or the DaemonSet's number of nodes.
    pub wanted: Option<u32>,
    pub counts: RolloutCounts,
    /// Whether `status.currentRevision` equals `status.updateRevision`; true if there are none.
    pub one_revision: bool,
    pub conditions: Vec<WorkloadCondition>,
    pub owner: Option<WorkloadOwner>,
}

/// Counts of a status; absent ones are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RolloutCounts {
    /// Pods of any template.
    pub total: u32,
    /// Pods of the current template.
    pub updated: u32,
    /// Pods of any template that are ready.
    pub ready: u32,
    /// Pods that have been ready for `minReadySeconds`.
    pub available: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadCondition {
    pub kind: String,
    /// Whether its status is `True`.
    pub is_true: bool,
    pub reason: String,
    pub message: String,
}

/// A pod that the workload's selector matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedRolloutPod {
    pub name: String,
    /// [`super::RESTARTED_AT_ANNOTATION`], which the pod has from its template.
    pub restarted_at: Option<String>,
    pub ready: bool,
    /// Whether it is being deleted, or has ended.
    pub leaving: bool,
    /// What keeps it from being ready: `ImagePullBackOff: …`, `Unschedulable: …`.
    pub problem: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutSnapshot {
    /// `None` once the object is gone.
    pub object: Option<ObservedWorkload>,
    /// The UID of the object that was restarted.
    pub uid: String,
    /// The pods that the workload selects.
    pub pods: Vec<ObservedRolloutPod>,
    /// The last Warning about the object itself, `FailedCreate: …`.
    pub warning: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RolloutClock {
    /// Time since the restart was written.
    pub waited: Duration,
    /// The time limit of the wait.
    pub limit: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RolloutProgress {
    /// Pods of the new template that are wanted.
    pub wanted: u32,
    /// Pods that have the new template.
    pub updated: u32,
    /// Pods of the new template that are ready.
    pub ready: u32,
}

impl fmt::Display for RolloutProgress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            wanted,
            updated,
            ready,
        } = self;
        write!(formatter, "{updated} of {wanted} updated, {ready} ready")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolloutState {
    Going,
    Done,
    /// The restart cannot complete, or the time limit has passed.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutVerdict {
    pub state: RolloutState,
    pub progress: RolloutProgress,
    /// One of [`reason`], and a sentence.
    pub because: DecisionCause,
}

/// The reasons of a [`RolloutVerdict`].
pub mod reason {
    /// The workload's controller has not seen the change yet.
    pub const NOT_OBSERVED: &str = "NotObserved";
    /// Pods of the new template are still to be created.
    pub const UPDATING: &str = "Updating";
    pub const OLD_PODS_LEFT: &str = "OldPodsLeft";
    pub const NOT_READY: &str = "NotReady";
    pub const RESTARTED: &str = "Restarted";
    /// The pods above the partition are new and ready.
    pub const PARTITION_RESTARTED: &str = "PartitionRestarted";
    pub const NO_PODS_WANTED: &str = "NoPodsWanted";
    /// The Deployment's own `progressDeadlineSeconds` has passed.
    pub const PROGRESS_DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
    /// The caller's time limit has passed.
    pub const TIMED_OUT: &str = "TimedOut";
    /// The object is gone, or another object has its name.
    pub const GONE: &str = "Gone";
    /// Somebody reverted the restart.
    pub const UNDONE: &str = "Undone";
    pub const PAUSED: &str = "Paused";
}

impl RolloutVerdict {
    /// The time limit passed before the object or its pods could be read.
    pub fn timed_out_unseen(limit: Duration, troubled: Option<&str>) -> Self {
        let limit = crate::duration::format_duration(limit);
        let message = match troubled {
            Some(why) => format!("it was restarted, but could not be read for {limit}: {why}"),
            None => format!("it was restarted, but the restart was not observed within {limit}"),
        };
        Self {
            state: RolloutState::Failed,
            progress: RolloutProgress::default(),
            because: DecisionCause::new(reason::TIMED_OUT, message),
        }
    }
}

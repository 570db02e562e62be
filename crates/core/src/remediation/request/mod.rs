//! A `PowerRemediation` in the form that decisions use.

mod flow;
mod health;
mod lifecycle;
mod observe;
mod report;
mod serving;

use std::time::Duration;

pub use dogwatch_api::power_remediation::{MAX_TIMELINE_STEPS, StrategyType};
use jiff::Timestamp;

use super::machine::{MachineName, ObjectName};
use super::record::StepStamp;
use crate::condition::CurrentCondition;
use crate::power::HostName;

pub(super) use flow::decide;

#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "they are the object's own")]
pub struct PowerRequest {
    pub name: ObjectName,
    /// UID of the request; its key on the host contains it.
    pub uid: String,
    pub resource_version: String,
    pub generation: i64,
    /// When it was created, by the API server's clock.
    pub created: Timestamp,
    pub deleting: bool,
    pub has_finalizer: bool,
    /// Annotation `remediation.medik8s.io/node-name`.
    pub node_name: Option<String>,
    /// The Machine among its owners.
    pub machine: Option<MachineName>,
    pub machine_uid: Option<String>,
    /// Label `cluster.x-k8s.io/cluster-name`.
    pub cluster: Option<String>,
    /// Annotation `remediation.medik8s.io/nhc-timed-out`: the health check has given up.
    pub timed_out: bool,
    /// Annotation `cluster.x-k8s.io/paused`.
    pub paused: bool,
    /// `spec.strategy`, or what is wrong with it.
    pub strategy: Result<RemediationStrategy, String>,
    pub status: RequestStatus,
}

/// Whether the request is not yet served, ended or cancelled.
pub(super) fn needs_remediation(request: &PowerRequest) -> bool {
    let attempt = request.status.attempt.as_ref();
    let is_served = attempt.is_some_and(|attempt| attempt.released_at.is_some());
    let is_wanted = !request.deleting && !request.timed_out && request.strategy.is_ok();
    is_wanted && request.status.ended_at.is_none() && !is_served
}

/// `spec.strategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemediationStrategy {
    pub kind: StrategyType,
    /// How many attempts may follow the first.
    pub retry_limit: u32,
    /// How long one attempt may take.
    pub timeout: Duration,
}

/// `status` of a request. Each step is written here, or on the host, before it is done.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestStatus {
    /// The generation of the spec that this status describes.
    pub observed_generation: Option<i64>,
    /// When Dogwatch first saw the request.
    pub started_at: Option<Timestamp>,
    /// When the request ended, with success or without.
    pub ended_at: Option<Timestamp>,
    /// The present attempt, or the last one.
    pub attempt: Option<RemediationAttempt>,
    /// The host that the request began with, and its UID: another host is refused later.
    pub host: Option<(HostName, String)>,
    pub node: Option<String>,
    /// UID of the Node when the request began.
    pub node_uid: Option<String>,
    /// The boot that the remediation must end.
    pub boot_id: Option<String>,
    /// `timeAdded` of our taint, in whole seconds: written before the taint is set, and removed
    /// after the taint is. A taint with another time is somebody else's (S3).
    pub tainted_at: Option<Timestamp>,
    pub proof: Option<ProofNote>,
    /// Oldest first; at most [`MAX_TIMELINE_STEPS`]: the first and the newest.
    pub timeline: Vec<StepStamp>,
    pub conditions: Vec<CurrentCondition>,
}

/// One attempt: off, release, on, Ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemediationAttempt {
    /// Counted from 1.
    pub number: u32,
    /// When the attempt began; its timeout counts from here.
    pub started_at: Timestamp,
    /// When the key was seen on the host.
    pub key_at: Option<Timestamp>,
    /// When the host was proved off.
    pub off_at: Option<Timestamp>,
    /// When the workloads were released.
    pub released_at: Option<Timestamp>,
    /// When the key was seen to be gone.
    pub key_removed_at: Option<Timestamp>,
}

/// What proved the host off, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProofNote {
    /// `OurCommand`, `TheirController` or `Person`.
    pub source: String,
    pub confirmed_at: Timestamp,
    /// The person, if the source is `Person`.
    pub by: Option<String>,
    /// The person's reason.
    pub reason: Option<String>,
}

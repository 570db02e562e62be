//! A `PowerRemediation`, as decisions see it.

mod course;
mod flow;
mod health;
mod observe;
mod report;
mod work;

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::machine::{MachineName, ObjectName};
use super::record::Stamp;
use crate::condition::Condition;
use crate::power::HostName;

pub(super) use flow::decide;

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct PowerRequest {
    /// Which.
    pub name: ObjectName,
    /// Its UID: its key on the host is named after it.
    pub uid: String,
    /// What a write to it relies on.
    pub resource_version: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// When it was made, by the API server's clock.
    pub created: Timestamp,
    /// It is being deleted.
    pub deleting: bool,
    /// Our finalizer is on it.
    pub has_finalizer: bool,
    /// Annotation `remediation.medik8s.io/node-name`.
    pub node_name: Option<String>,
    /// The Machine among its owners.
    pub machine: Option<MachineName>,
    /// That Machine's UID.
    pub machine_uid: Option<String>,
    /// Annotation `remediation.medik8s.io/nhc-timed-out`: stop.
    pub timed_out: bool,
    /// `spec.strategy`, or what is wrong with it.
    pub strategy: Result<Strategy, String>,
    /// Its status.
    pub status: RequestStatus,
}

/// It is not served, ended or called off yet.
pub(super) fn needs(request: &PowerRequest) -> bool {
    let attempt = request.status.attempt.as_ref();
    let is_served = attempt.is_some_and(|attempt| attempt.released_at.is_some());
    let is_wanted = !request.deleting && !request.timed_out && request.strategy.is_ok();
    is_wanted && request.status.ended_at.is_none() && !is_served
}

/// `spec.strategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strategy {
    /// How workloads are released.
    pub kind: StrategyType,
    /// How often it is tried again: attempts are one more.
    pub retry_limit: u32,
    /// How long one attempt may take.
    pub timeout: Duration,
}

/// How workloads are released once the host is proved off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StrategyType {
    /// The Node is deleted.
    DeleteNode,
    /// The Node gets the taint `node.kubernetes.io/out-of-service`.
    OutOfServiceTaint,
}

impl StrategyType {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            StrategyType::DeleteNode => "DeleteNode",
            StrategyType::OutOfServiceTaint => "OutOfServiceTaint",
        }
    }
}

/// `status` of a request. Each step stands here, or on the host, before it is done.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestStatus {
    /// Which generation of the spec this is about.
    pub observed_generation: Option<i64>,
    /// When we first saw it.
    pub started_at: Option<Timestamp>,
    /// When it ended, well or not.
    pub ended_at: Option<Timestamp>,
    /// The attempt under way, or the last one.
    pub attempt: Option<Attempt>,
    /// The host that it was found to be for, and its UID: another one later is refused.
    pub host: Option<(HostName, String)>,
    /// The Node's name.
    pub node: Option<String>,
    /// The UID of the Node as it was when this began.
    pub node_uid: Option<String>,
    /// The boot that is to be ended.
    pub boot_id: Option<String>,
    /// `timeAdded` of our taint, in whole seconds: written before the taint is set, and taken away once it is
    /// lifted. Another one is somebody else's (S3).
    pub tainted_at: Option<Timestamp>,
    /// What proved the host off.
    pub proof: Option<ProofNote>,
    /// Its steps, the oldest first; at most [`RequestStatus::STEPS`], the first and the newest.
    pub timeline: Vec<Stamp>,
    /// `status.conditions`.
    pub conditions: Vec<Condition>,
}

impl RequestStatus {
    /// How many steps are kept.
    pub const STEPS: usize = 32;
}

/// One attempt: off, release, on, Ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// From 1.
    pub number: u32,
    /// When it began; its timeout counts from here.
    pub started_at: Timestamp,
    /// When the key was seen on the host.
    pub key_at: Option<Timestamp>,
    /// When the host was proved off.
    pub off_at: Option<Timestamp>,
    /// When the workloads were released.
    pub released_at: Option<Timestamp>,
    /// When the key was seen gone.
    pub key_removed_at: Option<Timestamp>,
}

/// What proved the host off, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProofNote {
    /// `OurCommand`, `TheirController` or `Person`.
    pub source: String,
    /// When.
    pub confirmed_at: Timestamp,
    /// Who, for a person.
    pub by: Option<String>,
    /// Why, for a person.
    pub reason: Option<String>,
}

//! The input of the decision about one schedule.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::host::PowerRebootRefusal;
use super::made_reboot::MadeNodeRebootsRead;
use super::target::{ScheduleMarks, ScheduleTarget};
use super::types::Schedule;
use crate::reboot::ParsedAnnotation;

#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleSnapshot {
    pub schedule: Schedule,
    /// UIDs of all existing schedules: marks of other schedules can be removed.
    pub living: BTreeSet<String>,
    /// The possible targets; `None` until they are read.
    pub targets: Option<ObservedTargets>,
    /// The schedule's NodeReboots; `None` until they are read.
    pub reboots: Option<MadeNodeRebootsRead>,
    /// Why a target could not be asked the last time.
    pub request_errors: BTreeMap<ScheduleTarget, String>,
}

/// Nodes and hosts, freshly read.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedTargets {
    /// All Nodes, or why they cannot be read. Empty if the schedule selects none.
    pub nodes: Result<Vec<TargetObject>, String>,
    /// All hosts of the schedule's namespace, or why they cannot be read. Empty if the schedule
    /// selects none.
    pub hosts: Result<Vec<TargetObject>, String>,
    /// When the first read was sent, in monotonic time.
    pub taken: Duration,
}

/// The part of a Node or BareMetalHost that a schedule needs.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetObject {
    pub name: String,
    pub uid: String,
    /// The precondition of a patch.
    pub resource_version: String,
    /// When it was created, by the API server's clock.
    pub created: Timestamp,
    pub labels: BTreeMap<String, String>,
    /// Annotation `dogwatch.dev/scheduled`: the requests that schedules have sent to it.
    pub marks: ParsedAnnotation<ScheduleMarks>,
    /// The reboot request that is on the object, whoever made it: a Node's
    /// `dogwatch.dev/reboot-requested`, a host's `reboot.metal3.io`.
    pub request: StandingRequest,
    /// For a host: the Node that it carries.
    pub carries: Option<CarriedNode>,
    /// For a host that names no Node: why a schedule must not switch its power.
    pub power_refusal: Option<PowerRebootRefusal>,
}

/// A reboot request that is on a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StandingRequest {
    Absent,
    /// To be served as soon as possible.
    Now,
    /// On a Node: not to be served before this time.
    NotBefore(Timestamp),
    /// On a Node: the request cannot be parsed, so nobody serves it.
    Unreadable {
        why: String,
    },
}

/// The Node that a host's annotation `dogwatch.dev/node` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarriedNode {
    pub node: String,
    /// An older host, `NAMESPACE/NAME`, that names the same Node: the older host's claim counts.
    pub older_claim: Option<String>,
}

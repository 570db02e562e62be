//! What the decision about one schedule is made from.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::host::NotByPower;
use super::target::{Marks, Target};
use super::types::Schedule;
use crate::reboot::Parsed;

/// Everything that was seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The schedule.
    pub schedule: Schedule,
    /// UIDs of all schedules there are: the marks of others are gone for good.
    pub living: BTreeSet<String>,
    /// What may be asked; `None` until it was looked at.
    pub targets: Option<TargetsSeen>,
    /// Why a target could not be asked the last time.
    pub trouble: BTreeMap<Target, String>,
}

/// Nodes and hosts, read afresh.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetsSeen {
    /// All Nodes, or why they cannot be known. Empty where none is asked for.
    pub nodes: Result<Vec<Object>, String>,
    /// All hosts of the schedule's namespace, or why they cannot be known. The same.
    pub hosts: Result<Vec<Object>, String>,
    /// When the first question was sent, monotonic.
    pub taken: Duration,
}

/// A Node or a BareMetalHost, as far as a schedule goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// What a patch relies on.
    pub resource_version: String,
    /// When it was created, by the API server's clock.
    pub created: Timestamp,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Annotation `dogwatch.dev/scheduled`: what schedules have asked of it.
    pub marks: Parsed<Marks>,
    /// The request to reboot that stands on it, whoever made it: a Node's
    /// `dogwatch.dev/reboot-requested`, a host's `reboot.metal3.io`.
    pub request: StandingRequest,
    /// On a host: the Node that it carries.
    pub carries: Option<Carried>,
    /// On a host that names no Node: why its power is not switched for a schedule.
    pub not_by_power: Option<NotByPower>,
}

/// A request to reboot that stands on a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StandingRequest {
    /// None.
    Absent,
    /// To be served as soon as it can be.
    Now,
    /// A Node's, not to be served before this time.
    NotBefore(Timestamp),
    /// A Node's that cannot be read, so that nobody serves it.
    Unreadable {
        /// What is wrong with it.
        why: String,
    },
}

/// The Node that a host's annotation `dogwatch.dev/node` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// Its name.
    pub node: String,
    /// An older host, `NAMESPACE/NAME`, that names the same Node: that one's word counts.
    pub older_claim: Option<String>,
}

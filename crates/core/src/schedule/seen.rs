//! What the decision about one schedule is made from.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

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

/// The metadata of a Node or a BareMetalHost.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// What a patch relies on.
    pub resource_version: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Annotation `dogwatch.dev/scheduled`: what schedules have asked of it.
    pub marks: Parsed<Marks>,
    /// It has a request to reboot, whoever made it: a Node's `dogwatch.dev/reboot-requested`, a
    /// host's `reboot.metal3.io`.
    pub is_asked: bool,
    /// On a host: the Node that it carries.
    pub carries: Option<String>,
}

//! The targets of an occurrence, and what it writes on them.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::types::{TargetOutcome, TargetResult};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScheduleTargetKind {
    /// A Node: a planned reboot, with lock and drain.
    Node,
    /// A `BareMetalHost` that carries no Node: rebooted by its power.
    Host,
}

impl ScheduleTargetKind {
    /// The kind's name in Kubernetes.
    pub fn as_str(self) -> &'static str {
        match self {
            ScheduleTargetKind::Node => "Node",
            ScheduleTargetKind::Host => "BareMetalHost",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [ScheduleTargetKind::Node, ScheduleTargetKind::Host]
            .into_iter()
            .find(|kind| kind.as_str() == text)
    }
}

/// A Node, or a host in the schedule's namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScheduleTarget {
    pub kind: ScheduleTargetKind,
    pub name: String,
}

impl fmt::Display for ScheduleTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.name)
    }
}

/// Annotation `dogwatch.dev/scheduled`: for each schedule's UID the newest occurrence that has
/// asked this target. It outlives the request, so that after a leader died before it wrote the
/// status, no target is asked twice (S5).
pub type ScheduleMarks = BTreeMap<String, ScheduleMark>;

/// One occurrence that has asked the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleMark {
    /// `NAMESPACE/NAME` of the schedule.
    pub by: String,
    /// The scheduled time.
    pub at: Timestamp,
    /// There was a request already, and it was left as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub noted: bool,
    /// The NodeReboot that asks the Node; with `noted`, an earlier one that has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_reboot: Option<String>,
}

/// One patch that marks the target and, if needed, adds the request.
#[derive(Debug, Clone, PartialEq)]
pub struct RebootRequestPatch {
    pub target: ScheduleTarget,
    /// The object's UID: a later object of the same name is not patched.
    pub uid: String,
    /// The resourceVersion at which the target had no request and no mark.
    pub resource_version: String,
    /// All marks, as they should be after the patch.
    pub marks: ScheduleMarks,
    /// The annotation that requests a reboot, and its value; `None` if the target has one already, or
    /// has a NodeReboot.
    pub request: Option<(&'static str, String)>,
}

/// The target's entry in the record.
pub(super) fn build_target_end(
    target: &ScheduleTarget,
    result: TargetResult,
    message: String,
    node_reboot: Option<String>,
) -> TargetOutcome {
    TargetOutcome {
        kind: target.kind,
        name: target.name.clone(),
        result,
        message,
        node_reboot,
    }
}

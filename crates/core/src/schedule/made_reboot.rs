//! The NodeReboots that a schedule makes: one for each node of an occurrence.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::target::{ScheduleTarget, ScheduleTargetKind};
use super::types::{Schedule, SchedulePlan};
use crate::lock::name_digest;

/// How long a NodeReboot is kept after its end, beyond `startingDeadline`. An occurrence makes none
/// after its deadline, so one that was deleted at the end of this time is not made again.
const KEPT_AFTER_DEADLINE: Duration = Duration::from_hours(24);

/// With the time and the digest, a name has at most 63 characters.
const MAX_NAME_PREFIX: usize = 32;
const DIGEST_DIGITS: usize = 12;
/// The limits of the fields of a NodeReboot.
const MAX_REQUESTER_CHARS: usize = 256;
const MAX_REASON_CHARS: usize = 512;

/// A NodeReboot to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRebootDraft {
    /// The same for each controller that tries, so that there is one.
    pub name: String,
    pub target: ScheduleTarget,
    /// A later Node of the same name is not rebooted.
    pub node_uid: String,
    pub schedule_uid: String,
    /// The scheduled time.
    pub at: Timestamp,
    pub reason: String,
    pub requester: String,
    pub ttl: Duration,
}

/// A NodeReboot that the schedule has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeNodeReboot {
    pub name: String,
    pub node: String,
    pub node_uid: Option<String>,
    /// The scheduled time of its occurrence; `None` if its annotation is missing.
    pub at: Option<Timestamp>,
    /// `None`: it has not ended.
    pub end: Option<MadeRebootEnd>,
}

/// How a NodeReboot of a schedule ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeRebootEnd {
    pub is_success: bool,
    /// Of its condition `Succeeded`.
    pub reason: String,
    pub message: String,
    /// When, by the controller's clock.
    pub at: Timestamp,
}

/// The schedule's NodeReboots, as far as they can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MadeNodeReboots {
    /// By name.
    Known(BTreeMap<String, MadeNodeReboot>),
    /// There are none, and none can be made, so nodes are asked by annotation: the kind is not
    /// installed, or may not be read.
    Unavailable(String),
    /// The read failed.
    Unreadable(String),
}

/// The schedule's NodeReboots, freshly read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeNodeRebootsRead {
    pub made: MadeNodeReboots,
    /// Why no further one can be made, so that nodes are asked by annotation: the right to create
    /// them is missing, or nobody would carry them to their Nodes.
    pub refused: Option<String>,
    /// When the first read was sent, in monotonic time.
    pub taken: Duration,
}

impl MadeNodeRebootsRead {
    /// Why nodes are asked by annotation, if they are.
    pub(super) fn annotation_cause(&self) -> Option<&str> {
        match &self.made {
            MadeNodeReboots::Unavailable(why) => Some(why),
            MadeNodeReboots::Known(_) | MadeNodeReboots::Unreadable(_) => self.refused.as_deref(),
        }
    }
}

pub(super) fn draft_node_reboot(
    schedule: &Schedule,
    plan: &SchedulePlan,
    at: Timestamp,
    node: &str,
    node_uid: &str,
) -> NodeRebootDraft {
    NodeRebootDraft {
        name: node_reboot_name(schedule, at, node_uid),
        target: ScheduleTarget {
            kind: ScheduleTargetKind::Node,
            name: node.to_owned(),
        },
        node_uid: node_uid.to_owned(),
        schedule_uid: schedule.uid.clone(),
        at,
        reason: fit_reason(&plan.reason, &format!(" (scheduled for {at})")),
        requester: first_chars(
            &format!("rebootschedule/{}", schedule.name),
            MAX_REQUESTER_CHARS,
        ),
        ttl: plan.starting_deadline + KEPT_AFTER_DEADLINE,
    }
}

/// The schedule's name and the time are for people; the digest makes it unique.
pub(super) fn node_reboot_name(schedule: &Schedule, at: Timestamp, node_uid: &str) -> String {
    let mut digest = name_digest(&format!("{}\n{at}\n{node_uid}", schedule.uid));
    digest.truncate(DIGEST_DIGITS);
    let prefix = first_chars(&schedule.name.name, MAX_NAME_PREFIX);
    let prefix = prefix.trim_end_matches(['-', '.']);
    format!("{prefix}-{}-{digest}", at.strftime("%Y%m%d%H%M%S"))
}

fn fit_reason(reason: &str, time: &str) -> String {
    let room = MAX_REASON_CHARS.saturating_sub(time.len());
    first_chars(reason, room) + time
}

pub(super) fn first_chars(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

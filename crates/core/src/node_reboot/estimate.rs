//! The estimated times in the status.

use std::time::Duration;

use dogwatch_api::node_reboot::NodeRebootPhase;
use jiff::Timestamp;

use super::types::NodeRebootState;
use crate::Now;
use crate::report::NodeEstimate;

/// What the planner says about the Node of a NodeReboot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NodeRebootEstimate {
    /// No estimate was made yet: what the status says stays.
    #[default]
    NotMade,
    /// The planner does not know it, or nothing plans.
    Unknown,
    Known(NodeEstimate),
}

/// A time in the status that is off by no more than this stays.
const MIN_CHANGE: Duration = Duration::from_mins(1);
/// The same, as a share of the time until then: of a thousand NodeReboots that wait, each delay
/// moves all. The estimate itself is no more exact than 20 %.
const MIN_CHANGE_SHARE: u32 = 10;

/// Writes the estimate into the status that is wanted.
pub(super) fn update_estimate(wanted: &mut NodeRebootState, seen: &NodeRebootEstimate, now: Now) {
    let standing = (wanted.estimated_start, wanted.estimated_finish);
    let (start, finish) = match seen {
        NodeRebootEstimate::NotMade => standing,
        NodeRebootEstimate::Unknown => (None, None),
        NodeRebootEstimate::Known(times) => (Some(times.start), Some(times.finish)),
    };
    let is_back = wanted
        .attempts
        .last()
        .is_none_or(|attempt| attempt.finished_at.is_some());
    let (start, finish) = match wanted.phase {
        _ if is_back => (None, None),
        NodeRebootPhase::Waiting => (start, finish),
        NodeRebootPhase::Draining | NodeRebootPhase::Rebooting | NodeRebootPhase::Returning => {
            (None, finish)
        }
        NodeRebootPhase::Pending | NodeRebootPhase::Held | NodeRebootPhase::Finished => {
            (None, None)
        }
    };
    wanted.estimated_start = keep_if_close(standing.0, start, now);
    wanted.estimated_finish = keep_if_close(standing.1, finish, now);
}

/// The standing time, unless the newest differs from it noticeably. Whole seconds.
fn keep_if_close(
    standing: Option<Timestamp>,
    newest: Option<Timestamp>,
    now: Now,
) -> Option<Timestamp> {
    let newest = newest?;
    let newest = Timestamp::from_second(newest.as_second()).unwrap_or(newest);
    let ahead = Duration::try_from(newest.duration_since(now.wall)).unwrap_or_default();
    let tolerated = MIN_CHANGE.max(ahead / MIN_CHANGE_SHARE);
    let is_close =
        |standing: &Timestamp| standing.duration_since(newest).unsigned_abs() <= tolerated;
    Some(standing.filter(is_close).unwrap_or(newest))
}

//! Reboots that have ended.

use std::time::Duration;

use super::RecentOutcome;
use super::phase_bars::bars_of_last;
use crate::Now;
use crate::explain::{FleetSnapshot, describe_trigger};
use crate::reboot::{LastReboot, ObservedNode};

/// How long an ended reboot is shown.
const SHOWN_FOR: Duration = Duration::from_hours(24);
const MAX_SHOWN: usize = 100;

/// The newest first.
pub(super) fn recent_outcomes(fleet: &FleetSnapshot, now: Now) -> Vec<RecentOutcome> {
    let ended = fleet.iter_nodes();
    let ended = ended.filter_map(|node| Some((node, node.last_reboot.get()?)));
    let mut ended: Vec<(&ObservedNode, &LastReboot)> = ended
        .filter(|(_, last)| now.elapsed_since(last.finished) < SHOWN_FOR)
        .collect();
    ended.sort_by(|(a, one), (b, other)| (other.finished, &a.name).cmp(&(one.finished, &b.name)));
    ended.truncate(MAX_SHOWN);
    let ended = ended.into_iter();
    ended
        .map(|(node, last)| RecentOutcome {
            node: node.name.to_string(),
            group: fleet.group_of_node(node).to_string(),
            outcome: last.outcome.as_str(),
            asked: describe_trigger(&last.trigger),
            planned: last.planned,
            finished: last.finished,
            bars: bars_of_last(last),
        })
        .collect()
}

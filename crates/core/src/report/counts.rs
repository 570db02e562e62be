//! Counts nodes.

use jiff::Timestamp;

use super::FleetCounts;
use crate::explain::FleetSnapshot;
use crate::reboot::{ObservedNode, RebootPhase, RebootRecord};
use dogwatch_api::node_reboot::RebootMethod;

/// All numbers but that of a person's tasks.
pub(super) fn count_fleet(fleet: &FleetSnapshot) -> FleetCounts {
    let records = || fleet.iter_nodes().filter_map(|node| node.record.get());
    let waiting = records().filter(|record| record.phase == RebootPhase::Waiting);
    let waiting = waiting.count();
    let out = records().count() - waiting;
    let done = rollout_start(records()).map_or(0, |start| count_done(fleet, start));
    FleetCounts {
        nodes: fleet.nodes.len(),
        done,
        out,
        waiting,
        rollout: done + out + waiting,
        needs_person: 0,
    }
}

/// When the first of the nodes that wait or are out began to wait. A hold is no part of a rollout:
/// it may last for weeks.
fn rollout_start<'a>(records: impl Iterator<Item = &'a RebootRecord>) -> Option<Timestamp> {
    let reboots = records.filter(|record| record.trigger.method != RebootMethod::Hold);
    reboots.map(|record| record.planned).min()
}

fn count_done(fleet: &FleetSnapshot, start: Timestamp) -> usize {
    let is_done = |node: &&ObservedNode| {
        let last = node.last_reboot.get();
        let rebooted = last.and_then(crate::reboot::LastReboot::last_rebooted_at);
        node.record.get().is_none() && rebooted.is_some_and(|at| at >= start)
    };
    fleet.iter_nodes().filter(is_done).count()
}

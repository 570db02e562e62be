//! Counts nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::FleetCounts;
use crate::explain::FleetSnapshot;
use crate::name::NodeName;
use crate::node_reboot::ObservedNodeReboot;
use crate::reboot::{ObservedNode, RebootPhase, RebootRecord};
use dogwatch_api::node_reboot::RebootMethod;

/// All numbers but that of a person's tasks.
pub(super) fn count_fleet(
    fleet: &FleetSnapshot,
    node_reboots: &[Arc<ObservedNodeReboot>],
) -> FleetCounts {
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
        requested: count_requested(fleet, node_reboots),
        needs_person: 0,
    }
}

fn count_requested(fleet: &FleetSnapshot, node_reboots: &[Arc<ObservedNodeReboot>]) -> usize {
    // Those that have ended stay for a day.
    if node_reboots.iter().all(|reboot| reboot.is_final()) {
        return 0;
    }
    let nodes = fleet.iter_nodes().map(|node| (&node.name, node));
    let nodes: BTreeMap<&NodeName, &ObservedNode> = nodes.collect();
    let is_requested = |reboot: &&Arc<ObservedNodeReboot>| {
        let plan = reboot.plan.as_ref().ok();
        let node = plan.and_then(|plan| nodes.get(&plan.node));
        node.is_some_and(|node| reboot.has_not_reached(node))
    };
    node_reboots.iter().filter(is_requested).count()
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

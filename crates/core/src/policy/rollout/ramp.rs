//! Counts successes, and raises the limit.

use super::node_facts;
use super::{PolicyRolloutState, RolloutNode, RolloutShape};
use crate::reboot::ObservedNode;

/// The most nodes of which a success is awaited at once; with more the ramp is a little slower.
const MAX_TRACKED_NODES: usize = 200;

/// Phase `Ramping`: a step of it.
pub(super) fn advance_ramp(
    state: &mut PolicyRolloutState,
    shape: &RolloutShape,
    nodes: &[&ObservedNode],
) {
    let Some(limit) = shape.ramp_limit(state.step) else {
        state.limit = None;
        state.successes = 0;
        state.under_way.clear();
        return;
    };
    state.limit = Some(limit);
    count_successes(state, nodes);
    if state.successes >= limit {
        state.step += 1;
        state.successes = 0;
        state.limit = shape.ramp_limit(state.step);
    }
    if state.limit.is_none() {
        state.under_way.clear();
        return;
    }
    track_reboots(state, nodes);
}

fn count_successes(state: &mut PolicyRolloutState, nodes: &[&ObservedNode]) {
    let mut successes = 0;
    state.under_way.retain(|tracked| {
        let Some(node) = nodes.iter().find(|node| node.uid == tracked.uid) else {
            return false;
        };
        if node_facts::has_left_boot(node, &tracked.boot_id) {
            successes += 1;
            return false;
        }
        let record = node_facts::reboot_record(node);
        node_facts::is_under_way(node)
            && record.is_some_and(|record| record.boot_id.as_str() == tracked.boot_id)
    });
    state.successes = state.successes.saturating_add(successes);
}

/// Notes which reboots are under way. One that has failed does not count as a success later.
fn track_reboots(state: &mut PolicyRolloutState, nodes: &[&ObservedNode]) {
    for node in nodes.iter().filter(|node| node_facts::is_under_way(node)) {
        let known = state.under_way.iter().any(|it| it.uid == node.uid);
        let failed = state.failed.iter().any(|it| it.uid == node.uid);
        let record = node_facts::reboot_record(node);
        let Some(record) = record.filter(|_| !known && !failed) else {
            continue;
        };
        if state.under_way.len() >= MAX_TRACKED_NODES {
            return;
        }
        state.under_way.push(RolloutNode {
            node: node.name.to_string(),
            uid: node.uid.clone(),
            boot_id: record.boot_id.to_string(),
        });
    }
}

//! Names the canaries, and sees them come back.

use jiff::Timestamp;

use super::node_facts;
use super::{CanaryNode, PolicyRolloutState, RolloutPhase, RolloutShape};
use crate::policy::Policy;
use crate::reboot::{LastReboot, ObservedNode};

/// Phase `Canary`: a step of it.
pub(super) fn advance_canaries(
    state: &mut PolicyRolloutState,
    (policy, shape): (&Policy, &RolloutShape),
    nodes: &[&ObservedNode],
    now: Timestamp,
) {
    let named = state.canaries.len();
    state
        .canaries
        .retain_mut(|canary| update_canary(canary, nodes));
    let done = state.canaries.iter().filter(|canary| canary.done).count();
    if done >= shape.canary_count() {
        return begin_soak(state, shape, now);
    }
    // A name that was taken away is given to nobody in the same write: whoever has lost it has seen
    // that before another node begins.
    if state.canaries.len() == named {
        name_canaries(state, (policy, shape), nodes, now);
    }
}

fn begin_soak(state: &mut PolicyRolloutState, shape: &RolloutShape, now: Timestamp) {
    let soak = shape.soak_time();
    if soak.is_zero() {
        return begin_ramp(state, shape);
    }
    let ends = jiff::SignedDuration::try_from(soak).unwrap_or(jiff::SignedDuration::MAX);
    let ends = now.checked_add(ends).unwrap_or(Timestamp::MAX);
    state.phase = RolloutPhase::Soaking;
    state.soak_ends = Some(crate::time::truncate_to_micros(ends));
}

/// Phase `Soaking`: a step of it.
pub(super) fn advance_soak(state: &mut PolicyRolloutState, shape: &RolloutShape, now: Timestamp) {
    if state.soak_ends.is_none_or(|ends| ends <= now) {
        begin_ramp(state, shape);
    }
}

fn begin_ramp(state: &mut PolicyRolloutState, shape: &RolloutShape) {
    state.phase = RolloutPhase::Ramping;
    state.soak_ends = None;
    state.step = 0;
    state.successes = 0;
    state.limit = shape.ramp_limit(0);
}

/// Whether the canary keeps its name; notes its return. A name goes only while its node neither
/// waits nor has a reboot under way, or is gone.
fn update_canary(canary: &mut CanaryNode, nodes: &[&ObservedNode]) -> bool {
    if canary.done {
        return true;
    }
    let Some(node) = nodes.iter().find(|node| node.uid == canary.uid) else {
        return false;
    };
    if node_facts::has_left_boot(node, &canary.boot_id) {
        canary.done = true;
        return true;
    }
    if let Some(record) = node_facts::reboot_record(node) {
        canary.boot_id = record.boot_id.to_string();
    }
    node_facts::has_open_reboot(node)
}

/// Names as many nodes as are missing: those that wait longest. A node that began without a name,
/// before this shape, takes a place until it is back.
fn name_canaries(
    state: &mut PolicyRolloutState,
    (policy, shape): (&Policy, &RolloutShape),
    nodes: &[&ObservedNode],
    now: Timestamp,
) {
    let is_named = |node: &ObservedNode| state.canaries.iter().any(|it| it.uid == node.uid);
    let unnamed: Vec<&ObservedNode> = nodes
        .iter()
        .copied()
        .filter(|node| !is_named(node))
        .collect();
    let strangers = unnamed
        .iter()
        .filter(|node| node_facts::is_under_way(node))
        .count();
    let taken = state.canaries.len() + strangers;
    let free = shape.canary_count().saturating_sub(taken);
    let mut able: Vec<&ObservedNode> = unnamed
        .into_iter()
        .filter(|node| node_facts::is_waiting(node) && may_be_named(node, policy, now))
        .collect();
    able.sort_by_key(|node| canary_order(node));
    let new = able.into_iter().take(free).filter_map(canary_of_node);
    let new: Vec<CanaryNode> = new.collect();
    state.canaries.extend(new);
}

/// Nodes that failed before come last.
fn canary_order(node: &ObservedNode) -> (bool, Option<Timestamp>, String) {
    let record = node_facts::reboot_record(node);
    let failed = record.is_some_and(|record| record.failures > 0);
    let planned = record.map(|record| record.planned);
    (failed, planned, node.name.to_string())
}

/// A node that cannot begin soon would hold up all others.
fn may_be_named(node: &ObservedNode, policy: &Policy, now: Timestamp) -> bool {
    let is_backing_off =
        node_facts::reboot_record(node).is_some_and(|record| record.retry_after.is_some());
    let is_taken = node.api_lock || node.being_fenced || node.needs_remediation;
    let last = node
        .last_reboot
        .get()
        .and_then(LastReboot::last_rebooted_at);
    let rebooted_lately = policy
        .min_interval
        .zip(last)
        .is_some_and(|(least, last)| last.checked_add(least).unwrap_or(Timestamp::MAX) > now);
    !is_backing_off && !is_taken && !rebooted_lately
}

fn canary_of_node(node: &ObservedNode) -> Option<CanaryNode> {
    let record = node_facts::reboot_record(node)?;
    Some(CanaryNode {
        node: node.name.to_string(),
        uid: node.uid.clone(),
        boot_id: record.boot_id.to_string(),
        done: false,
    })
}

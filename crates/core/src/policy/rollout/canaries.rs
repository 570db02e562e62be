//! Names the canaries, and sees them come back.

use jiff::{SignedDuration, Timestamp};

use super::{CanaryNode, PolicyRolloutState, RolloutPhase, RolloutShape, failures, node_facts};
use crate::policy::Policy;
use crate::reboot::{LastReboot, ObservedNode};

/// A canary that waits and is not Ready for so long gives its place to a node that can begin.
const READY_WAIT_TIME: SignedDuration = SignedDuration::from_mins(5);

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
    if may_any_begin(state, policy, nodes, now) {
        release_stuck_canaries(state, nodes, now);
    }
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
    if shape.soak_time().is_zero() {
        return begin_ramp(state, shape);
    }
    state.phase = RolloutPhase::Soaking;
    state.soak_ends = Some(soak_end(shape, now));
}

/// Phase `Soaking`: a step of it. A clock that was set back must not make the soak longer.
pub(super) fn advance_soak(state: &mut PolicyRolloutState, shape: &RolloutShape, now: Timestamp) {
    match state.soak_ends {
        Some(ends) if ends > now => state.soak_ends = Some(ends.min(soak_end(shape, now))),
        _ => begin_ramp(state, shape),
    }
}

/// When a soak ends that begins now.
fn soak_end(shape: &RolloutShape, now: Timestamp) -> Timestamp {
    let soak = SignedDuration::try_from(shape.soak_time()).unwrap_or(SignedDuration::MAX);
    let ends = now.checked_add(soak).unwrap_or(Timestamp::MAX);
    crate::time::truncate_to_micros(ends)
}

fn begin_ramp(state: &mut PolicyRolloutState, shape: &RolloutShape) {
    state.phase = RolloutPhase::Ramping;
    state.soak_ends = None;
    state.step = 0;
    state.successes = 0;
    state.limit = shape.ramp_limit(0);
}

/// Whether the canary keeps its name; notes its return. Its wish or its node may be gone.
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
/// before this shape, takes a place until it is back. One that failed before this rollout takes none:
/// it may be left to a person for weeks.
fn name_canaries(
    state: &mut PolicyRolloutState,
    (policy, shape): (&Policy, &RolloutShape),
    nodes: &[&ObservedNode],
    now: Timestamp,
) {
    let has_failed_before = |node: &ObservedNode| {
        node_facts::has_condition_failure(node) && !failures::is_failure_counted(state, node)
    };
    let strangers = list_unnamed(state, nodes)
        .filter(|node| node_facts::is_under_way(node) && !has_failed_before(node))
        .count();
    let taken = state.canaries.len() + strangers;
    let free = shape.canary_count().saturating_sub(taken);
    let mut able: Vec<&ObservedNode> = list_unnamed(state, nodes)
        .filter(|node| may_be_named(node, policy, now))
        .collect();
    able.sort_by_key(|node| canary_order(node));
    let new = able.into_iter().take(free).filter_map(canary_of_node);
    let new: Vec<CanaryNode> = new.collect();
    state.canaries.extend(new);
}

fn list_unnamed<'a>(
    state: &PolicyRolloutState,
    nodes: &[&'a ObservedNode],
) -> impl Iterator<Item = &'a ObservedNode> {
    let is_named = |node: &ObservedNode| state.canaries.iter().any(|it| it.uid == node.uid);
    nodes.iter().copied().filter(move |node| !is_named(node))
}

/// Whether a node without a name, which has not failed before, could be a canary at once.
fn may_any_begin(
    state: &PolicyRolloutState,
    policy: &Policy,
    nodes: &[&ObservedNode],
    now: Timestamp,
) -> bool {
    let mut unnamed = list_unnamed(state, nodes);
    unnamed.any(|node| node.ready && may_be_named(node, policy, now) && !has_failed(node))
}

/// Takes the names of canaries that wait and cannot begin: of those that failed before this rollout
/// and pause after their last try, and of those that are not Ready for long. One whose failure this
/// rollout counts keeps its name: nothing follows it.
fn release_stuck_canaries(state: &mut PolicyRolloutState, nodes: &[&ObservedNode], now: Timestamp) {
    let is_stuck = |node: &ObservedNode| {
        let is_dead = node_facts::not_ready_since(node)
            .is_some_and(|since| now.duration_since(since) >= READY_WAIT_TIME);
        let counts_here = failures::is_failure_counted(state, node);
        let cannot_begin = is_dead || has_failed(node) && is_backing_off(node);
        node_facts::is_waiting(node) && cannot_begin && !counts_here
    };
    let stuck: Vec<&str> = nodes
        .iter()
        .filter(|node| is_stuck(node))
        .map(|node| node.uid.as_str())
        .collect();
    let canaries = &mut state.canaries;
    canaries.retain(|canary| canary.done || !stuck.contains(&canary.uid.as_str()));
}

/// Whether a canary waits and is not Ready: it may have to give its place up.
pub(super) fn has_dead_canary(state: &PolicyRolloutState, nodes: &[&ObservedNode]) -> bool {
    let mut canaries = list_unfinished(state, nodes);
    canaries.any(|node| node_facts::is_waiting(node) && !node.ready)
}

/// Whether a canary reboots, and has not failed for good: it keeps its name until it is back.
pub(super) fn is_canary_under_way(state: &PolicyRolloutState, nodes: &[&ObservedNode]) -> bool {
    let mut canaries = list_unfinished(state, nodes);
    canaries.any(|node| node_facts::is_under_way(node) && !node_facts::has_condition_failure(node))
}

/// The nodes of the canaries that are not back yet.
fn list_unfinished<'a>(
    state: &PolicyRolloutState,
    nodes: &[&'a ObservedNode],
) -> impl Iterator<Item = &'a ObservedNode> {
    let is_unfinished = |node: &ObservedNode| {
        let mut canaries = state.canaries.iter();
        canaries.any(|canary| !canary.done && canary.uid == node.uid)
    };
    nodes
        .iter()
        .copied()
        .filter(move |node| is_unfinished(node))
}

fn has_failed(node: &ObservedNode) -> bool {
    node_facts::reboot_record(node).is_some_and(|record| record.failures > 0)
}

fn is_backing_off(node: &ObservedNode) -> bool {
    node_facts::reboot_record(node).is_some_and(|record| record.retry_after.is_some())
}

/// Nodes that failed before come last, and after them those that are not Ready: such a node may be
/// sick, and wait for the very reboot, or dead.
fn canary_order(node: &ObservedNode) -> (bool, bool, Option<Timestamp>, String) {
    let record = node_facts::reboot_record(node);
    let planned = record.map(|record| record.planned);
    (
        !node.ready,
        has_failed(node),
        planned,
        node.name.to_string(),
    )
}

/// Whether it waits and can begin soon: another one would hold up all others.
fn may_be_named(node: &ObservedNode, policy: &Policy, now: Timestamp) -> bool {
    let is_able = node_facts::is_waiting(node) && !is_backing_off(node);
    let is_taken = node.api_lock || node.being_fenced || node.needs_remediation;
    let last = node
        .last_reboot
        .get()
        .and_then(LastReboot::last_rebooted_at);
    let rebooted_lately = policy
        .min_interval
        .zip(last)
        .is_some_and(|(least, last)| last.checked_add(least).unwrap_or(Timestamp::MAX) > now);
    is_able && !is_taken && !rebooted_lately
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

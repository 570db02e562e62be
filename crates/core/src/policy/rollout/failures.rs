//! Counts failures, and halts.

use jiff::Timestamp;

use super::node_facts::{self, StandingFailure};
use super::{FailedRolloutNode, PolicyRolloutState, RolloutHalt, RolloutShape};
use crate::reboot::ObservedNode;

/// The most failures that a state remembers. With more, a policy that halts stays halted.
const MAX_REMEMBERED_FAILURES: usize = 200;
/// The most nodes that a halt names.
const MAX_NAMED_FAILURES: usize = 5;

/// Takes the failures that stand now as known, without counting them: they are older than the
/// rollout.
pub(super) fn remember_standing_failures(state: &mut PolicyRolloutState, nodes: &[&ObservedNode]) {
    for (node, failure) in standing_failures(nodes) {
        if !is_known(state, node, &failure) && !remembers_no_more(state) {
            state.failed.push(failed_node(node, &failure, false));
        }
    }
}

/// Forgets failures whose reboot is over, and counts those that are new: they end the row of
/// successes.
pub(super) fn count_failures(state: &mut PolicyRolloutState, nodes: &[&ObservedNode]) {
    state.failed.retain(|failed| is_still_open(failed, nodes));
    for (node, failure) in standing_failures(nodes) {
        // What cannot be remembered is not counted, or it would be counted again and again.
        if is_known(state, node, &failure) || remembers_no_more(state) {
            continue;
        }
        if state.failures == 0 {
            note_uncounted_failures(state);
        }
        state.failed.push(failed_node(node, &failure, true));
        state.failures = state.failures.saturating_add(1);
        state.successes = 0;
        state.under_way.retain(|tracked| tracked.uid != node.uid);
    }
}

fn remembers_no_more(state: &PolicyRolloutState) -> bool {
    state.failed.len() >= MAX_REMEMBERED_FAILURES
}

/// Halts the rollout if too many failures count.
pub(super) fn halt_if_failing(
    state: &mut PolicyRolloutState,
    shape: &RolloutShape,
    now: Timestamp,
) {
    let Some(most) = shape.halt_after_failures.filter(|_| state.halted.is_none()) else {
        return;
    };
    if state.failures < most && !remembers_no_more(state) {
        return;
    }
    // The newest stand last; those of an older version, without a note, may be from before this rollout.
    let counted = usize::try_from(state.failures).unwrap_or(usize::MAX);
    let most_named = counted.min(MAX_NAMED_FAILURES);
    let newest = state.failed.iter().rev();
    let newest = newest.filter(|failed| failed.counted != Some(false));
    let newest = newest.take(most_named);
    let mut named: Vec<String> = newest
        .map(|failed| format!("{} {}", failed.node, failed.reason))
        .collect();
    named.reverse();
    let ended = most_named - named.len();
    if ended > 0 {
        named.push(format!("{ended} of a reboot that has ended since"));
    }
    let count = match state.failures {
        1 => "1 failure".to_owned(),
        many => format!("{many} failures"),
    };
    state.halted = Some(RolloutHalt {
        since: crate::time::truncate_to_micros(now),
        reason: format!("{count}: {}", named.join(", ")),
    });
}

/// Ends the halt that a person has named. What failed before is not counted again.
pub(super) fn end_resumed_halt(state: &mut PolicyRolloutState, resumed: Option<Timestamp>) {
    let named = |halt: &RolloutHalt| Some(halt.since) == resumed;
    if state.halted.as_ref().is_some_and(named) {
        state.halted = None;
        forget_counted_failures(state);
        state.successes = 0;
    }
}

/// Counts none of the failures that stand: they are known, and older than what follows.
pub(super) fn forget_counted_failures(state: &mut PolicyRolloutState) {
    if state.failures > 0 {
        note_uncounted_failures(state);
    }
    state.failures = 0;
}

/// Notes of each failure that stands that it is not counted. It is called only where `failures` changes:
/// a definition of an older version drops the note, and the status must not be written for it again
/// and again.
fn note_uncounted_failures(state: &mut PolicyRolloutState) {
    for failed in &mut state.failed {
        failed.counted = Some(false);
    }
}

/// Whether this rollout counts the failure that the node's reboot has had. An older version counted
/// without a note of the node: then any count may be of this one, and a canary that failed here must
/// keep its name. That ends with the rollout, in which such a note may be missing.
pub(super) fn is_failure_counted(state: &PolicyRolloutState, node: &ObservedNode) -> bool {
    node_facts::find_failure(node).is_some_and(|failure| {
        let mut known = state.failed.iter();
        known.any(|known| {
            is_same_failure(known, node, &failure) && known.counted.unwrap_or(state.failures > 0)
        })
    })
}

fn standing_failures<'a>(
    nodes: &'a [&'a ObservedNode],
) -> impl Iterator<Item = (&'a ObservedNode, StandingFailure<'a>)> {
    nodes
        .iter()
        .filter_map(|node| Some((*node, node_facts::find_failure(node)?)))
}

fn is_known(
    state: &PolicyRolloutState,
    node: &ObservedNode,
    failure: &StandingFailure<'_>,
) -> bool {
    let mut known = state.failed.iter();
    known.any(|known| is_same_failure(known, node, failure))
}

fn is_same_failure(
    known: &FailedRolloutNode,
    node: &ObservedNode,
    failure: &StandingFailure<'_>,
) -> bool {
    known.uid == node.uid && known.boot_id == failure.boot_id.as_str()
}

/// Whether the reboot that failed is still on the Node: it may show its failure again.
fn is_still_open(failed: &FailedRolloutNode, nodes: &[&ObservedNode]) -> bool {
    let mut nodes = nodes.iter();
    let Some(node) = nodes.find(|node| node.uid == failed.uid) else {
        return false;
    };
    node_facts::reboot_record(node).is_some_and(|record| record.boot_id.as_str() == failed.boot_id)
}

fn failed_node(
    node: &ObservedNode,
    failure: &StandingFailure<'_>,
    counted: bool,
) -> FailedRolloutNode {
    FailedRolloutNode {
        node: node.name.to_string(),
        uid: node.uid.clone(),
        boot_id: failure.boot_id.to_string(),
        reason: failure.reason.clone(),
        counted: Some(counted),
    }
}

//! The next state of a rollout, which the controller writes.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{PolicyRolloutState, RolloutPhase, RolloutShape, canaries, failures, node_facts, ramp};
use crate::policy::{Policy, ruling_policy};
use crate::reboot::ObservedNode;

/// After so long without a waiting or rebooting node the next reboot begins a new rollout.
const QUIET_TIME: SignedDuration = SignedDuration::from_hours(1);
/// How often nodes are looked at again that wait and cannot be named as canaries now, or that were
/// named and are not Ready.
const CANARY_RECHECK_TIME: Duration = Duration::from_mins(1);

/// The next state, and when time alone may change it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RolloutAdvance {
    /// `status.rollout` as it should be.
    pub state: Option<PolicyRolloutState>,
    /// By the controller's clock.
    pub wake: Option<Timestamp>,
}

/// The next state of each policy's rollout, in the order of the policies.
pub fn advance_rollouts<'a>(
    policies: &[Policy],
    nodes: impl IntoIterator<Item = &'a ObservedNode>,
    now: Timestamp,
) -> Vec<RolloutAdvance> {
    if !policies.iter().any(|policy| policy.rollout.may_halt()) {
        return vec![RolloutAdvance::default(); policies.len()];
    }
    let mut ruled: Vec<Vec<&ObservedNode>> = vec![Vec::new(); policies.len()];
    for node in nodes {
        let ruler = ruling_policy(policies, &node.labels);
        let place = ruler.and_then(|ruler| policies.iter().position(|it| std::ptr::eq(it, ruler)));
        if let Some(nodes) = place.and_then(|place| ruled.get_mut(place)) {
            nodes.push(node);
        }
    }
    let each = policies.iter().zip(&ruled);
    each.map(|(policy, nodes)| advance_rollout(policy, nodes, now))
        .collect()
}

/// The next state of one policy's rollout. `nodes` are all nodes that the policy rules.
pub fn advance_rollout(policy: &Policy, nodes: &[&ObservedNode], now: Timestamp) -> RolloutAdvance {
    let rollout = &policy.rollout;
    let Some(shape) = &rollout.shape else {
        return RolloutAdvance {
            state: kept_halt(policy),
            wake: None,
        };
    };
    let mut state = match rollout.current_state() {
        Some(state) => state.clone(),
        None => begin_rollout(shape, rollout.state.as_ref(), nodes),
    };
    failures::end_resumed_halt(&mut state, rollout.resumed);
    failures::count_failures(&mut state, nodes);
    failures::halt_if_failing(&mut state, shape, now);
    if state.halted.is_none() {
        advance_phase(&mut state, (policy, shape), nodes, now);
        state = begin_anew_when_quiet(state, shape, nodes, now);
    }
    let wake = find_wake_time(&state, shape, nodes, now);
    RolloutAdvance {
        state: Some(state),
        wake,
    }
}

/// Whether nodes wait for this change, so that it must not wait for the pause between two writes. What
/// is only counted (who reboots, how many have succeeded) is found again at the next look.
pub fn is_urgent_change(
    before: Option<&PolicyRolloutState>,
    after: Option<&PolicyRolloutState>,
) -> bool {
    let essence = |state: &PolicyRolloutState| {
        let mut state = PolicyRolloutState {
            under_way: Vec::new(),
            quiet_since: None,
            successes: 0,
            ..state.clone()
        };
        // A CRD of an older version drops this field: the write must keep its pause.
        state.failed.iter_mut().for_each(|it| it.counted = None);
        state
    };
    before.map(essence) != after.map(essence)
}

/// A policy whose `rollout` was removed: a halt stands until somebody ends it.
fn kept_halt(policy: &Policy) -> Option<PolicyRolloutState> {
    let state = policy.rollout.state.as_ref()?;
    let halt = state.halted.as_ref()?;
    (Some(halt.since) != policy.rollout.resumed).then(|| state.clone())
}

/// A new shape begins with its canaries. The halt of the older one stands.
fn begin_rollout(
    shape: &RolloutShape,
    before: Option<&PolicyRolloutState>,
    nodes: &[&ObservedNode],
) -> PolicyRolloutState {
    let mut state = shape.first_state();
    if let Some(before) = before {
        state.halted.clone_from(&before.halted);
        state.failed.clone_from(&before.failed);
        state.failures = before.failures;
        if before.halted.is_none() {
            failures::forget_counted_failures(&mut state);
        }
    }
    failures::remember_standing_failures(&mut state, nodes);
    state
}

fn advance_phase(
    state: &mut PolicyRolloutState,
    (policy, shape): (&Policy, &RolloutShape),
    nodes: &[&ObservedNode],
    now: Timestamp,
) {
    match state.phase {
        RolloutPhase::Canary => canaries::advance_canaries(state, (policy, shape), nodes, now),
        RolloutPhase::Soaking => canaries::advance_soak(state, shape, now),
        RolloutPhase::Ramping => ramp::advance_ramp(state, shape, nodes),
    }
}

/// After an hour of rest the state is that of a new rollout, before anybody waits again.
fn begin_anew_when_quiet(
    mut state: PolicyRolloutState,
    shape: &RolloutShape,
    nodes: &[&ObservedNode],
    now: Timestamp,
) -> PolicyRolloutState {
    let is_quiet = state.phase != RolloutPhase::Soaking
        && nodes.iter().all(|node| node_facts::is_at_rest(node))
        && !canaries::is_canary_under_way(&state, nodes);
    let now = crate::time::truncate_to_micros(now);
    // A clock that was set back must not make the rest longer.
    let since = state.quiet_since.take().filter(|_| is_quiet);
    let since = since.map_or(now, |since| since.min(now));
    let mut fresh = PolicyRolloutState {
        failed: state.failed.clone(),
        failures: state.failures,
        ..shape.first_state()
    };
    failures::forget_counted_failures(&mut fresh);
    if !is_quiet || state == fresh {
        return state;
    }
    if quiet_until(since) <= now {
        return fresh;
    }
    state.quiet_since = Some(since);
    state
}

fn quiet_until(since: Timestamp) -> Timestamp {
    since.checked_add(QUIET_TIME).unwrap_or(Timestamp::MAX)
}

fn find_wake_time(
    state: &PolicyRolloutState,
    shape: &RolloutShape,
    nodes: &[&ObservedNode],
    now: Timestamp,
) -> Option<Timestamp> {
    if state.halted.is_some() {
        return None;
    }
    let is_missing_canaries =
        state.phase == RolloutPhase::Canary && state.canaries.len() < shape.canary_count();
    let recheck = is_missing_canaries && nodes.iter().any(|node| node_facts::is_waiting(node))
        || canaries::has_dead_canary(state, nodes);
    let recheck = recheck.then(|| {
        now.checked_add(CANARY_RECHECK_TIME)
            .unwrap_or(Timestamp::MAX)
    });
    let quiet = state.quiet_since.map(quiet_until);
    let soak = state.soak_ends;
    [soak, quiet, recheck].into_iter().flatten().min()
}

//! The shape of a rollout in a run: what the controller would write into the policy's status.

use std::collections::BTreeMap;

use dogwatch_core::policy::rollout::{RolloutPhase, advance_rollout};
use dogwatch_core::policy::{self, Policy, RolloutCandidate};
use dogwatch_core::reboot::{
    LastReboot, ObservedNode, ParsedAnnotation, RebootOutcome, RebootPhase,
};
use dogwatch_kubesim::seed::RandomStream;
use jiff::Timestamp;

use super::group_run::GroupRun;
use super::queue::LiveWaiter;
use crate::names;

impl GroupRun<'_> {
    pub(super) fn shape_allows(&self, waiter: &LiveWaiter) -> bool {
        let Some(policy) = &self.policy else {
            return true;
        };
        let node = waiter.node.and_then(|node| self.nodes.get(node));
        let candidate = match node {
            _ if waiter.is_hold => RolloutCandidate::Hold,
            Some(node) => node.rollout_candidate(),
            None => RolloutCandidate::LockHost,
        };
        policy::check_rollout(policy, candidate).is_none()
    }

    pub(super) fn set_phase(&mut self, node: usize, phase: RebootPhase) {
        let now = self.current_time().wall;
        let Some(seen) = self.nodes.get_mut(node) else {
            return;
        };
        if let ParsedAnnotation::Is(record) = &mut seen.record {
            record.phase = phase;
            record.since = now;
            record.retry_after = None;
        }
    }

    /// Lets the controller write the next state of the policy's rollout.
    pub(super) fn advance_shape(&mut self) {
        let now = self.current_time();
        let Some(policy) = &mut self.policy else {
            return;
        };
        if !is_shape_in_force(policy) {
            return;
        }
        // Each answer may allow another step.
        for _ in 0..4 {
            let nodes: Vec<&ObservedNode> = self.nodes.iter().collect();
            let advance = advance_rollout(policy, &nodes, now.wall);
            let is_same = policy.rollout.state == advance.state;
            policy.rollout.state = advance.state;
            if let Some(at) = advance.wake.filter(|_| is_same) {
                self.allowed = self.group.allowed_nodes(self.policy.as_ref());
                return self.look_again_at(at);
            }
            if is_same {
                break;
            }
        }
        self.allowed = self.group.allowed_nodes(self.policy.as_ref());
    }
}

/// Whether the rollout's shape still limits anything. Once the ramp is over, `maxUnavailable` rules.
fn is_shape_in_force(policy: &Policy) -> bool {
    let Some(shape) = &policy.rollout.shape else {
        return false;
    };
    let state = policy.rollout.current_state();
    state.is_none_or(|state| {
        state.phase != RolloutPhase::Ramping || shape.ramp_limit(state.step).is_some()
    })
}

/// Makes the node look as it does after its reboot.
pub(super) fn complete_reboot(
    node: &mut ObservedNode,
    finished: Timestamp,
    stream: &mut RandomStream,
) {
    let ParsedAnnotation::Is(record) =
        std::mem::replace(&mut node.record, ParsedAnnotation::Absent)
    else {
        return;
    };
    let boot = names::boot_id(&stream.next_boot_id());
    node.boot_id = Some(boot.clone());
    node.conditions.clear();
    node.last_reboot = ParsedAnnotation::Is(LastReboot {
        outcome: RebootOutcome::Rebooted,
        planned: record.planned,
        finished,
        old_boot_id: record.boot_id,
        new_boot_id: boot,
        soft: false,
        trigger: record.trigger,
        fingerprints: BTreeMap::new(),
        began: BTreeMap::new(),
        rebooted: None,
    });
}

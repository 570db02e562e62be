//! The controller's part of a planned rollout: how far the shape of each policy's rollout is.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::policy::ClusterPolicies;
use dogwatch_core::policy::rollout::{advance_rollouts, is_urgent_change};

use super::{PlannedRollout, RolloutEvent};

/// The controller looks at all Nodes at most once in this time.
pub(super) const SHAPE_ADVANCE_DELAY: Duration = Duration::from_secs(1);

impl PlannedRollout<'_> {
    /// Lets the controller look again, unless no policy has a rollout or it looks earlier anyway.
    pub(super) fn plan_shape_advance(&mut self, delay: Duration) {
        let has_shape = self
            .policies
            .iter()
            .any(|policy| policy.rollout.shape.is_some());
        let due = self.now + delay;
        if !has_shape || self.shapes_due.is_some_and(|planned| planned <= due) {
            return;
        }
        self.shapes_due = Some(due);
        self.queue.schedule_event(due, RolloutEvent::AdvanceShapes);
    }

    /// Writes the next states. Those that no node waits for are written too, but not handed out.
    pub(super) fn advance_shapes(&mut self) {
        if self.shapes_due.is_none_or(|due| due > self.now) {
            return;
        }
        self.shapes_due = None;
        let now = self.current_time();
        let nodes = self.machines.iter().map(|machine| &machine.object);
        let advances = advance_rollouts(&self.policies, nodes, now.wall);
        let wake = advances.iter().filter_map(|advance| advance.wake).min();
        let mut is_urgent = false;
        let mut writes = 0;
        for (policy, advance) in self.policies.iter_mut().zip(advances) {
            let state = &mut policy.rollout.state;
            is_urgent |= is_urgent_change(state.as_ref(), advance.state.as_ref());
            writes += u64::from(*state != advance.state);
            *state = advance.state;
        }
        if writes > 0 {
            self.count_calls("write policies", writes);
            self.plan_shape_advance(SHAPE_ADVANCE_DELAY);
        }
        if is_urgent {
            let at = self.now + self.plan.api_latency;
            self.queue.schedule_event(at, RolloutEvent::TakePolicies);
        }
        if let Some(at) = wake {
            let after = now.mono_time_of(at).saturating_sub(self.now);
            self.plan_shape_advance(after.max(SHAPE_ADVANCE_DELAY));
        }
    }

    /// The watch of each node brings the policies.
    pub(super) fn take_policies(&mut self) {
        let policies = Arc::new(ClusterPolicies::Known(self.policies.clone()));
        let now = self.current_time();
        for number in 0..self.machines.len() {
            self.machines[number].take_policies(&policies, now);
            self.decide_node(number);
        }
    }
}

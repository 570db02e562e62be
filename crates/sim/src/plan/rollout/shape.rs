//! The controller's part of a planned rollout: how far the shape of each policy's rollout is.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::policy::rollout::{advance_rollout, is_urgent_change};
use dogwatch_core::policy::{ClusterPolicies, Policy, ruling_policy};
use dogwatch_core::reboot::ObservedNode;
use jiff::Timestamp;

use super::{PlannedRollout, RolloutEvent};
use crate::plan::planned_node::PlannedNode;

/// The controller looks at all Nodes at most once in this time.
const SHAPE_ADVANCE_DELAY: Duration = Duration::from_secs(1);
/// What the controller knows beside the policies.
pub(super) struct PlannedShapes {
    /// The numbers of the nodes that each policy rules: labels do not change in a plan.
    ruled: Vec<Vec<usize>>,
    /// The policy that rules each node.
    rulers: Vec<Option<usize>>,
    /// For each policy, whether a node has changed since the last look.
    changed: Vec<bool>,
    /// For each policy, when time alone may change its state.
    wakes: Vec<Option<Timestamp>>,
    /// When the controller looks next, if it is to.
    due: Option<Duration>,
}

impl PlannedShapes {
    pub(super) fn new(policies: &[Policy], machines: &[PlannedNode]) -> Self {
        let ruler_of = |machine: &PlannedNode| {
            let ruler = ruling_policy(policies, &machine.object.labels)?;
            policies.iter().position(|it| std::ptr::eq(it, ruler))
        };
        let rulers: Vec<Option<usize>> = machines.iter().map(ruler_of).collect();
        let nodes_of = |policy| {
            let numbered = rulers.iter().enumerate();
            let ruled = numbered.filter(|(_, ruler)| **ruler == Some(policy));
            ruled.map(|(number, _)| number).collect()
        };
        Self {
            ruled: (0..policies.len()).map(nodes_of).collect(),
            rulers,
            changed: vec![true; policies.len()],
            wakes: vec![None; policies.len()],
            due: None,
        }
    }

    fn is_due(&self, policy: usize, now: Timestamp) -> bool {
        self.changed[policy] || self.wakes[policy].is_some_and(|wake| wake <= now)
    }
}

impl PlannedRollout<'_> {
    /// Lets the controller look at every policy that has a shape.
    pub(super) fn plan_first_shape_advance(&mut self) {
        if self.policies.iter().any(|policy| policy.rollout.may_halt()) {
            self.plan_shape_advance(Duration::ZERO);
        }
    }

    /// Lets the controller look at the policy of a node that has changed.
    pub(super) fn plan_shape_advance_of(&mut self, number: usize) {
        let Some(ruler) = self.shapes.rulers[number] else {
            return;
        };
        if self.policies[ruler].rollout.shape.is_some() {
            self.shapes.changed[ruler] = true;
            self.plan_shape_advance(SHAPE_ADVANCE_DELAY);
        }
    }

    /// Lets the controller look after this time, unless it looks earlier anyway.
    fn plan_shape_advance(&mut self, delay: Duration) {
        let due = self.now + delay;
        if self.shapes.due.is_some_and(|planned| planned <= due) {
            return;
        }
        self.shapes.due = Some(due);
        self.queue.schedule_event(due, RolloutEvent::AdvanceShapes);
    }

    /// Writes the next states. Those that no node waits for are written too, but not handed out.
    pub(super) fn advance_shapes(&mut self) {
        if self.shapes.due.is_none_or(|due| due > self.now) {
            return;
        }
        self.shapes.due = None;
        let now = self.current_time().wall;
        let due = (0..self.policies.len()).filter(|policy| self.shapes.is_due(*policy, now));
        let mut urgent = Vec::new();
        for policy in due.collect::<Vec<_>>() {
            if self.advance_shape(policy, now) {
                urgent.push(policy);
            }
        }
        if !urgent.is_empty() {
            let at = self.now + self.plan.api_latency;
            self.queue
                .schedule_event(at, RolloutEvent::TakePolicies(urgent));
        }
        if let Some(wake) = self.shapes.wakes.iter().flatten().min() {
            let after = self.current_time().mono_time_of(*wake);
            let after = after.saturating_sub(self.now);
            self.plan_shape_advance(after.max(SHAPE_ADVANCE_DELAY));
        }
    }

    /// Writes the next state of one policy. Returns whether nodes wait for it.
    fn advance_shape(&mut self, policy: usize, now: Timestamp) -> bool {
        let machines = self.shapes.ruled[policy].iter();
        let nodes: Vec<&ObservedNode> = machines
            .map(|number| &self.machines[*number].object)
            .collect();
        let before = self.policies[policy].rollout.state.as_ref();
        let advance = advance_rollout(&self.policies[policy], &nodes, now);
        let is_changed = before != advance.state.as_ref();
        let is_urgent = is_urgent_change(before, advance.state.as_ref());
        self.policies[policy].rollout.state = advance.state;
        self.shapes.wakes[policy] = advance.wake;
        // The write is a change that the controller looks at once more.
        self.shapes.changed[policy] = is_changed;
        if is_changed {
            self.count_calls("write policies", 1);
            self.plan_shape_advance(SHAPE_ADVANCE_DELAY);
        }
        is_urgent
    }

    /// The watch of each node brings the policies. Only the nodes that one of the `changed` policies
    /// rules can decide something else by them.
    pub(super) fn take_policies(&mut self, changed: &[usize]) {
        let policies = Arc::new(ClusterPolicies::Known(self.policies.clone()));
        let now = self.current_time();
        for policy in changed {
            for number in self.shapes.ruled[*policy].clone() {
                if self.machines[number].take_policies(&policies, now) {
                    self.decide_node(number);
                }
            }
        }
    }
}

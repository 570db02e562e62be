//! A policy, its nodes, and a controller that writes each state.

use std::time::Duration;

use jiff::Timestamp;

use crate::explain::testkit::{at, boot, condition, node, record};
use crate::name::GroupName;
use crate::policy::Policy;
use crate::policy::rollout::{
    PolicyRolloutState, RolloutAdvance, RolloutCanary, RolloutShape, advance_rollout, check_rollout,
};
use crate::reboot::{
    LastReboot, ObservedNode, ParsedAnnotation, RebootOutcome, RebootPhase, RebootReason,
    RebootRecord,
};

pub(super) const SOAK: Duration = Duration::from_mins(30);

pub(super) fn build_shape(canaries: u32, ramp: &[u32], halt: Option<u32>) -> RolloutShape {
    RolloutShape {
        canary: Some(RolloutCanary {
            nodes: canaries,
            soak: SOAK,
        }),
        ramp: ramp.to_vec(),
        halt_after_failures: halt,
    }
}

pub(super) struct RolloutWorld {
    pub(super) policy: Policy,
    pub(super) nodes: Vec<ObservedNode>,
    pub(super) second: i64,
    boots: u32,
}

impl RolloutWorld {
    pub(super) fn new(shape: RolloutShape, nodes: usize) -> Self {
        let mut policy = Policy::without_rules(GroupName::new("p").unwrap());
        policy.rollout.shape = Some(shape);
        let nodes = (1..=nodes).map(|number| node(&format!("n{number}")));
        Self {
            policy,
            nodes: nodes.collect(),
            second: 1_000_000,
            boots: 0,
        }
    }

    pub(super) fn current_time(&self) -> Timestamp {
        at(self.second)
    }

    pub(super) fn pass_time(&mut self, time: Duration) {
        self.second += i64::try_from(time.as_secs()).unwrap();
    }

    /// What the controller would write.
    pub(super) fn next_advance(&self) -> RolloutAdvance {
        let nodes: Vec<&ObservedNode> = self.nodes.iter().collect();
        advance_rollout(&self.policy, &nodes, self.current_time())
    }

    /// The controller writes the next state.
    pub(super) fn write_state(&mut self) -> RolloutAdvance {
        let next = self.next_advance();
        self.policy.rollout.state.clone_from(&next.state);
        next
    }

    pub(super) fn written_state(&self) -> &PolicyRolloutState {
        self.policy.rollout.state.as_ref().unwrap()
    }

    pub(super) fn node_mut(&mut self, number: usize) -> &mut ObservedNode {
        &mut self.nodes[number - 1]
    }

    pub(super) fn want_reboot(&mut self, number: usize) {
        let second = self.second;
        let node = self.node_mut(number);
        let mut record = record(RebootPhase::Waiting, second);
        record.boot_id = node.boot_id.clone().unwrap();
        node.record = ParsedAnnotation::Is(record);
    }

    pub(super) fn set_phase(&mut self, number: usize, phase: RebootPhase) {
        self.change_record(number, |record| record.phase = phase);
    }

    /// The node reboots and is back.
    pub(super) fn come_back(&mut self, number: usize) {
        let now = self.current_time();
        self.boots += 1;
        let new = boot(&format!("boot-after-{}", self.boots));
        let node = self.node_mut(number);
        let record = node.record.get().unwrap().clone();
        node.last_reboot = ParsedAnnotation::Is(LastReboot {
            outcome: RebootOutcome::Rebooted,
            planned: record.planned,
            finished: now,
            old_boot_id: record.boot_id,
            new_boot_id: new.clone(),
            trigger: record.trigger,
            fingerprints: std::collections::BTreeMap::new(),
            began: std::collections::BTreeMap::new(),
            rebooted: None,
            soft: false,
        });
        node.boot_id = Some(new);
        node.record = ParsedAnnotation::Absent;
        node.conditions.clear();
    }

    pub(super) fn fail_reboot(&mut self, number: usize) {
        self.set_phase(number, RebootPhase::Rebooting);
        self.node_mut(number).conditions = vec![condition(
            "MaintenanceInProgress",
            ("RebootFailed", "no new boot"),
        )];
    }

    /// The drain is given up, and the node pauses before it tries again.
    pub(super) fn back_off(&mut self, number: usize) {
        let now = self.current_time();
        self.change_record(number, |record| {
            record.phase = RebootPhase::Waiting;
            record.failures += 1;
            record.retry_after = Some(now);
        });
    }

    /// The pause after a failed try is over.
    pub(super) fn end_back_off(&mut self, number: usize) {
        self.change_record(number, |record| record.retry_after = None);
    }

    fn change_record(&mut self, number: usize, change: impl FnOnce(&mut RebootRecord)) {
        let node = self.node_mut(number);
        let mut record = node.record.get().unwrap().clone();
        change(&mut record);
        node.record = ParsedAnnotation::Is(record);
    }

    pub(super) fn set_ready(&mut self, number: usize, ready: bool) {
        let now = self.current_time();
        let node = self.node_mut(number);
        node.ready = ready;
        node.conditions
            .retain(|condition| condition.kind != "Ready");
        let mut condition = condition("Ready", ("KubeletReady", ""));
        condition.status = if ready { "True" } else { "Unknown" }.into();
        condition.last_transition = Some(now);
        node.conditions.push(condition);
    }

    /// Waits, begins and comes back.
    pub(super) fn reboot_node(&mut self, number: usize) {
        self.want_reboot(number);
        self.write_state();
        assert_eq!(self.begin_refusal(number), None, "n{number}");
        self.set_phase(number, RebootPhase::Draining);
        self.write_state();
        self.come_back(number);
        self.write_state();
    }

    /// Why the node may not begin.
    pub(super) fn begin_refusal(&self, number: usize) -> Option<RebootReason> {
        let node = &self.nodes[number - 1];
        check_rollout(&self.policy, node.rollout_candidate()).map(|refusal| refusal.reason)
    }

    pub(super) fn resume_policy(&mut self) {
        let halt = self.written_state().halted.as_ref().unwrap();
        self.policy.rollout.resumed = Some(halt.since);
    }
}

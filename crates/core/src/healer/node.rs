//! A node whose coordinator gave no sign. Source: specification §2.4 and §2.5.

use std::time::Duration;

use dogwatch_api::node_reboot::RebootMethod;

use super::healing_case::{HealerDecision, HealingCase, HealingSubject};
use super::memory::NodeMemory;
use super::{HealerContext, escalation, lock_api, snapshot};
use crate::decision::{EventSeverity, decision_with_cause};
use crate::policy::{self, ClusterPolicies, RebootAllowance};
use crate::reboot::{
    self, ObservedNode, ParsedAnnotation, RebootPhase, RebootReason, RebootRecord, TakeoverStep,
};

pub(super) struct NodeCase<'a> {
    pub(super) ctx: &'a HealerContext<'a>,
    pub(super) node: &'a ObservedNode,
    pub(super) memory: &'a NodeMemory,
    /// The settings for this node: its coordinator's flags, overridden by its policy.
    pub(super) rule: policy::EffectivePolicy<'a>,
}

pub(super) fn decide_node_case(
    ctx: &HealerContext<'_>,
    node: &ObservedNode,
) -> Option<HealingCase> {
    let memory = ctx.seen.memory.node_memory(&node.name)?;
    let flags = reboot::flags_of_coordinator(node, &ctx.config.flags);
    let rule = policy::resolve_policy(&ctx.seen.policies, &node.labels, &flags);
    let patient = NodeCase {
        ctx,
        node,
        memory,
        rule,
    };
    Some(HealingCase {
        subject: HealingSubject::Node(node.name.clone()),
        decision: patient.decide_node()?,
    })
}

impl NodeCase<'_> {
    fn decide_node(&self) -> Option<HealerDecision> {
        match &self.node.record {
            ParsedAnnotation::Absent => self
                .decide_leftover_conditions()
                .or_else(|| lock_api::decide_orphaned_api_lock(self.ctx, self.node, self.memory)),
            ParsedAnnotation::Bad { why } => self.report_unreadable_record(why),
            // The policies decide how long each phase may take.
            ParsedAnnotation::Is(_)
                if matches!(self.ctx.seen.policies, ClusterPolicies::NotYetRead) =>
            {
                None
            }
            ParsedAnnotation::Is(record) if self.node.abort != ParsedAnnotation::Absent => {
                Some(self.decide_abort(record))
            }
            ParsedAnnotation::Is(record) if self.has_booted_anew(record) => {
                Some(self.decide_return())
            }
            ParsedAnnotation::Is(record) if self.is_fenced(record) => Some(wait_for_fencing()),
            ParsedAnnotation::Is(record) => match record.phase {
                RebootPhase::Waiting => self.decide_waiting_phase(record),
                RebootPhase::Draining => Some(self.decide_draining_phase(record)),
                RebootPhase::Holding => Some(self.decide_holding_phase(record)),
                RebootPhase::Rebooting => Some(escalation::decide_rebooting_phase(self, record)),
                RebootPhase::Returning if returns_in_same_boot(record) => {
                    Some(self.decide_return())
                }
                // The coordinator saw the new boot, but the kubelet has not reported it yet.
                RebootPhase::Returning => Some(self.awaiting_kubelet()),
            },
        }
    }

    /// The record is gone, but conditions say that a reboot is under way: the healer has finished
    /// it, or the coordinator died right after it did.
    fn decide_leftover_conditions(&self) -> Option<HealerDecision> {
        if !snapshot::has_unfinished_conditions(self.node) {
            return None;
        }
        if !self.is_last_write_ours()
            && let Some(decision) = self.watch_for_sign()
        {
            return Some(decision);
        }
        let idle = RebootReason::NoRebootWanted;
        let text = "nothing is under way; correcting the conditions".to_owned();
        self.take_over(&TakeoverStep::Report, idle, text)
    }

    fn report_unreadable_record(&self, why: &str) -> Option<HealerDecision> {
        if self.watch_for_sign().is_some() {
            return self.watch_for_sign();
        }
        let text = format!(
            "annotation dogwatch.dev/reboot of Node {} cannot be read ({why}); the healer does \
             nothing until you repair or remove it",
            self.node.name
        );
        Some(
            decision_with_cause(RebootReason::RecordUnreadable, text)
                .with_event(EventSeverity::Warning),
        )
    }

    /// Whether the node has booted since: the kubelet reported another boot id than the one in the
    /// record, and did so after the record was first seen. An earlier report could be of the boot
    /// before.
    fn has_booted_anew(&self, record: &RebootRecord) -> bool {
        let boot = self.node.boot_id.as_ref();
        let ends = record.phase == RebootPhase::Returning || record.ends_with_new_boot();
        ends && boot.is_some_and(|boot| *boot != record.boot_id) && self.memory.kubelet_posted
    }

    /// The remediator is fencing the machine, and cordon and record say why it is out of service:
    /// meanwhile nothing is undone and nothing is requested from its host.
    fn is_fenced(&self, record: &RebootRecord) -> bool {
        match record.phase {
            RebootPhase::Waiting | RebootPhase::Returning => false,
            RebootPhase::Draining | RebootPhase::Holding | RebootPhase::Rebooting => {
                self.node.being_fenced
            }
        }
    }

    fn awaiting_kubelet(&self) -> HealerDecision {
        if let Some(decision) = self.watch_for_sign() {
            return decision;
        }
        let text = format!(
            "{}; it came back, but its kubelet has not reported the new boot",
            self.describe_silence()
        );
        decision_with_cause(RebootReason::AwaitingKubelet, text).with_event(EventSeverity::Warning)
    }

    fn decide_return(&self) -> HealerDecision {
        if let Some(decision) = self.watch_for_sign() {
            return decision;
        }
        self.take_over_or_watch(
            &TakeoverStep::Return,
            RebootReason::CoordinatorGaveNoSign,
            self.describe_silence(),
        )
    }

    /// A bid that landed after its process died, or a lock that is never used. The record is set
    /// back first, so that a coordinator that still lives bids again before it relies on the lock.
    fn decide_waiting_phase(&self, record: &RebootRecord) -> Option<HealerDecision> {
        let Some(lease) = self.ctx.seen.leases_held_by(&self.node.name).next() else {
            return self.decide_queued_node(record);
        };
        if self.is_last_write_ours() && record.retry_after.is_some() {
            let text = format!(
                "Lease {} is released for the next node: it was not used",
                lease.name
            );
            return self.take_over(&TakeoverStep::Release, RebootReason::LockUnused, text);
        }
        let held_since = self.ctx.seen.memory.leases.get(&lease.name)?.since;
        let since = held_since.max(self.memory.silent_since);
        if let Some(at) = self.ctx.deadline_after(since, self.ctx.config.heal_after) {
            let text = format!("holds Lease {} and waits; watching it", lease.name);
            return Some(
                decision_with_cause(RebootReason::WatchingCoordinator, text)
                    .wake_at(at, "the lock to be used"),
            );
        }
        let text = format!(
            "Lease {} was held for {} without being used; queueing again",
            lease.name,
            crate::duration::format_duration(self.ctx.config.heal_after)
        );
        self.take_over(&TakeoverStep::Undo, RebootReason::LockUnused, text)
    }

    /// The healer has queued the node again and released its lock: only its conditions are left to
    /// keep.
    fn decide_queued_node(&self, record: &RebootRecord) -> Option<HealerDecision> {
        if !self.is_last_write_ours() {
            return lock_api::decide_orphaned_api_lock(self.ctx, self.node, self.memory);
        }
        let text = record.message.clone();
        self.take_over(&TakeoverStep::Report, RebootReason::BackingOff, text)
    }

    /// A drain whose coordinator gave no sign is undone at its deadline, or when the policy no
    /// longer allows it. Whatever the policy's `onTimeout` says, the healer only undoes: it reboots
    /// nothing.
    fn decide_draining_phase(&self, record: &RebootRecord) -> HealerDecision {
        if let Some(decision) = self.watch_for_sign() {
            return decision;
        }
        let allowed = self.drain_time_limit(record);
        let (why, text) = match (
            self.find_undo_cause(),
            self.ctx.deadline_after(self.memory.stage_since, allowed),
        ) {
            (Some((why, text)), _) => (why, text),
            (None, None) => {
                let allowed = crate::duration::format_duration(allowed);
                let text = format!("not drained within {allowed}");
                (RebootReason::DrainTimedOut, text)
            }
            (None, Some(at)) => {
                let text = format!(
                    "{}; the drain may continue until its deadline",
                    self.describe_silence()
                );
                let decision = decision_with_cause(RebootReason::CoordinatorGaveNoSign, text)
                    .wake_at(at, "the drain's deadline");
                return decision.with_event(EventSeverity::Warning);
            }
        };
        let text = format!("{text}, and {}; undoing the drain", self.describe_silence());
        self.take_over_or_watch(&TakeoverStep::Undo, why, text)
    }

    fn drain_time_limit(&self, record: &RebootRecord) -> Duration {
        record.drain_time_limit(self.rule.config.drain_timeout)
    }

    /// Why the coordinator would undo the drain: an uncordon is a veto, and the policy may no
    /// longer allow it. Policies that cannot be read are no cause.
    pub(super) fn find_undo_cause(&self) -> Option<(RebootReason, String)> {
        if !self.node.unschedulable {
            let text = "somebody uncordoned the node: that is a veto".to_owned();
            return Some((RebootReason::UncordonedByOther, text));
        }
        let policies = &self.ctx.seen.policies;
        if !matches!(policies, ClusterPolicies::Known(_)) {
            return None;
        }
        match policy::may_reboot_continue(policies, self.rule.policy, self.ctx.now.wall) {
            RebootAllowance::Yes { .. } => None,
            RebootAllowance::No {
                reason, message, ..
            } => Some((reason, message)),
        }
    }

    /// An abort that its coordinator does not serve. If a patch that drains or cordons may still
    /// arrive, the record is set back first; after that the healer aborts as the coordinator would.
    fn decide_abort(&self, record: &RebootRecord) -> HealerDecision {
        let since = self.memory.abort_since.unwrap_or(self.ctx.now.mono);
        if let Some(at) = self.ctx.deadline_after(since, self.ctx.config.abort_after) {
            let text = "a person requested an abort of this reboot; its coordinator may serve the request first";
            return decision_with_cause(RebootReason::WatchingCoordinator, text)
                .wake_at(at, "the abort to be served");
        }
        if record.phase == RebootPhase::Returning
            && !returns_in_same_boot(record)
            && !self.has_booted_anew(record)
        {
            return self.awaiting_kubelet();
        }
        let fenced = self.is_last_write_ours();
        let way = match record.phase {
            RebootPhase::Waiting | RebootPhase::Draining if !fenced => TakeoverStep::Undo,
            RebootPhase::Waiting
            | RebootPhase::Draining
            | RebootPhase::Holding
            | RebootPhase::Rebooting
            | RebootPhase::Returning => TakeoverStep::Abort,
        };
        let text =
            "a person requested an abort of this reboot, and its coordinator does not answer"
                .to_owned();
        self.take_over_or_watch(&way, RebootReason::Aborted, text)
    }

    /// Whether the Node still shows our own last write, so that no coordinator has written since.
    fn is_last_write_ours(&self) -> bool {
        self.memory.last_own_write.is_some()
    }

    /// Waits while the coordinator may still give a sign.
    pub(super) fn watch_for_sign(&self) -> Option<HealerDecision> {
        let at = self
            .ctx
            .deadline_after(self.memory.silent_since, self.ctx.config.heal_after)?;
        let text = "watches for a sign of the coordinator";
        Some(
            decision_with_cause(RebootReason::WatchingCoordinator, text)
                .wake_at(at, "a sign of the coordinator"),
        )
    }

    pub(super) fn describe_silence(&self) -> String {
        let after = crate::duration::format_duration(self.ctx.config.heal_after);
        format!("its coordinator has not updated anything for {after}")
    }
}

/// Whether the coordinator has seen the node come back without a new boot: from a hold, or from a
/// soft reboot that its policy accepts.
fn returns_in_same_boot(record: &RebootRecord) -> bool {
    record.soft || record.trigger.method == RebootMethod::Hold
}

fn wait_for_fencing() -> HealerDecision {
    let text = "the remediator is fencing this machine; the healer continues after that, or after a new boot";
    decision_with_cause(RebootReason::BeingFenced, text)
}

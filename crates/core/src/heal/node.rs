//! A node whose coordinator gave no sign. Source: specification §2.4 and §2.5.

use std::time::Duration;

use super::case::{Case, Decision, Subject};
use super::memory::NodeMemory;
use super::{Context, api, escalate, reason, seen};
use crate::decision::{Severity, because};
use crate::policy::{self, Allowance, Policies};
use crate::reboot::{self, Instead, NodeSeen, Parsed, Phase, Record};

/// One node, seen from outside.
pub(super) struct Patient<'a> {
    pub(super) ctx: &'a Context<'a>,
    pub(super) node: &'a NodeSeen,
    pub(super) memory: &'a NodeMemory,
    /// What holds for it: the flags, and over them its policy.
    pub(super) rule: policy::Rule<'a>,
}

pub(super) fn case(ctx: &Context<'_>, node: &NodeSeen) -> Option<Case> {
    let memory = ctx.seen.memory.node(&node.name)?;
    let rule = policy::rule(&ctx.seen.policies, &node.labels, &ctx.config.flags);
    let patient = Patient {
        ctx,
        node,
        memory,
        rule,
    };
    Some(Case {
        subject: Subject::Node(node.name.clone()),
        decision: patient.decision()?,
    })
}

impl Patient<'_> {
    fn decision(&self) -> Option<Decision> {
        match &self.node.record {
            Parsed::Absent => self
                .left_behind()
                .or_else(|| api::left_behind(self.ctx, self.node, self.memory)),
            Parsed::Bad { why } => self.unreadable(why),
            // They say how long everything may take.
            Parsed::Is(_) if matches!(self.ctx.seen.policies, Policies::NotYet) => None,
            Parsed::Is(record) if self.node.abort != Parsed::Absent => Some(self.abort(record)),
            Parsed::Is(record) if self.is_back(record) => Some(self.back()),
            Parsed::Is(record) if self.is_fenced(record) => Some(being_fenced()),
            Parsed::Is(record) => match record.phase {
                Phase::Waiting => self.waiting(record),
                Phase::Draining => Some(self.draining(record)),
                Phase::Rebooting => Some(escalate::rebooting(self, record)),
                // Its coordinator saw the new boot, the kubelet has not told it yet.
                Phase::Returning => Some(self.awaiting_kubelet()),
            },
        }
    }

    /// The record is gone, and conditions say that something is under way: we have finished it, or
    /// its coordinator died right after it did.
    fn left_behind(&self) -> Option<Decision> {
        if !seen::unfinished_conditions(self.node) {
            return None;
        }
        if !self.is_ours()
            && let Some(decision) = self.watching()
        {
            return Some(decision);
        }
        let idle = reboot::reason::IDLE;
        let text = "nothing is under way; the conditions are put right".to_owned();
        self.instead(&Instead::Tell, idle, text)
    }

    fn unreadable(&self, why: &str) -> Option<Decision> {
        if self.watching().is_some() {
            return self.watching();
        }
        let text = format!(
            "annotation dogwatch.dev/reboot of Node {} cannot be read ({why}); nothing is done until it is mended or removed",
            self.node.name
        );
        Some(because(reboot::reason::RECORD_UNREADABLE, text).say(Severity::Warning))
    }

    /// Another boot than the one that was to be ended, by the kubelet's own word, given since the
    /// record was first seen: an older word could be of the boot before.
    fn is_back(&self, record: &Record) -> bool {
        let boot = self.node.boot_id.as_ref();
        boot.is_some_and(|boot| *boot != record.boot_id) && self.memory.kubelet_posted
    }

    /// The remediator has it in hand, cordon and record say what it was out for: nothing is undone or
    /// asked of its host meanwhile.
    fn is_fenced(&self, record: &Record) -> bool {
        match record.phase {
            Phase::Waiting | Phase::Returning => false,
            Phase::Draining | Phase::Rebooting => self.node.fenced,
        }
    }

    fn awaiting_kubelet(&self) -> Decision {
        if let Some(decision) = self.watching() {
            return decision;
        }
        let text = format!(
            "{}; it came back, but its kubelet has not reported the new boot",
            self.no_sign()
        );
        because(reason::AWAITING_KUBELET, text).say(Severity::Warning)
    }

    fn back(&self) -> Decision {
        if let Some(decision) = self.watching() {
            return decision;
        }
        self.instead_or_watch(&Instead::Return, reason::NO_SIGN, self.no_sign())
    }

    /// A bid that landed after its process died, or one that is never used. The record goes back
    /// first, so that whoever still lives asks anew before it relies on the lock.
    fn waiting(&self, record: &Record) -> Option<Decision> {
        let Some(lease) = self.ctx.seen.held_by(&self.node.name).next() else {
            return self.queued(record);
        };
        if self.is_ours() && record.retry_after.is_some() {
            let text = format!("Lease {} goes to the next: it was not used", lease.name);
            return self.instead(&Instead::Release, reason::LOCK_UNUSED, text);
        }
        let held_since = self.ctx.seen.memory.leases.get(&lease.name)?.since;
        let since = held_since.max(self.memory.quiet_since);
        if let Some(at) = self.ctx.due(since, self.ctx.config.heal_after) {
            let text = format!("holds Lease {} and waits; watching it", lease.name);
            return Some(because(reason::WATCHING, text).wake(at, "the lock to be used"));
        }
        let text = format!(
            "Lease {} was held for {:?} without being used; queueing again",
            lease.name, self.ctx.config.heal_after
        );
        self.instead(&Instead::Undo, reason::LOCK_UNUSED, text)
    }

    /// Back in the queue by our hand, the lock given away: only what is told of it is still ours.
    fn queued(&self, record: &Record) -> Option<Decision> {
        if !self.is_ours() {
            return api::left_behind(self.ctx, self.node, self.memory);
        }
        let text = record.message.clone();
        self.instead(&Instead::Tell, reboot::reason::BACKING_OFF, text)
    }

    /// A drain whose coordinator gave no sign: undone at its deadline, or when what allowed it ends.
    /// Whatever the policy wants at the deadline, the healer only undoes: it reboots nothing.
    fn draining(&self, record: &Record) -> Decision {
        if let Some(decision) = self.watching() {
            return decision;
        }
        let allowed = self.drain_allowed(record);
        let (why, text) = match (
            self.no_leave(),
            self.ctx.due(self.memory.stage_since, allowed),
        ) {
            (Some((why, text)), _) => (why, text),
            (None, None) => {
                let text = format!("not drained within {allowed:?}");
                (reboot::reason::DRAIN_TIMED_OUT, text)
            }
            (None, Some(at)) => {
                let text = format!("{}; the drain has until its deadline", self.no_sign());
                let decision = because(reason::NO_SIGN, text).wake(at, "the drain's deadline");
                return decision.say(Severity::Warning);
            }
        };
        let text = format!("{text}, and {}; undoing", self.no_sign());
        self.instead_or_watch(&Instead::Undo, why, text)
    }

    fn drain_allowed(&self, record: &Record) -> Duration {
        let timeout = self.rule.config.drain_timeout;
        if record.deleting {
            timeout.saturating_mul(2)
        } else {
            timeout
        }
    }

    /// What the coordinator would undo a drain for: an uncordon is a veto, and the policy may have
    /// changed its mind. Policies that we cannot read say nothing.
    pub(super) fn no_leave(&self) -> Option<(&'static str, String)> {
        if !self.node.unschedulable {
            let text = "somebody uncordoned the node: that is a veto".to_owned();
            return Some((reboot::reason::VETOED, text));
        }
        let policies = &self.ctx.seen.policies;
        if !matches!(policies, Policies::Known(_)) {
            return None;
        }
        match policy::still_allowed(policies, self.rule.policy, self.ctx.now.wall) {
            Allowance::Yes { .. } => None,
            Allowance::No {
                reason, message, ..
            } => Some((reason, message)),
        }
    }

    /// A person's word that nobody serves. The record goes back first where a drain or a cordon may
    /// still be on its way; then it is the coordinator's own way.
    fn abort(&self, record: &Record) -> Decision {
        let since = self.memory.abort_since.unwrap_or(self.ctx.now.mono);
        if let Some(at) = self.ctx.due(since, self.ctx.config.abort_after) {
            let text = "a person wants this reboot stopped; its coordinator has the first word";
            return because(reason::WATCHING, text).wake(at, "the abort to be served");
        }
        if record.phase == Phase::Returning && !self.is_back(record) {
            return self.awaiting_kubelet();
        }
        let fenced = self.is_ours();
        let way = match record.phase {
            Phase::Waiting | Phase::Draining if !fenced => Instead::Undo,
            Phase::Waiting | Phase::Draining | Phase::Rebooting | Phase::Returning => {
                Instead::Abort
            }
        };
        let text =
            "a person wants this reboot stopped, and its coordinator does not answer".to_owned();
        self.instead_or_watch(&way, reboot::reason::ABORTED, text)
    }

    /// Whether what stands there is our own last write: nobody has said anything since.
    fn is_ours(&self) -> bool {
        self.memory.ours.is_some()
    }

    /// While the coordinator may still be about to give a sign.
    pub(super) fn watching(&self) -> Option<Decision> {
        let at = self
            .ctx
            .due(self.memory.quiet_since, self.ctx.config.heal_after)?;
        let text = "watches whether the coordinator gives a sign";
        Some(because(reason::WATCHING, text).wake(at, "a sign of the coordinator"))
    }

    pub(super) fn no_sign(&self) -> String {
        let after = crate::duration::format(self.ctx.config.heal_after);
        format!("its coordinator gave no sign for {after}")
    }
}

fn being_fenced() -> Decision {
    let text = "the remediator has this machine in hand; goes on when that is over, or when it has booted anew";
    because(reboot::reason::BEING_FENCED, text)
}

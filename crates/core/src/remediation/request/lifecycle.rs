//! The steps of a request that the truth table does not cover: cancellation, retry, success, end.
//! Source: specification §4.2.

use std::sync::Arc;

use jiff::Timestamp;

use super::super::RemediationReason;
use super::super::action::RemediationAction;
use super::super::config::RemediationConfig;
use super::super::context::RemediationContext;
use super::super::machine::MachineApi;
use super::super::record::RemediationStep;
use super::super::types::RemediationDecision;
use super::RequestStatus;
use super::flow::RequestFlow;
use crate::decision::{EventSeverity, decision_with_cause};
use crate::duration;
use crate::power::{self, CurrentPower};
use crate::reboot::ObservedNode;

/// Why the request does nothing more with its host.
pub(super) struct RequestCancellation {
    pub(super) reason: RemediationReason,
    pub(super) message: String,
}

impl RequestFlow<'_> {
    /// Whether the request was withdrawn, or cannot be served.
    pub(super) fn find_cancellation(&self) -> Option<RequestCancellation> {
        let off = |reason, message| Some(RequestCancellation { reason, message });
        if self.request.deleting {
            return off(
                RemediationReason::Withdrawn,
                "the request is deleted".to_owned(),
            );
        }
        if self.request.timed_out {
            let text = "the health check has given up on it (annotation nhc-timed-out)";
            return off(RemediationReason::TimedOut, text.to_owned());
        }
        if self.status.ended_at.is_some() {
            return None;
        }
        if let Err(wrong) = &self.request.strategy {
            let text = format!("{wrong}: delete this request and create a new one");
            return off(RemediationReason::BadRequest, text);
        }
        let text = self.describe_other_host()?;
        off(RemediationReason::BadRequest, text)
    }

    /// Explains that the request's target is not the host that it began with.
    fn describe_other_host(&self) -> Option<String> {
        let (name, uid) = self.status.host.as_ref()?;
        let host = self.case.host.as_ref().ok()?;
        let what = if host.name != *name {
            format!("its target is on host {} now", host.name)
        } else if host.uid != *uid {
            format!("host {name} was deleted and created again")
        } else {
            return None;
        };
        Some(format!(
            "the remediation began for host {name}, and {what}: delete this request; a health \
             check that still finds the node failed creates a new one"
        ))
    }

    /// Ends a cancelled request: removes the key, waits until the host is on, and removes our taint
    /// after a new boot. After that nothing of ours is left, and the finalizer of a deleted request
    /// is removed.
    pub(super) fn wind_down(&mut self, off: &RequestCancellation) -> RemediationDecision {
        if let Some(decision) = self.remove_key(off.reason, &off.message) {
            return decision.with_event(EventSeverity::Normal);
        }
        if let Some(decision) = self.wait_for_power_on(off) {
            return decision;
        }
        if let Some(decision) = self.lift_taint() {
            return decision;
        }
        let is_bad = off.reason == RemediationReason::BadRequest;
        if self.status.started_at.is_some() && !is_bad {
            let was_off = self.was_proved_off();
            self.end_with(if was_off {
                RemediationStep::Failed
            } else {
                RemediationStep::Withdrawn
            });
        }
        self.removes_finalizer = self.request.deleting;
        let decision = decision_with_cause(off.reason, self.final_message(off));
        if is_bad {
            decision.with_event(EventSeverity::Warning)
        } else {
            decision
        }
    }

    /// The last message of the request: it says whether the host stays off, and why.
    fn final_message(&self, off: &RequestCancellation) -> String {
        let is_on = self.ctx.effective_power() == CurrentPower::On
            || !self.was_proved_off()
            || self.is_back();
        if is_on {
            return off.message.clone();
        }
        let why = self.held_off_elsewhere();
        let why = why.unwrap_or_else(|| "the host was not seen on in time".to_owned());
        format!("{}; its host is off: {why}", off.message)
    }

    /// Removes our key from the host, whatever its power is. The table asks for it both with power
    /// on and with power off where there is no mark; and a key on a host whose power cannot be read
    /// would switch it off as soon as it can.
    pub(super) fn remove_key(
        &self,
        reason: RemediationReason,
        why: &str,
    ) -> Option<RemediationDecision> {
        let host = self.case.host.as_ref().ok()?;
        if !self.case.is_keyed() {
            return None;
        }
        let key = self.case.key.annotation_name();
        let record = self.case.record.as_ref();
        let record = record.map(|_| self.record_with_step(RemediationStep::KeyRemoved));
        let text = format!("{why}; {key} is removed from host {}", host.name);
        Some(
            decision_with_cause(reason, text).with_action(RemediationAction::RemoveKey {
                host: Arc::clone(host),
                key,
                record,
            }),
        )
    }

    /// Waits until the host is on if our key switched it off or is still doing so (a reboot that
    /// has begun is finished), unless somebody else keeps it off.
    fn wait_for_power_on(&self, off: &RequestCancellation) -> Option<RemediationDecision> {
        let attempt = self.status.attempt.as_ref()?;
        let removed = attempt.key_removed_at?;
        let host = self.case.host.as_ref().ok()?;
        let is_awaited = match self.ctx.effective_power() {
            CurrentPower::On => host.status.is_reboot_pending(),
            CurrentPower::Off => true,
            CurrentPower::Unknown => self.was_proved_off() || host.status.is_reboot_pending(),
        };
        if !is_awaited || self.held_off_elsewhere().is_some() || self.is_back() {
            return None;
        }
        let left =
            RemediationConfig::WARN_AFTER.checked_sub(self.ctx.now.elapsed_since(removed))?;
        let text = format!(
            "{}; host {} has not been seen on yet: {}",
            off.message,
            host.name,
            self.ctx.describe_power()
        );
        let until = self.ctx.now.mono + left;
        Some(
            decision_with_cause(RemediationReason::PoweringOn, text)
                .wake_at(until, "a host that does not come on"),
        )
    }

    /// Whether the host was proved off in this attempt.
    fn was_proved_off(&self) -> bool {
        self.status.attempt.is_some_and(|it| it.off_at.is_some())
    }

    /// Why the host stays off without our key: something that Dogwatch may not change holds it off.
    pub(super) fn held_off_elsewhere(&self) -> Option<String> {
        let host = self.case.host.as_ref().ok()?;
        let ours = self.case.key.annotation_name();
        if !host.online {
            return Some(format!("spec.online of host {} is false", host.name));
        }
        let others = power::reboot_annotations(host).into_iter();
        let mut others = others.filter(|it| it.key.is_some() && it.name != ours);
        let other = others.find(|it| power::is_annotation_obeyed(host, it))?;
        Some(format!("{} keeps host {} off", other.name, host.name))
    }

    /// Removes our taint once the Node is Ready with a new boot, and not before. If the Node is
    /// deleted, the taint goes with it.
    pub(super) fn lift_taint(&mut self) -> Option<RemediationDecision> {
        let tainted_at = self.status.tainted_at?;
        // Whether the taint is gone is not known.
        if let Some(problem) = self.case.cluster.problem.clone() {
            return Some(RemediationContext::wait_for_cluster(problem));
        }
        // A Node that is gone took its taint along.
        let Some(node) = self.target_node().cloned() else {
            self.status.tainted_at = None;
            return None;
        };
        if !node.out_of_service {
            let waits = self.wait_for_late_taint(&node, tainted_at);
            if waits.is_none() {
                self.status.tainted_at = None;
            }
            return waits;
        }
        if self.is_back() {
            self.status.tainted_at = None;
            let text = format!(
                "node {} is Ready with a new boot: its taint is removed",
                node.name
            );
            self.actions_before_status
                .push(RemediationAction::Untaint { node, tainted_at });
            return Some(decision_with_cause(RemediationReason::Restoring, text));
        }
        let text = format!(
            "the taint out-of-service stays on node {} until the Node is Ready with a new boot",
            node.name
        );
        Some(decision_with_cause(RemediationReason::WaitingForNode, text))
    }

    /// Waits until a call without an answer can set our taint no more, and then reads the Node again.
    /// `None`: the taint is not there, and will not come.
    fn wait_for_late_taint(
        &self,
        node: &ObservedNode,
        tainted_at: Timestamp,
    ) -> Option<RemediationDecision> {
        let passed = self.ctx.now.elapsed_since(self.last_release_at(tainted_at));
        let wait = |text: &str| {
            let node = &node.name;
            let text = format!("the taint out-of-service is not on node {node}: {text}");
            decision_with_cause(RemediationReason::WaitingForNode, text)
        };
        if let Some(left) = RemediationConfig::UNANSWERED_WRITE_LIFETIME.checked_sub(passed)
            && !left.is_zero()
        {
            let until = self.ctx.now.mono + left;
            let decision = wait("a call without an answer may still set it");
            return Some(decision.wake_at(until, "a late taint of the Node"));
        }
        let Some(fresh) = self.ctx.recent_reads() else {
            let decision = wait("the Node is read again to be sure");
            return Some(decision.with_observe(self.ctx.observe_fresh()));
        };
        let read = fresh.node.as_ref().filter(|read| read.uid == node.uid);
        read.filter(|read| read.out_of_service).map(|_| {
            let until = RemediationContext::reads_valid_until(fresh);
            wait("the watch does not show it yet").wake_at(until, "what was read to be seen")
        })
    }

    /// A time after which no taint was sent: a release needs our key on the host.
    fn last_release_at(&self, tainted_at: Timestamp) -> Timestamp {
        let attempt = self.status.attempt;
        let keyless = attempt.map(|it| it.key_removed_at.unwrap_or(it.started_at));
        keyless.map_or(tainted_at, |at| at.max(tainted_at))
    }

    /// Whether the Node is Ready with another boot than the one to be ended. Source: specification
    /// §1 S4.
    pub(super) fn is_back(&self) -> bool {
        let Some(node) = self.case.node.as_ref().filter(|node| node.ready) else {
            return false;
        };
        if self.case.is_keyed() || !self.has_done(RemediationStep::KeyAdded) {
            return false;
        }
        match (&self.status.boot_id, &node.boot_id) {
            (Some(old), Some(new)) => old != new.as_str(),
            // The old boot id is not known. A new Node has a new boot, because its host was off.
            (None, Some(_)) => {
                self.has_done(RemediationStep::Released)
                    && self.status.node_uid.as_ref() != Some(&node.uid)
            }
            (Some(_) | None, None) => false,
        }
    }

    pub(super) fn finish_succeeded(&mut self) -> RemediationDecision {
        if let Some(decision) = self.lift_taint() {
            return decision;
        }
        self.end_with(RemediationStep::NodeReady);
        let text = "the Node is Ready with a new boot";
        decision_with_cause(RemediationReason::Remediated, text).with_event(EventSeverity::Normal)
    }

    /// Why this attempt is over.
    pub(super) fn attempt_end_reason(&self) -> Option<String> {
        let attempt = self.status.attempt.filter(|it| it.key_at.is_some())?;
        let number = attempt.number;
        if self.has_expired(&attempt) {
            let timeout = duration::format_duration(self.strategy.timeout);
            return Some(format!("attempt {number} took longer than {timeout}"));
        }
        // Each attempt adds its key only once, so that no attempt cuts the power twice.
        let is_spoiled = !self.case.is_keyed() && attempt.released_at.is_none();
        is_spoiled.then(|| {
            format!("the key of attempt {number} was removed before the Node was released")
        })
    }

    /// Removes the key, then begins the next attempt if the limit allows one.
    pub(super) fn retry_or_give_up(&mut self, why: &str) -> RemediationDecision {
        if let Some(decision) = self.remove_key(RemediationReason::Retrying, why) {
            return decision.with_event(EventSeverity::Warning);
        }
        // Whether the Node is back is not known, and a Machine that is given up may be deleted.
        if let Some(problem) = self.case.cluster.problem.clone() {
            return RemediationContext::wait_for_cluster(problem);
        }
        // Neither a power-off nor a failure is the answer for a machine that works.
        if self.node_replaced_problem().is_none()
            && let Some(decision) = self.hold_while_healthy()
        {
            return decision;
        }
        if self.is_used_up() {
            return self.give_up(why);
        }
        self.begin_attempt();
        self.serve_by_table()
    }

    /// Whether this attempt was the last. The limit may have been lowered in the meantime.
    pub(super) fn is_used_up(&self) -> bool {
        let number = self.status.attempt.map_or(0, |it| it.number);
        number > self.strategy.retry_limit
    }

    /// Ends the request as failed, and hands a Cluster API Machine back to its owner.
    pub(super) fn give_up(&mut self, why: &str) -> RemediationDecision {
        let number = self.status.attempt.map_or(0, |it| it.number);
        let text = format!("{why}; attempt {number} was the last one");
        let machine = self.case.machine.as_ref();
        if let Some(machine) = machine.filter(|it| it.name.api == MachineApi::ClusterApi) {
            self.actions_before_status
                .push(RemediationAction::HandBack {
                    machine: Arc::clone(machine),
                    message: text.clone(),
                });
        }
        self.end_with(RemediationStep::Failed);
        decision_with_cause(RemediationReason::AttemptsUsedUp, text)
            .with_event(EventSeverity::Warning)
    }

    /// Removes what is left of a request that has ended.
    pub(super) fn clean_up_after_end(&mut self) -> RemediationDecision {
        let step = ended_with(&self.status).unwrap_or(RemediationStep::Failed);
        self.end_step = Some(step);
        let (reason, text) = match step {
            RemediationStep::NodeReady => (
                RemediationReason::Remediated,
                "the Node is Ready with a new boot",
            ),
            RemediationStep::Withdrawn => (
                RemediationReason::NodeHealthy,
                "the Node was healthy before its host was powered off: this request is done",
            ),
            RemediationStep::Failed
            | RemediationStep::Requested
            | RemediationStep::KeyAdded
            | RemediationStep::OffProved
            | RemediationStep::Released
            | RemediationStep::KeyRemoved
            | RemediationStep::PoweredOn => (
                RemediationReason::AttemptsUsedUp,
                "all attempts are used up",
            ),
        };
        if let Some(decision) = self.remove_key(reason, text) {
            return decision;
        }
        if let Some(decision) = self.lift_taint() {
            return decision;
        }
        decision_with_cause(reason, text)
    }

    /// Ends the request with this step, unless it has ended already.
    pub(super) fn end_with(&mut self, step: RemediationStep) {
        self.end_step = Some(ended_with(&self.status).unwrap_or(step));
        if self.status.ended_at.is_none() {
            self.status.ended_at = Some(self.wall_time());
            self.record_step(step);
        }
    }
}

/// The step with which the request ended; `None` if it has not ended.
pub(super) fn ended_with(status: &RequestStatus) -> Option<RemediationStep> {
    status.ended_at?;
    let mut newest = status.timeline.iter().rev();
    newest.find(|it| it.step.is_end()).map(|it| it.step)
}

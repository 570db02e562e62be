//! Serves a request by the truth table, with the steps before and after each of its rows. Source:
//! specification §4.2.

use std::sync::Arc;
use std::time::Duration;

use super::super::action::{RemediationAction, RemediationObserve};
use super::super::context::RemediationContext;
use super::super::host_link::RemediationProblem;
use super::super::record::RemediationStep;
use super::super::release_permit::{self, WorkloadRelease};
use super::super::snapshot::WorkloadLeftovers;
use super::super::truth_table::{RemediationMove, TruthTableInputs, move_by_request};
use super::super::types::RemediationDecision;
use super::super::{RemediationReason, by_annotation, prepare};
use super::flow::RequestFlow;
use super::observe::LEFTOVERS_READ_INTERVAL;
use super::{RemediationAttempt, StrategyType};
use crate::decision::{EventSeverity, decision_with_cause};
use crate::power::{CurrentPower, HostSnapshot};
use crate::reboot::ObservedNode;

impl RequestFlow<'_> {
    /// Does what the table says, with "needs remediation" 1.
    pub(super) fn serve_by_table(&mut self) -> RemediationDecision {
        if let Some((reason, text)) = self.case.problem.clone() {
            let taken = self.remove_key(reason, &text);
            return taken.map_or_else(
                || self.wait_while_blocked(reason, &text),
                |decision| decision.with_event(EventSeverity::Warning),
            );
        }
        let host = match &self.case.host {
            Ok(host) => Arc::clone(host),
            Err((reason, text)) => return self.wait_while_blocked(*reason, text),
        };
        if let Some(problem) = self.case.cluster.problem.clone() {
            return self.wait_for_cluster(problem);
        }
        if let Some((reason, text)) = self.node_replaced_problem() {
            return self.wait_while_blocked(reason, &text);
        }
        if let Some(decision) = self.hold_while_healthy() {
            return decision;
        }
        if prepare::is_key_of_person(&self.ctx) {
            return self.take_over_key(&host);
        }
        match move_by_request(self.table_inputs()) {
            RemediationMove::AddKey => self.add_key(&host),
            RemediationMove::Release => self.release_workloads(),
            // The table gives these moves only for a served request, which is recognized before the
            // table is asked.
            RemediationMove::RemoveNeed | RemediationMove::RemoveKey => self.wait_for_return(),
            RemediationMove::Nothing if self.case.is_keyed() => self.wait_for_off(),
            RemediationMove::Nothing => {
                let text = format!(
                    "Dogwatch does nothing, because the power state of host {} is unknown: {}{}",
                    host.name,
                    self.ctx.describe_power(),
                    self.ctx.confirm_off_hint()
                );
                self.wait_while_blocked(RemediationReason::PowerUnknown, &text)
            }
        }
    }

    /// The key is on the host. A Node that is Ready again meanwhile takes it off.
    fn wait_for_off(&self) -> RemediationDecision {
        let decision = self.withdraw_key_if_healthy();
        let decision = decision
            .unwrap_or_else(|| by_annotation::wait_for_off(&self.ctx, self.ctx.effective_power()));
        self.wake_at_deadline(decision)
    }

    /// Waits while nothing is known about the Node. A host that is off stays off until the attempt
    /// ends; without a key no attempt is used up, as with a guard.
    fn wait_for_cluster(&self, problem: RemediationProblem) -> RemediationDecision {
        let decision = RemediationContext::wait_for_cluster(problem);
        if self.case.is_keyed() {
            self.wake_at_deadline(decision)
        } else {
            decision
        }
    }

    fn table_inputs(&self) -> TruthTableInputs {
        TruthTableInputs {
            node: self.is_node_unreleased(),
            needs_remediation: true,
            power: self.ctx.effective_power(),
            key: self.case.is_keyed(),
        }
    }

    /// Another Node of that name exists, and not because we deleted the first.
    pub(super) fn node_replaced_problem(&self) -> Option<RemediationProblem> {
        let was_released = self.has_done(RemediationStep::Released);
        if was_released || self.case.is_keyed() || self.target_node().is_some() {
            return None;
        }
        let node = self.case.node.as_ref()?;
        let text = format!(
            "node {} was deleted and created again after the request was accepted: delete the \
             request; if a health check finds the new node failed, it creates a new request",
            node.name
        );
        Some((RemediationReason::NodeReplaced, text))
    }

    /// Waits while no attempt can begin for a reason that is not a guard. The attempt's time runs,
    /// so that whoever asked learns that it failed.
    fn wait_while_blocked(&mut self, reason: RemediationReason, text: &str) -> RemediationDecision {
        let open = self.status.attempt.filter(|it| it.key_at.is_none());
        let attempt = match open {
            Some(attempt) if !self.has_expired(&attempt) => attempt,
            Some(_) if self.is_used_up() => return self.give_up(text),
            Some(_) | None => self.begin_attempt(),
        };
        let decision = decision_with_cause(reason, text);
        let decision = decision.wake_at(self.attempt_deadline(&attempt), "the end of this attempt");
        // Every host begins with an unknown power.
        if reason == RemediationReason::PowerUnknown {
            decision
        } else {
            decision.with_event(EventSeverity::Warning)
        }
    }

    pub(super) fn begin_attempt(&mut self) -> RemediationAttempt {
        let attempt = RemediationAttempt {
            number: self
                .status
                .attempt
                .map_or(1, |it| it.number.saturating_add(1)),
            started_at: self.wall_time(),
            key_at: None,
            off_at: None,
            released_at: None,
            key_removed_at: None,
        };
        self.status.attempt = Some(attempt);
        attempt
    }

    /// Passes guards, Lease, fencing annotation and fresh reads, then records the attempt and adds
    /// the key.
    fn add_key(&mut self, host: &HostSnapshot) -> RemediationDecision {
        // Waiting for a guard uses up no attempt. Waiting for a BMC that does not answer does, so
        // an attempt whose time is half used up restarts and leaves the BMC half its time.
        let is_late = |it: &RemediationAttempt| {
            self.ctx.now.elapsed_since(it.started_at) >= self.strategy.timeout / 2
        };
        if let Some(attempt) = self.status.attempt.filter(is_late) {
            let started_at = self.wall_time();
            self.status.attempt = Some(RemediationAttempt {
                started_at,
                ..attempt
            });
        }
        let (fresh, host) = match prepare::prepare_key(&self.ctx, host, self.strategy.kind) {
            Ok(ready) => ready,
            Err(decision) => return decision,
        };
        if self.status.attempt.is_none() {
            self.begin_attempt();
        }
        self.record_target(fresh.node.as_deref());
        prepare::add_key(
            &self.ctx,
            host,
            self.record_with_step(RemediationStep::KeyAdded),
        )
    }

    /// Takes over the key of a person who confirmed that the host is off: boot and record are
    /// written as for our own key.
    fn take_over_key(&mut self, host: &Arc<HostSnapshot>) -> RemediationDecision {
        let node = self.target_node().cloned();
        self.record_boot(node.as_deref());
        let is_off = self.status.attempt.is_some_and(|it| it.off_at.is_some());
        let step = if is_off {
            RemediationStep::OffProved
        } else {
            RemediationStep::KeyAdded
        };
        prepare::take_over_key(&self.ctx, host, self.record_with_step(step))
    }

    /// Records the Node, and its boot if none was ended yet. After an earlier attempt has released the
    /// workloads, a later boot is new: only if its machine is off again, that boot is the one to be ended.
    fn record_target(&mut self, node: Option<&ObservedNode>) {
        let was_released = self.has_done(RemediationStep::Released);
        if !was_released && self.status.tainted_at.is_none() {
            return self.record_boot(node);
        }
        if let Some(node) = node {
            self.status.node_uid = Some(node.uid.clone());
        }
    }

    /// Records the running boot as the one to be ended.
    pub(super) fn record_boot(&mut self, node: Option<&ObservedNode>) {
        let Some(node) = node else { return };
        self.status.node_uid = Some(node.uid.clone());
        if let Some(boot_id) = &node.boot_id {
            self.status.boot_id = Some(boot_id.to_string());
        }
    }

    /// Releases the workloads of a host that is off.
    fn release_workloads(&mut self) -> RemediationDecision {
        let how = self.strategy.kind;
        let is_tainted = self.target_node().is_some_and(|node| node.out_of_service);
        if how == StrategyType::OutOfServiceTaint && is_tainted {
            return self.wait_for_leftovers();
        }
        let cleared = match release_permit::issue_release_permit(&self.ctx, how) {
            Ok(cleared) => cleared,
            Err(decision) => return self.wake_at_deadline(decision),
        };
        // The machine may have rebooted after the key was added: the boot to be ended is the last
        // one before it was off.
        if let Some(fresh) = self.ctx.recent_reads() {
            self.record_boot(fresh.node.as_deref());
        }
        let tainted_at = self
            .status
            .tainted_at
            .unwrap_or_else(|| self.whole_second());
        let reason = match how {
            StrategyType::DeleteNode => RemediationReason::Released,
            StrategyType::OutOfServiceTaint => {
                self.status.tainted_at = Some(tainted_at);
                RemediationReason::Releasing
            }
        };
        let text = release_permit::describe_release(&self.ctx, &cleared);
        let release = WorkloadRelease {
            permit: cleared,
            strategy_type: how,
            tainted_at,
        };
        decision_with_cause(reason, text)
            .with_action(RemediationAction::Release(release))
            .with_event(EventSeverity::Normal)
    }

    /// The current time in whole seconds, as Kubernetes stores `timeAdded`.
    fn whole_second(&self) -> jiff::Timestamp {
        let now = self.ctx.now.wall;
        jiff::Timestamp::from_second(now.as_second()).unwrap_or(now)
    }

    /// The taint is set: waits until Kubernetes has deleted the pods and detached the volumes.
    fn wait_for_leftovers(&self) -> RemediationDecision {
        let left = self.ctx.memory.leftovers.as_ref();
        let text = left.map_or_else(
            || "reading which workloads are left on the Node".to_owned(),
            |left| {
                format!(
                    "the Node is tainted; still on it: {}",
                    describe_leftovers(left)
                )
            },
        );
        let decision =
            self.wake_at_deadline(decision_with_cause(RemediationReason::Releasing, text));
        let Some(node) = self.case.node_name.clone() else {
            return decision;
        };
        let taken = left.map(|left| left.asked_at);
        let due = taken.map_or(Duration::ZERO, |taken| taken + LEFTOVERS_READ_INTERVAL);
        if self.ctx.now.mono < due {
            return decision.wake_at(due, "what is left on the Node");
        }
        let newer_than = taken.unwrap_or(Duration::ZERO);
        decision.with_observe(RemediationObserve::Leftovers { node, newer_than })
    }

    /// The workloads are released: removes the key, then waits until the host is on and the Node is
    /// Ready.
    pub(super) fn wait_for_return(&mut self) -> RemediationDecision {
        let why = "the workloads are released";
        if let Some(decision) = self.remove_key(RemediationReason::PoweringOn, why) {
            return decision.with_event(EventSeverity::Normal);
        }
        let decision = match (self.ctx.effective_power(), self.held_off_elsewhere()) {
            (CurrentPower::On, _) => decision_with_cause(
                RemediationReason::WaitingForNode,
                "the host is on; its Node is not Ready with a new boot yet",
            ),
            (CurrentPower::Off | CurrentPower::Unknown, Some(why)) => {
                let text = format!("Dogwatch no longer keeps the host off, but {why}");
                decision_with_cause(RemediationReason::PoweringOn, text)
                    .with_event(EventSeverity::Warning)
            }
            (CurrentPower::Off | CurrentPower::Unknown, None) => {
                let text = format!(
                    "the host is being powered on: {}",
                    self.ctx.describe_power()
                );
                decision_with_cause(RemediationReason::PoweringOn, text)
            }
        };
        self.wake_at_deadline(decision)
    }

    /// Wakes the decision up when the attempt times out at the latest.
    fn wake_at_deadline(&self, decision: RemediationDecision) -> RemediationDecision {
        match &self.status.attempt {
            Some(attempt) => {
                decision.wake_at(self.attempt_deadline(attempt), "the end of this attempt")
            }
            None => decision,
        }
    }
}

/// Names the first pod and the first attachment, and counts the others.
fn describe_leftovers(left: &WorkloadLeftovers) -> String {
    let of = |what: &str, names: &[String]| {
        let first: Vec<&str> = names.iter().take(3).map(String::as_str).collect();
        match names.len() {
            0 => None,
            n if n > first.len() => Some(format!("{n} {what} ({}, …)", first.join(", "))),
            _ => Some(format!("{what} {}", first.join(", "))),
        }
    };
    let parts = [
        of("pods", &left.pods),
        of("volume attachments", &left.attachments),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        "none, according to an old answer".to_owned()
    } else {
        parts.join(" and ")
    }
}

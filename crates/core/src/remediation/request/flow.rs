//! Decides about one request, step by step. Source: specification §4.2.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::super::action::RemediationAction;
use super::super::context::RemediationContext;
use super::super::decide::unless_host_is_written;
use super::super::record::{RemediationRecord, RemediationStep};
use super::super::types::{Remediation, RemediationDecision};
use super::super::{RemediationReason, legacy_backup, recovery, restore};
use super::{
    MAX_TIMELINE_STEPS, PowerRequest, RemediationAttempt, RemediationStrategy, RequestStatus,
    StrategyType, report,
};
use crate::decision::decision_with_cause;
use crate::reboot::ObservedNode;

/// The inputs of a decision, and the status that results from it.
pub(super) struct RequestFlow<'a> {
    pub(super) ctx: RemediationContext<'a>,
    pub(super) case: &'a Remediation,
    pub(super) request: &'a Arc<PowerRequest>,
    pub(super) strategy: RemediationStrategy,
    /// The desired status. It is written before the decision's other actions (S5).
    pub(super) status: RequestStatus,
    /// Actions that precede the write of the status, because the status says that they are done.
    pub(super) actions_before_status: Vec<RemediationAction>,
    /// The step with which the host's open record of this request ends.
    pub(super) end_step: Option<RemediationStep>,
    /// Whether to remove the finalizer once there is nothing else to do.
    pub(super) removes_finalizer: bool,
}

/// Decides about a remediation that a request asks for.
///
/// The observations of this pass (key seen, off proved, released, key gone) go into the status, and
/// the status is written before the step that follows from them. So a crash between any two writes
/// leaves either an observation that is made again, or a step that the table asks for again.
pub(in super::super) fn decide(ctx: &RemediationContext<'_>) -> RemediationDecision {
    let Some(request) = &ctx.case.request else {
        return decision_with_cause(RemediationReason::NothingToDo, "the request is gone");
    };
    let mut flow = RequestFlow {
        ctx: *ctx,
        case: ctx.case,
        request,
        strategy: request.strategy.clone().unwrap_or(NO_STRATEGY),
        status: request.status.clone(),
        actions_before_status: Vec::new(),
        end_step: None,
        removes_finalizer: false,
    };
    let decision = flow.decide_actions();
    flow.finish_decision(decision)
}

/// Placeholder for a strategy that cannot be parsed. It is never used, because
/// [`RequestFlow::find_cancellation`] cancels such a request.
const NO_STRATEGY: RemediationStrategy = RemediationStrategy {
    kind: StrategyType::DeleteNode,
    retry_limit: 0,
    timeout: Duration::MAX,
};

impl RequestFlow<'_> {
    fn decide_actions(&mut self) -> RemediationDecision {
        if let Some(off) = self.find_cancellation() {
            self.observe_steps();
            return self.wind_down(&off);
        }
        if self.status.ended_at.is_some() {
            self.observe_steps();
            return self.clean_up_after_end();
        }
        if !self.request.has_finalizer {
            let request = Arc::clone(self.request);
            let text = "Dogwatch adds its finalizer to the request, so that it can clean up when the \
                 request is deleted";
            return decision_with_cause(RemediationReason::TakenUp, text)
                .with_action(RemediationAction::AddFinalizer { request });
        }
        if let Some(decision) = self.wait_for_cluster_at_start() {
            return decision;
        }
        if let Some(decision) = self.end_if_healthy_at_start() {
            return decision;
        }
        self.take_up_request();
        self.observe_steps();
        if self.is_back() {
            return self.finish_succeeded();
        }
        if let Some(why) = self.attempt_end_reason() {
            return self.retry_or_give_up(&why);
        }
        if self.is_served() {
            return self.wait_for_return();
        }
        self.serve_by_table()
    }

    /// Puts the write of a changed status first, and the removal of the finalizer last.
    fn finish_decision(self, decision: RemediationDecision) -> RemediationDecision {
        let mut decision = self.clean_up_host(decision);
        let mut actions = self.actions_before_status;
        if self.status != self.request.status {
            actions.push(RemediationAction::WriteStatus {
                request: Arc::clone(self.request),
                status: Box::new(self.status.clone()),
            });
        }
        actions.append(&mut decision.actions);
        if actions.is_empty() && self.removes_finalizer && self.request.has_finalizer {
            let request = Arc::clone(self.request);
            actions.push(RemediationAction::RemoveFinalizer { request });
        }
        decision.actions = actions;
        let conditions = report::request_conditions(self.request, &self.status, &decision.cause);
        decision.report.conditions = conditions;
        recovery::take_lost_lease(&self.ctx, decision)
    }

    /// Adds the restore of the backup, the end of the record, and the release of the fencing
    /// annotation and the Lease.
    fn clean_up_host(&self, decision: RemediationDecision) -> RemediationDecision {
        let decision =
            unless_host_is_written(&self.ctx, decision, legacy_backup::take_over_legacy_backup);
        let mut decision = unless_host_is_written(&self.ctx, decision, restore::restore_backup);
        // The backup is restored before the Lease is freed.
        let is_restoring = restore::is_restore_due(&self.ctx);
        let is_open = self.ctx.open_record().is_some() && !self.case.is_keyed() && !is_restoring;
        if let (Some(end), true, Ok(host)) = (self.end_step, is_open, &self.case.host) {
            decision = unless_host_is_written(&self.ctx, decision, |_, decision| {
                let host = Arc::clone(host);
                let record = self.record_with_step(end);
                decision.with_action(RemediationAction::WriteRecord { host, record })
            });
        }
        recovery::free_node_claims(&self.ctx, decision)
    }

    /// Name and UID of the Node's cluster, as they were when the host was powered off: what a flag
    /// or a kubeconfig says today must not replace what the open record says.
    fn recorded_cluster(&self) -> (Option<String>, Option<String>) {
        let (name, uid) = (self.case.cluster.name.record_name(), &self.case.cluster.uid);
        let record = self.case.record.as_ref();
        let open = record.filter(|it| it.uid == self.request.uid && it.ended_at().is_none());
        let Some(open) = open else {
            return (name, uid.clone());
        };
        let is_same = open.cluster == name;
        let uid = open
            .cluster_uid
            .clone()
            .or_else(|| uid.clone().filter(|_| is_same));
        (open.cluster.clone(), uid)
    }

    /// The request's Node, unless another Node of that name exists now.
    pub(super) fn target_node(&self) -> Option<&Arc<ObservedNode>> {
        let node = self.case.node.as_ref()?;
        let uid = self.status.node_uid.as_ref();
        uid.is_none_or(|uid| *uid == node.uid).then_some(node)
    }

    /// Whether the workloads were released in this attempt.
    pub(super) fn is_served(&self) -> bool {
        self.status
            .attempt
            .is_some_and(|it| it.released_at.is_some())
    }

    /// When the attempt times out.
    pub(super) fn attempt_deadline(&self, attempt: &RemediationAttempt) -> Duration {
        let timeout = self.strategy.timeout;
        let passed = self.ctx.now.elapsed_since(attempt.started_at);
        self.ctx.now.mono + timeout.saturating_sub(passed)
    }

    pub(super) fn has_expired(&self, attempt: &RemediationAttempt) -> bool {
        self.ctx.now.elapsed_since(attempt.started_at) >= self.strategy.timeout
    }

    /// Appends a step to the status. A full timeline loses its oldest step but the first.
    pub(super) fn record_step(&mut self, step: RemediationStep) {
        let stamp = self.ctx.stamp_step(step);
        let timeline = &mut self.status.timeline;
        if timeline.len() >= MAX_TIMELINE_STEPS {
            timeline.remove(1);
        }
        timeline.push(stamp);
    }

    /// The current time, truncated to microseconds as in the status.
    pub(super) fn wall_time(&self) -> Timestamp {
        crate::time::truncate_to_micros(self.ctx.now.wall)
    }

    /// Whether the request has been through this step, in any attempt.
    pub(super) fn has_done(&self, step: RemediationStep) -> bool {
        self.status.timeline.iter().any(|it| it.step == step)
    }

    /// The host's record of this request, with one more step.
    pub(super) fn record_with_step(&self, step: RemediationStep) -> RemediationRecord {
        let began = self.status.attempt.map(|it| it.started_at);
        let steps = self.status.timeline.iter().filter(|it| {
            let is_of_this =
                it.step == RemediationStep::Requested || began.is_some_and(|began| it.at >= began);
            is_of_this && !it.step.is_end() && it.step != step
        });
        let (cluster, cluster_uid) = self.recorded_cluster();
        RemediationRecord {
            subject: self.case.subject.to_string(),
            uid: self.request.uid.clone(),
            node: self.status.node.clone(),
            node_uid: self.status.node_uid.clone(),
            cluster,
            cluster_uid,
            boot_id: self.status.boot_id.clone(),
            attempt: self.status.attempt.map_or(1, |it| it.number),
            steps: steps.cloned().chain([self.ctx.stamp_step(step)]).collect(),
        }
    }
}

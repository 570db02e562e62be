//! Decides what to do about one `NodeReboot`.

use dogwatch_api::node_reboot::{NodeRebootPhase, RebootAttemptStatus};

use super::attempt::decide_attempt;
use super::estimate::update_estimate;
use super::following::can_withdraw;
use super::host_key::HostKeyPatch;
use super::reason::NodeRebootReason;
use super::report;
use super::request::{LateAskBlock, NodeRequestPatch, withdraw_patch};
use super::snapshot::{HostLookup, MAX_READ_AGE, NodeRebootSnapshot};
use super::types::{NodeRebootState, ObservedNodeReboot};
use crate::Now;
use crate::decision::{DecisionCause, DecisionReport, EventSeverity, WakeTime};
use crate::reboot::ObservedNode;
use crate::time::SCHEDULE_CLOCK_CHECK_INTERVAL;

#[derive(Debug, Clone, PartialEq)]
pub enum NodeRebootAction {
    /// Add our finalizer to the NodeReboot, on the resourceVersion last seen.
    AddFinalizer,
    /// Remove it, on the resourceVersion last seen.
    RemoveFinalizer,
    /// Write the status on the resourceVersion last seen. Its `conditions` are not written from
    /// here: the decision's report states them.
    WriteStatus(Box<NodeRebootState>),
    /// Change what the Node is asked for.
    PatchNode(Box<NodeRequestPatch>),
    /// Make a request that may still be on its way to the Node fail.
    BlockLateAsk(Box<LateAskBlock>),
    /// Put our key on the host, or take it away.
    PatchHost(Box<HostKeyPatch>),
    /// Delete the NodeReboot: the time after its end is over.
    DeleteObject,
}

/// A fact to read once, now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeRebootObserve {
    /// The Node, from the API server and not from a watch.
    Node,
    /// The Node's host, the same way.
    Host(HostLookup),
    /// The NodeReboot that a key on a host names, the same way.
    KeyOwner,
}

pub type NodeRebootDecision =
    crate::Decision<NodeRebootAction, NodeRebootObserve, NodeRebootReason>;

/// What comes next, and the status that must be written before it.
pub(super) struct NodeRebootStep {
    pub(super) status: NodeRebootState,
    pub(super) next: NextStep,
    pub(super) cause: DecisionCause<NodeRebootReason>,
    pub(super) wake: Option<WakeTime>,
}

pub(super) enum NextStep {
    Wait,
    /// The Node must be read afresh.
    Read,
    /// The attempt in the status begins; the finalizer comes before it.
    Start,
    Patch(NodeRequestPatch),
    BlockLateAsk(LateAskBlock),
    /// The host must be read afresh.
    ReadHost(HostLookup),
    PatchHost(HostKeyPatch),
    /// The end. `Succeeded` becomes True or False, by [`is_success`].
    End,
}

/// Which ends are a success.
pub(super) fn is_success(reason: NodeRebootReason) -> bool {
    matches!(
        reason,
        NodeRebootReason::Rebooted | NodeRebootReason::SuccessReached | NodeRebootReason::Released
    )
}

pub fn decide(seen: &NodeRebootSnapshot, now: Now) -> NodeRebootDecision {
    if let Some(problem) = &seen.own.status_problem {
        let text = format!("the status cannot be parsed: {problem}");
        let reason = NodeRebootReason::StatusUnreadable;
        return crate::decision::decision_with_cause(reason, text)
            .with_event(EventSeverity::Warning);
    }
    if seen.own.is_final() {
        return decide_final(seen, now);
    }
    let step = decide_attempt(seen, now);
    let mut status = step.status;
    status.observed_generation = seen.own.generation;
    status.message.clone_from(&step.cause.message);
    let is_end = matches!(step.next, NextStep::End);
    if is_end {
        status.phase = NodeRebootPhase::Finished;
    }
    update_estimate(&mut status, &seen.estimate, now);
    let is_begun = !status.attempts.is_empty();
    let report = report::build_report(&step.cause, is_end, is_begun);
    let is_changed = report::has_status_changed(&seen.own.status, &status, &report);
    let mut decision = build_decision(step.cause, report, step.wake);
    match step.next {
        // The answer takes milliseconds: what the status says stays until then.
        NextStep::Read => decision.observe.push(NodeRebootObserve::Node),
        NextStep::ReadHost(lookup) => decision.observe.push(NodeRebootObserve::Host(lookup)),
        NextStep::Start if !seen.own.has_finalizer => {
            decision.actions.push(NodeRebootAction::AddFinalizer);
        }
        _ if is_changed => {
            let write = NodeRebootAction::WriteStatus(Box::new(status));
            decision.actions.push(write);
        }
        NextStep::Wait | NextStep::Start | NextStep::End => {}
        NextStep::Patch(patch) => {
            decision
                .actions
                .push(NodeRebootAction::PatchNode(Box::new(patch)));
        }
        NextStep::BlockLateAsk(block) => {
            decision
                .actions
                .push(NodeRebootAction::BlockLateAsk(Box::new(block)));
        }
        NextStep::PatchHost(patch) => {
            decision
                .actions
                .push(NodeRebootAction::PatchHost(Box::new(patch)));
        }
    }
    decision
}

/// `Succeeded` is True or False. A request that was written to the Node without an answer, and came
/// after that, is taken back.
fn decide_final(seen: &NodeRebootSnapshot, now: Now) -> NodeRebootDecision {
    let own = &*seen.own;
    let ended = own.final_condition();
    let reason = ended.and_then(|ended| NodeRebootReason::parse(&ended.reason));
    let reason = reason.unwrap_or(NodeRebootReason::Accepted);
    let cause = DecisionCause::new(reason, own.status.message.clone());
    let since = ended.and_then(|ended| ended.last_transition);
    let report = report::build_final_report(own, &cause, now);
    let mut decision = build_decision(cause, report, None);
    if let Some((node, late)) = find_late_request(seen) {
        if can_withdraw(node) {
            let withdrawal = NodeRebootAction::PatchNode(Box::new(late));
            decision.actions.push(withdrawal);
        }
        decision.wake = Some(WakeTime {
            at: now.mono + SCHEDULE_CLOCK_CHECK_INTERVAL,
            why: "the end of what a late request began",
        });
        return decision;
    }
    if own.has_finalizer {
        decision.actions.push(NodeRebootAction::RemoveFinalizer);
        return decision;
    }
    let (Ok(plan), Some(since), false) = (&own.plan, since, own.deleting) else {
        return decision;
    };
    if now.elapsed_since(since) >= plan.ttl {
        decision.actions.push(NodeRebootAction::DeleteObject);
        return decision;
    }
    let over = since + jiff::SignedDuration::try_from(plan.ttl).unwrap_or_default();
    decision.wake = Some(WakeTime {
        at: now.recheck_time_of(over, SCHEDULE_CLOCK_CHECK_INTERVAL),
        why: "the end of ttlAfterFinished",
    });
    decision
}

/// The Node that still has the request, and what takes it back.
fn find_late_request(seen: &NodeRebootSnapshot) -> Option<(&ObservedNode, NodeRequestPatch)> {
    let node = seen.node.as_ref()?;
    let patch = withdraw_patch(node, &seen.own, &seen.others)?;
    Some((node, patch))
}

fn build_decision(
    cause: DecisionCause<NodeRebootReason>,
    report: DecisionReport,
    wake: Option<WakeTime>,
) -> NodeRebootDecision {
    crate::Decision {
        actions: Vec::new(),
        observe: Vec::new(),
        report,
        wake,
        cause,
    }
}

impl NodeRebootStep {
    /// The status stays as it is, but for its message.
    pub(super) fn new(
        own: &ObservedNodeReboot,
        next: NextStep,
        reason: NodeRebootReason,
        message: impl Into<String>,
    ) -> Self {
        Self {
            status: own.status.clone(),
            next,
            cause: DecisionCause::new(reason, message),
            wake: None,
        }
    }

    pub(super) fn with_wake(mut self, at: std::time::Duration, why: &'static str) -> Self {
        self.wake = WakeTime::earlier_of(self.wake.take(), Some(WakeTime { at, why }));
        self
    }

    pub(super) fn with_phase(mut self, phase: NodeRebootPhase) -> Self {
        self.status.phase = phase;
        self
    }

    /// Replaces the attempt that is under way.
    pub(super) fn with_attempt(mut self, attempt: RebootAttemptStatus) -> Self {
        if let Some(last) = self.status.attempts.last_mut() {
            *last = attempt;
        }
        self
    }

    /// Reads the Node, or waits if the read just failed.
    pub(super) fn read_node(
        seen: &NodeRebootSnapshot,
        reason: NodeRebootReason,
        message: impl Into<String>,
        now: Now,
    ) -> Self {
        let own = &seen.own;
        match seen.fresh_read(now) {
            Some(read) => {
                let why = read.node.as_ref().err().cloned().unwrap_or_default();
                let text = format!("the Node cannot be read: {why}");
                let reason = NodeRebootReason::NodeUnreadable;
                Self::new(own, NextStep::Wait, reason, text)
                    .with_wake(read.taken + MAX_READ_AGE, "another read of the Node")
            }
            None => Self::new(own, NextStep::Read, reason, message),
        }
    }
}

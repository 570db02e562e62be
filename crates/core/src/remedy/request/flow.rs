//! One decision about a request: in which order things are asked. Source: specification §4.2.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::super::action::Action;
use super::super::case::{Case, Decision};
use super::super::context::Context;
use super::super::decide::unless_host_is_written;
use super::super::record::{Record, Step};
use super::super::{after, legacy, reason, restore};
use super::{Attempt, PowerRequest, RequestStatus, Strategy, StrategyType, report};
use crate::decision::because;
use crate::reboot::NodeSeen;

/// What a decision starts from, and what becomes of the status.
pub(super) struct Flow<'a> {
    pub(super) ctx: Context<'a>,
    pub(super) case: &'a Case,
    pub(super) request: &'a Arc<PowerRequest>,
    pub(super) strategy: Strategy,
    /// As it should stand. It is written before whatever the decision does (S5).
    pub(super) status: RequestStatus,
    /// What goes before that write, for it is the status that says that this is done.
    pub(super) first: Vec<Action>,
    /// The host's record of it, if it is open, ends with this.
    pub(super) end: Option<Step>,
    /// The finalizer goes, once nothing else is to be done.
    pub(super) lets_go: bool,
}

/// What to do about a case that is a request's.
///
/// The observations of this pass (key seen, off proved, released, key gone) go into the status, and the
/// status is written before the step that follows from them. So a crash between any two writes leaves
/// either an observation that is made again, or a step that the table asks for again.
pub(in super::super) fn decide(ctx: &Context<'_>) -> Decision {
    let Some(request) = &ctx.case.request else {
        return because(reason::NOTHING_TO_DO, "the request is gone");
    };
    let mut flow = Flow {
        ctx: *ctx,
        case: ctx.case,
        request,
        strategy: request.strategy.clone().unwrap_or(NO_STRATEGY),
        status: request.status.clone(),
        first: Vec::new(),
        end: None,
        lets_go: false,
    };
    let decision = flow.run();
    flow.finish(decision)
}

/// Of a request whose strategy cannot be read: [`Flow::called_off`] lets it go no way that asks for one.
const NO_STRATEGY: Strategy = Strategy {
    kind: StrategyType::DeleteNode,
    retry_limit: 0,
    timeout: Duration::MAX,
};

impl Flow<'_> {
    fn run(&mut self) -> Decision {
        if let Some(off) = self.called_off() {
            self.observe();
            return self.wind_down(&off);
        }
        if self.status.ended_at.is_some() {
            self.observe();
            return self.after_the_end();
        }
        if !self.request.has_finalizer {
            let request = Arc::clone(self.request);
            let text =
                "a finalizer of ours is put on the request, so that nothing of it is left behind";
            return because(reason::TAKEN_UP, text).act(Action::AddFinalizer { request });
        }
        if let Some(decision) = self.well_at_first_sight() {
            return decision;
        }
        self.take_up();
        self.observe();
        if self.is_back() {
            return self.succeed();
        }
        if let Some(why) = self.over() {
            return self.next(&why);
        }
        if self.is_served() {
            return self.come_back();
        }
        self.work()
    }

    /// The status goes first, if it says anything new; what is left of ours last.
    fn finish(self, decision: Decision) -> Decision {
        let mut decision = self.clear_away(decision);
        let mut actions = self.first;
        if self.status != self.request.status {
            actions.push(Action::WriteStatus {
                request: Arc::clone(self.request),
                status: Box::new(self.status.clone()),
            });
        }
        actions.append(&mut decision.actions);
        if actions.is_empty() && self.lets_go && self.request.has_finalizer {
            let request = Arc::clone(self.request);
            actions.push(Action::RemoveFinalizer { request });
        }
        decision.actions = actions;
        let conditions = report::conditions(self.request, &self.status, &decision.because);
        decision.report.conditions = conditions;
        decision
    }

    /// What the host keeps for the Node, its record, the mark and the Lease.
    fn clear_away(&self, decision: Decision) -> Decision {
        let decision = unless_host_is_written(&self.ctx, decision, legacy::steps);
        let mut decision = unless_host_is_written(&self.ctx, decision, restore::steps);
        // What was kept comes back on the Node before the Node is let go.
        let is_restoring = restore::is_due(&self.ctx);
        let is_open = self.ctx.open_record().is_some() && !self.case.is_keyed() && !is_restoring;
        if let (Some(end), true, Ok(host)) = (self.end, is_open, &self.case.host) {
            decision = unless_host_is_written(&self.ctx, decision, |_, decision| {
                let host = Arc::clone(host);
                let record = self.record(end);
                decision.act(Action::WriteRecord { host, record })
            });
        }
        after::free(&self.ctx, decision)
    }

    /// The Node that this is about: not another one of its name.
    pub(super) fn target(&self) -> Option<&Arc<NodeSeen>> {
        let node = self.case.node.as_ref()?;
        let uid = self.status.node_uid.as_ref();
        uid.is_none_or(|uid| *uid == node.uid).then_some(node)
    }

    /// The attempt is served: its workloads were seen released.
    pub(super) fn is_served(&self) -> bool {
        self.status
            .attempt
            .is_some_and(|it| it.released_at.is_some())
    }

    /// When the attempt's time is up.
    pub(super) fn deadline(&self, attempt: &Attempt) -> Duration {
        let timeout = self.strategy.timeout;
        let passed = self.ctx.now.since(attempt.started_at);
        self.ctx.now.mono + timeout.saturating_sub(passed)
    }

    /// The attempt's time is up.
    pub(super) fn has_expired(&self, attempt: &Attempt) -> bool {
        self.ctx.now.since(attempt.started_at) >= self.strategy.timeout
    }

    /// A step was seen.
    pub(super) fn stamp(&mut self, step: Step) {
        let stamp = self.ctx.stamp(step);
        let timeline = &mut self.status.timeline;
        if timeline.len() >= RequestStatus::STEPS {
            timeline.remove(1);
        }
        timeline.push(stamp);
    }

    /// This moment, as the status writes it.
    pub(super) fn wall(&self) -> Timestamp {
        crate::time::micros(self.ctx.now.wall)
    }

    /// What the host remembers of it, with one more step.
    pub(super) fn record(&self, step: Step) -> Record {
        let began = self.status.attempt.map(|it| it.started_at);
        let steps = self.status.timeline.iter().filter(|it| {
            let is_of_this =
                it.step == Step::Requested || began.is_some_and(|began| it.at >= began);
            is_of_this && !it.step.is_end() && it.step != step
        });
        Record {
            subject: self.case.subject.to_string(),
            uid: self.request.uid.clone(),
            node: self.status.node.clone(),
            node_uid: self.status.node_uid.clone(),
            boot_id: self.status.boot_id.clone(),
            attempt: self.status.attempt.map_or(1, |it| it.number),
            steps: steps.cloned().chain([self.ctx.stamp(step)]).collect(),
        }
    }
}

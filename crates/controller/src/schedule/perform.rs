//! The calls of schedules: a status write, one request to one target, a read of the targets, an
//! Event.

use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::schedule::{
    ObservedTargets, RebootRequestPatch, Schedule, ScheduleAction, ScheduleDecision,
    ScheduleObserve, ScheduleReason, ScheduleSnapshot, ScheduleStatus, TargetObject,
};
use dogwatch_k8s::schedule::ScheduleClient;
use dogwatch_runtime::clock::ProcessClock;
use dogwatch_runtime::reconcile::{CallEnd, DomainCalls};

use crate::call_end::{call_end_of, event_end_of};

pub(super) struct ScheduleCalls {
    pub(super) client: ScheduleClient,
    pub(super) clock: ProcessClock,
}

/// An object after our own write.
pub(super) enum ScheduleAnswer {
    Schedule(Box<Schedule>),
    Target(Box<TargetObject>),
}

impl DomainCalls for ScheduleCalls {
    type Snapshot = ScheduleSnapshot;
    type Action = ScheduleAction;
    type Observe = ScheduleObserve;
    type Reason = ScheduleReason;
    type Answer = ScheduleAnswer;
    type Finding = ObservedTargets;

    async fn perform_action(
        &self,
        seen: &ScheduleSnapshot,
        decision: &ScheduleDecision,
        action: &ScheduleAction,
    ) -> CallEnd<ScheduleAnswer> {
        match action {
            ScheduleAction::WriteStatus(status) => self.write_status(seen, decision, status).await,
            ScheduleAction::Ask(ask) => self.request_target(seen, ask).await,
        }
    }

    async fn perform_observation(
        &self,
        seen: &ScheduleSnapshot,
        what: &ScheduleObserve,
    ) -> Option<ObservedTargets> {
        let (ScheduleObserve::Targets, plan) = (what, seen.schedule.plan.as_ref().ok()?);
        let taken = self.clock.now().mono;
        let name = &seen.schedule.name;
        Some(self.client.read_targets(plan, name, taken).await)
    }

    async fn report_event(&self, seen: &ScheduleSnapshot, event: &DecisionEvent) -> CallEnd<()> {
        let (schedule, now) = (&seen.schedule, self.clock.now());
        let written = self.client.write_event(schedule, event, now).await;
        event_end_of(written, &schedule.name, event)
    }
}

impl ScheduleCalls {
    async fn write_status(
        &self,
        seen: &ScheduleSnapshot,
        decision: &ScheduleDecision,
        status: &ScheduleStatus,
    ) -> CallEnd<ScheduleAnswer> {
        let (conditions, now) = (&decision.report.conditions, self.clock.now());
        let write = self
            .client
            .write_status(&seen.schedule, status, conditions, now);
        let wrote = write.await;
        call_end_of(wrote.map(|schedule| ScheduleAnswer::Schedule(Box::new(schedule))))
    }

    async fn request_target(
        &self,
        seen: &ScheduleSnapshot,
        ask: &RebootRequestPatch,
    ) -> CallEnd<ScheduleAnswer> {
        let request = self.client.request_target(&seen.schedule.name, ask);
        match request.await {
            // If another writer removes our annotation, a success here would repeat the request for
            // ever.
            Ok(object) if object.marks.get() != Some(&ask.marks) => CallEnd::Failed(
                "the API server did not keep annotation dogwatch.dev/scheduled".into(),
            ),
            answer => call_end_of(answer.map(|object| ScheduleAnswer::Target(Box::new(object)))),
        }
    }
}

//! The calls of schedules: a status write, one request to one target, a read of the targets, an
//! Event.

use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::schedule::{
    MadeNodeReboot, MadeNodeRebootsRead, NodeRebootDraft, ObservedTargets, RebootRequestPatch,
    Schedule, ScheduleAction, ScheduleDecision, ScheduleObserve, ScheduleReason, ScheduleSnapshot,
    ScheduleStatus, TargetObject,
};
use dogwatch_k8s::schedule::{NodeRebootCreation, ScheduleClient};
use dogwatch_runtime::clock::ProcessClock;
use dogwatch_runtime::reconcile::{CallEnd, DomainCalls};

use super::NodeRebootCarrier;
use crate::call_end::{call_end_of, event_end_of, pruned_status_event, status_end_of};

const NOBODY_CARRIES: &str =
    "this controller carries no NodeReboots: its components include neither healer nor remediation";

pub(super) struct ScheduleCalls {
    pub(super) client: ScheduleClient,
    pub(super) clock: ProcessClock,
    pub(super) carrier: NodeRebootCarrier,
}

/// An object after our own write.
pub(super) enum ScheduleAnswer {
    Schedule(Box<Schedule>),
    Target(Box<TargetObject>),
    Made(Box<MadeNodeReboot>),
    /// No NodeReboot can be made, for this cause: nodes are asked by annotation.
    Refused(String),
}

/// What was read.
pub(super) enum ScheduleFinding {
    Targets(ObservedTargets),
    Reboots(MadeNodeRebootsRead),
}

impl DomainCalls for ScheduleCalls {
    type Snapshot = ScheduleSnapshot;
    type Action = ScheduleAction;
    type Observe = ScheduleObserve;
    type Reason = ScheduleReason;
    type Answer = ScheduleAnswer;
    type Finding = ScheduleFinding;

    async fn perform_action(
        &self,
        seen: &ScheduleSnapshot,
        decision: &ScheduleDecision,
        action: &ScheduleAction,
    ) -> CallEnd<ScheduleAnswer> {
        match action {
            ScheduleAction::WriteStatus(status) => self.write_status(seen, decision, status).await,
            ScheduleAction::CreateReboot(draft) => self.create_node_reboot(draft).await,
            ScheduleAction::Ask(ask) => self.request_target(seen, ask).await,
        }
    }

    async fn perform_observation(
        &self,
        seen: &ScheduleSnapshot,
        what: &ScheduleObserve,
    ) -> Option<ScheduleFinding> {
        let (schedule, taken) = (&seen.schedule, self.clock.now().mono);
        Some(match what {
            ScheduleObserve::Targets => {
                let plan = schedule.plan.as_ref().ok()?;
                let read = self.client.read_targets(plan, &schedule.name, taken);
                ScheduleFinding::Targets(read.await)
            }
            ScheduleObserve::Reboots => {
                let read = self.client.read_node_reboots(&schedule.uid, taken);
                let nobody = self.carrier == NodeRebootCarrier::Nobody;
                ScheduleFinding::Reboots(MadeNodeRebootsRead {
                    // It would wait for ever.
                    refused: nobody.then(|| NOBODY_CARRIES.to_owned()),
                    ..read.await
                })
            }
        })
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
        if let Some(event) = pruned_status_event(&wrote) {
            // An Event that is not written is tried again with the status.
            let _ = self.report_event(seen, &event).await;
        }
        status_end_of(wrote.map(|schedule| ScheduleAnswer::Schedule(Box::new(schedule))))
    }

    async fn create_node_reboot(&self, draft: &NodeRebootDraft) -> CallEnd<ScheduleAnswer> {
        match self.client.create_node_reboot(draft).await {
            Ok(NodeRebootCreation::Created(made)) => {
                CallEnd::Done(ScheduleAnswer::Made(Box::new(made)))
            }
            // The answer to our own creation was lost, and the next list shows it; or it is
            // somebody else's.
            Ok(NodeRebootCreation::NameTaken) => CallEnd::Failed(format!(
                "NodeReboot {} exists and is not of this schedule: delete it",
                draft.name
            )),
            Ok(NodeRebootCreation::Unavailable(why)) => CallEnd::Done(ScheduleAnswer::Refused(why)),
            Err(error) => CallEnd::Failed(format!(
                "its NodeReboot cannot be created: {}",
                error.error_chain()
            )),
        }
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

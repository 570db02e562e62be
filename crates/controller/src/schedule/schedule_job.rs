//! One job for one schedule: a status write, or a batch of requests, or a read of the targets, or
//! Events.

use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::schedule::{
    ObservedTargets, OccurrenceOutcome, RebootRequestPatch, Schedule, ScheduleAction,
    ScheduleDecision, ScheduleName, ScheduleSnapshot, ScheduleStatus, ScheduleTarget, TargetObject,
};
use dogwatch_k8s::ApiErrorKind;
use dogwatch_k8s::schedule::ScheduleClient;
use dogwatch_process::clock::ProcessClock;
use futures::stream::{self, StreamExt as _};
use tracing::{info, warn};

use crate::ControllerContext;
use crate::leader::LeadershipHandle;

/// How many requests are made before the schedule is decided anew, so that a schedule that is
/// suspended meanwhile stops soon.
const MAX_REQUESTS_PER_BATCH: usize = 64;
const MAX_CONCURRENT_REQUESTS: usize = 16;

#[derive(Debug)]
pub(super) enum TargetRequestResult {
    Requested {
        /// The target after the request.
        object: Box<TargetObject>,
        /// The target had a request already, and was only annotated.
        noted: bool,
    },
    /// The target has changed since it was read, so nothing was written.
    Changed,
    Failed(String),
}

#[derive(Debug)]
pub(super) struct ScheduleJobResult {
    pub(super) name: ScheduleName,
    pub(super) uid: String,
    /// The schedule after our own write.
    pub(super) wrote: Option<Schedule>,
    /// The outcomes of the occurrences that the write records.
    pub(super) ended: Vec<OccurrenceOutcome>,
    pub(super) looked: Option<ObservedTargets>,
    pub(super) asked: Vec<(ScheduleTarget, TargetRequestResult)>,
    pub(super) said: Vec<DecisionEvent>,
    /// The schedule has changed since it was read, so nothing was written.
    changed: bool,
    /// The error of the status write.
    failed: Option<String>,
}

impl ScheduleJobResult {
    pub(super) fn error_message(&self) -> Option<&str> {
        let asked = self.asked.iter().find_map(|(_, asked)| match asked {
            TargetRequestResult::Failed(why) => Some(why.as_str()),
            TargetRequestResult::Requested { .. } | TargetRequestResult::Changed => None,
        });
        self.failed.as_deref().or(asked)
    }

    /// Whether an object had changed since it was read, so that nothing was written.
    pub(super) fn has_changed(&self) -> bool {
        let mut asked = self.asked.iter();
        self.changed || asked.any(|(_, asked)| matches!(asked, TargetRequestResult::Changed))
    }

    /// Whether a request was made, so that the next decision need not pause.
    pub(super) fn has_progress(&self) -> bool {
        let mut asked = self.asked.iter();
        asked.any(|(_, asked)| matches!(asked, TargetRequestResult::Requested { .. }))
    }
}

enum ScheduleWork {
    Write(Box<ScheduleStatus>),
    Ask(Vec<RebootRequestPatch>),
    Look,
    Say,
}

pub(super) struct ScheduleJob {
    client: ScheduleClient,
    clock: ProcessClock,
    leadership: LeadershipHandle,
    seen: ScheduleSnapshot,
    decision: ScheduleDecision,
    events: Vec<DecisionEvent>,
    work: ScheduleWork,
}

impl ScheduleJob {
    /// `None` if there is nothing to do and nothing to report.
    pub(super) fn new(
        context: &ControllerContext,
        client: &ScheduleClient,
        seen: ScheduleSnapshot,
        mut decision: ScheduleDecision,
        events: Vec<DecisionEvent>,
    ) -> Option<Self> {
        let work = match choose_work(std::mem::take(&mut decision.actions), &seen) {
            Some(work) => work,
            None if !decision.observe.is_empty() => ScheduleWork::Look,
            None if !events.is_empty() => ScheduleWork::Say,
            None => return None,
        };
        Some(Self {
            client: client.clone(),
            clock: context.clock.clone(),
            leadership: context.leadership.clone(),
            seen,
            decision,
            events,
            work,
        })
    }

    pub(super) async fn run_job(mut self) -> ScheduleJobResult {
        let mut done = ScheduleJobResult {
            name: self.seen.schedule.name.clone(),
            uid: self.seen.schedule.uid.clone(),
            wrote: None,
            ended: Vec::new(),
            looked: None,
            asked: Vec::new(),
            said: Vec::new(),
            changed: false,
            failed: None,
        };
        match std::mem::replace(&mut self.work, ScheduleWork::Say) {
            ScheduleWork::Write(status) => self.write_status(&status, &mut done).await,
            ScheduleWork::Ask(asks) => self.request_targets(asks, &mut done).await,
            ScheduleWork::Look => self.read_targets(&mut done).await,
            ScheduleWork::Say => self.report_events(&mut done).await,
        }
        done
    }

    async fn write_status(&self, status: &ScheduleStatus, done: &mut ScheduleJobResult) {
        if self.leadership.current_term().is_none() {
            done.failed = Some(NOT_LEADING_MESSAGE.into());
            return;
        }
        let (schedule, why) = (&self.seen.schedule, &self.decision.cause);
        info!(schedule = %schedule.name, reason = why.reason, why = why.message, "writes a schedule's status");
        let conditions = &self.decision.report.conditions;
        let now = self.clock.now();
        let write = self.client.write_status(schedule, status, conditions, now);
        match write.await {
            Ok(wrote) => {
                done.ended = new_outcomes(schedule, status);
                done.wrote = Some(wrote);
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ApiErrorKind::Conflict | ApiErrorKind::NotFound
                ) =>
            {
                done.changed = true;
            }
            Err(error) => done.failed = Some(error.error_chain()),
        }
    }

    async fn request_targets(&self, asks: Vec<RebootRequestPatch>, done: &mut ScheduleJobResult) {
        let name = &self.seen.schedule.name;
        info!(schedule = %name, targets = asks.len(), "requests reboots from the targets of a schedule");
        let asked = stream::iter(asks).map(|ask| async move {
            let asked = self.request_target(&ask).await;
            (ask.target, asked)
        });
        done.asked = asked
            .buffer_unordered(MAX_CONCURRENT_REQUESTS)
            .collect()
            .await;
    }

    async fn request_target(&self, ask: &RebootRequestPatch) -> TargetRequestResult {
        if self.leadership.current_term().is_none() {
            return TargetRequestResult::Failed(NOT_LEADING_MESSAGE.into());
        }
        match self
            .client
            .request_target(&self.seen.schedule.name, ask)
            .await
        {
            // If another writer removes our annotation, a success here would repeat the request for
            // ever.
            Ok(object) if object.marks.get() != Some(&ask.marks) => TargetRequestResult::Failed(
                "the API server did not keep annotation dogwatch.dev/scheduled".into(),
            ),
            Ok(object) => TargetRequestResult::Requested {
                object: Box::new(object),
                noted: ask.request.is_none(),
            },
            Err(error)
                if matches!(
                    error.kind(),
                    ApiErrorKind::Conflict | ApiErrorKind::NotFound
                ) =>
            {
                TargetRequestResult::Changed
            }
            Err(error) => TargetRequestResult::Failed(error.error_chain()),
        }
    }

    async fn read_targets(&self, done: &mut ScheduleJobResult) {
        if let Ok(plan) = &self.seen.schedule.plan {
            let taken = self.clock.now().mono;
            let name = &self.seen.schedule.name;
            done.looked = Some(self.client.read_targets(plan, name, taken).await);
        }
    }

    async fn report_events(&self, done: &mut ScheduleJobResult) {
        for event in &self.events {
            if self.leadership.current_term().is_none() {
                return;
            }
            let schedule = &self.seen.schedule;
            match self
                .client
                .write_event(schedule, event, self.clock.now())
                .await
            {
                Ok(()) => {}
                Err(error) if error.kind() == ApiErrorKind::Transient => {
                    done.failed = Some(error.error_chain());
                    return;
                }
                // A retry would not help; the condition and the history say the same.
                Err(error) => {
                    let error = error.error_chain();
                    warn!(schedule = %schedule.name, event = event.reason, error, "failed to write an Event");
                }
            }
            done.said.push(event.clone());
        }
    }
}

const NOT_LEADING_MESSAGE: &str = "this process is no longer the leader";

/// A status write goes first. Targets whose request failed before come after the others.
fn choose_work(actions: Vec<ScheduleAction>, seen: &ScheduleSnapshot) -> Option<ScheduleWork> {
    let mut asks = Vec::new();
    for action in actions {
        match action {
            ScheduleAction::WriteStatus(status) => return Some(ScheduleWork::Write(status)),
            ScheduleAction::Ask(ask) => asks.push(*ask),
        }
    }
    asks.sort_by_key(|ask| seen.request_errors.contains_key(&ask.target));
    asks.truncate(MAX_REQUESTS_PER_BATCH);
    (!asks.is_empty()).then_some(ScheduleWork::Ask(asks))
}

/// The outcomes of the occurrences whose records are new.
fn new_outcomes(schedule: &Schedule, status: &ScheduleStatus) -> Vec<OccurrenceOutcome> {
    let before = &schedule.status.history;
    let new = status
        .history
        .iter()
        .filter(|record| !before.contains(record));
    new.map(|record| record.outcome).collect()
}

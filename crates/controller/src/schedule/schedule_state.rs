//! The leader's state of one schedule.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_core::backoff::Backoff;
use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::reported_events::ReportedEvents;
use dogwatch_core::resource_version::is_older_version;
use dogwatch_core::schedule::{
    ObservedTargets, Schedule, ScheduleSnapshot, ScheduleTarget, ScheduleTargetKind, TargetObject,
};

use super::schedule_job::{ScheduleJobResult, TargetRequestResult};
use crate::context::RETRY_PAUSES;

pub(super) struct ScheduleState {
    /// From the watch, or from the answer to our own write if that is newer.
    schedule: Schedule,
    targets: Option<ObservedTargets>,
    trouble: BTreeMap<ScheduleTarget, String>,
    said: ReportedEvents,
    pace: Backoff,
    busy: bool,
}

impl ScheduleState {
    pub(super) fn from_schedule(schedule: &Schedule) -> Self {
        Self {
            schedule: schedule.clone(),
            targets: None,
            trouble: BTreeMap::new(),
            said: ReportedEvents::default(),
            pace: Backoff::default(),
            busy: false,
        }
    }

    pub(super) fn uid(&self) -> &str {
        &self.schedule.uid
    }

    pub(super) fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy
    }

    pub(super) fn paused_until(&self, now: Duration) -> Option<Duration> {
        self.pace.blocked_until(now)
    }

    pub(super) fn mark_busy(&mut self) {
        self.busy = true;
    }

    /// Applies a version from the watch or from an answer, unless it is older.
    pub(super) fn observe_schedule(&mut self, schedule: &Schedule) {
        if is_older_version(&schedule.resource_version, &self.schedule.resource_version) {
            return;
        }
        if schedule.generation != self.schedule.generation {
            // A person has changed the spec, perhaps because of the error.
            self.pace.reset();
        }
        self.replace_schedule(schedule.clone());
    }

    fn replace_schedule(&mut self, schedule: Schedule) {
        if schedule.status.current != self.schedule.status.current {
            self.targets = None;
            self.trouble.clear();
        }
        self.schedule = schedule;
    }

    pub(super) fn build_snapshot(&self, living: &BTreeSet<String>) -> ScheduleSnapshot {
        ScheduleSnapshot {
            schedule: self.schedule.clone(),
            living: living.clone(),
            targets: self.targets.clone(),
            request_errors: self.trouble.clone(),
        }
    }

    /// The Events that were not sent yet.
    pub(super) fn pending_events(&mut self, events: &[DecisionEvent]) -> Vec<DecisionEvent> {
        self.said.forget_unlisted(events);
        self.said.unreported_of(events)
    }

    pub(super) fn apply_job_result(&mut self, done: ScheduleJobResult, now: Duration) {
        self.busy = false;
        let progress = done.has_progress();
        let trouble = done.error_message().is_some() || done.has_changed();
        self.said.record_events(&done.said);
        if let Some(schedule) = done.wrote {
            self.observe_schedule(&schedule);
        }
        if let Some(targets) = done.looked {
            self.targets = Some(targets);
        }
        for (target, asked) in done.asked {
            self.apply_request_result(target, asked);
        }
        if trouble && !progress {
            self.pace.record_failure(RETRY_PAUSES, now);
        } else {
            self.pace.reset();
        }
    }

    fn apply_request_result(&mut self, target: ScheduleTarget, asked: TargetRequestResult) {
        match asked {
            TargetRequestResult::Requested { object, .. } => {
                self.trouble.remove(&target);
                self.replace_target(&target, *object);
            }
            // The target is read again.
            TargetRequestResult::Changed => self.targets = None,
            TargetRequestResult::Failed(why) => {
                self.trouble.insert(target, why);
            }
        }
    }

    fn replace_target(&mut self, target: &ScheduleTarget, object: TargetObject) {
        let Some(targets) = &mut self.targets else {
            return;
        };
        let all = match target.kind {
            ScheduleTargetKind::Node => &mut targets.nodes,
            ScheduleTargetKind::Host => &mut targets.hosts,
        };
        let mut all = all.iter_mut().flatten();
        if let Some(there) = all.find(|there| there.name == target.name) {
            *there = object;
        }
    }
}

//! Reboots at an appointed time: waits for the time of each `RebootSchedule`, then issues requests
//! to its targets.
//!
//! **For:** one loop while this process leads: watch, decide ([`schedule::decide`]), act, report.
//! **May touch:** what [`ScheduleClient`] may.
//! **Promises:** nothing is written while this process does not lead; at most one job runs per
//! schedule, and an error with a schedule, or with one of its targets, delays only itself (L1).

mod schedule_job;
mod schedule_metrics;
mod schedule_state;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_core::schedule::{self, ScheduleName};
use dogwatch_k8s::schedule::{ScheduleClient, ScheduleWatch};
use dogwatch_process::health::LoopHeartbeat;
use dogwatch_process::jitter::JitterSource;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use tracing::warn;

use self::schedule_job::{ScheduleJob, ScheduleJobResult};
use self::schedule_state::ScheduleState;
use crate::ControllerContext;

pub async fn run_schedules(context: ControllerContext) {
    context
        .run_while_leading(|| SchedulerLoop::new(context.clone()).run_as_leader())
        .await;
}

struct SchedulerLoop {
    context: ControllerContext,
    client: ScheduleClient,
    watch: ScheduleWatch,
    heart: LoopHeartbeat,
    states: BTreeMap<ScheduleName, ScheduleState>,
    jobs: FuturesUnordered<BoxFuture<'static, ScheduleJobResult>>,
    /// The watch error, as last logged.
    trouble: Option<String>,
}

impl SchedulerLoop {
    fn new(context: ControllerContext) -> Self {
        let (client, home) = (context.client.clone(), context.namespace.clone());
        let jitter = JitterSource::of_process(&context.process);
        Self {
            watch: ScheduleWatch::new(client.clone(), home.clone(), move || jitter.next_fraction()),
            client: ScheduleClient::new(client, home),
            heart: context.health.heartbeat_of("schedules"),
            context,
            states: BTreeMap::new(),
            jobs: FuturesUnordered::new(),
            trouble: None,
        }
    }

    async fn run_as_leader(mut self) {
        loop {
            self.heart.mark_working("schedules");
            let wake = self.decide_all_schedules();
            let now = self.context.clock.now().mono;
            self.heart
                .mark_sleeping(wake.map(|wake| wake.saturating_sub(now)));
            tokio::select! {
                () = self.watch.wait_for_change() => {}
                Some(done) = self.jobs.next() => self.handle_job_result(done),
                () = self.context.clock.wake_at(wake) => {}
            }
        }
    }

    /// Decides all schedules and starts their jobs. Returns when to decide again.
    fn decide_all_schedules(&mut self) -> Option<Duration> {
        self.log_watch_error();
        if !self.watch.current_view().synced {
            return None;
        }
        let all = &self.watch.current_view().schedules;
        let living: BTreeSet<String> = all.values().map(|one| one.uid.clone()).collect();
        self.states
            .retain(|name, eye| all.get(name).is_some_and(|one| one.uid == eye.uid()));
        for (name, seen) in all {
            let eye = self.states.entry(name.clone());
            eye.or_insert_with(|| ScheduleState::from_schedule(seen))
                .observe_schedule(seen);
        }
        let mut wake: Option<Duration> = None;
        for eye in self.states.values_mut() {
            let next = start_schedule(&self.context, &self.client, eye, &living, &self.jobs);
            wake = [wake, next].into_iter().flatten().min();
        }
        schedule_metrics::publish_schedules(
            &self.context.metrics,
            self.states.values().map(ScheduleState::schedule),
        );
        wake
    }

    fn handle_job_result(&mut self, done: ScheduleJobResult) {
        schedule_metrics::record_job_result(&self.context.metrics, &done);
        let now = self.context.clock.now().mono;
        // A schedule that was deleted or replaced meanwhile needs no result.
        let eye = self.states.get_mut(&done.name);
        if let Some(eye) = eye.filter(|eye| eye.uid() == done.uid) {
            if let Some(trouble) = done.error_message() {
                warn!(schedule = %done.name, error = trouble, "failed to carry out a schedule");
            }
            eye.apply_job_result(done, now);
        }
    }

    fn log_watch_error(&mut self) {
        let trouble = &self.watch.current_view().error;
        if *trouble != self.trouble {
            if let Some(error) = trouble {
                warn!(error, "failed to read the schedules");
            }
            self.trouble.clone_from(trouble);
        }
    }
}

/// Starts the schedule's job, unless one runs or the schedule has to pause. Returns when to decide
/// it again.
fn start_schedule(
    context: &ControllerContext,
    client: &ScheduleClient,
    eye: &mut ScheduleState,
    living: &BTreeSet<String>,
    jobs: &FuturesUnordered<BoxFuture<'static, ScheduleJobResult>>,
) -> Option<Duration> {
    let now = context.clock.now();
    if eye.is_busy() {
        return None;
    }
    if let Some(until) = eye.paused_until(now.mono) {
        return Some(until);
    }
    let seen = eye.build_snapshot(living);
    let decision = schedule::decide(&seen, now);
    let wake = decision.wake.as_ref().map(|wake| wake.at);
    let events = eye.pending_events(&decision.report.events);
    let Some(job) = ScheduleJob::new(context, client, seen, decision, events) else {
        return wake;
    };
    eye.mark_busy();
    jobs.push(Box::pin(job.run_job()));
    wake
}

impl Drop for SchedulerLoop {
    /// A process that does not lead reports no schedules.
    fn drop(&mut self) {
        self.heart.mark_sleeping(None);
        schedule_metrics::publish_schedules(&self.context.metrics, std::iter::empty());
    }
}

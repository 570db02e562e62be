//! The healer: finishes the work of a coordinator that never came back.
//!
//! **For:** one loop while this process leads: watch, decide ([`healer::decide`]), act, report.
//! **May touch:** what [`HealerClient`] may.
//! **Promises:** nothing is written while this process does not lead; at most one job runs per
//! object, and an error delays only that object (L1). Each new leader starts without memory and
//! watches everything anew, on its own monotonic clock.

mod api_calls;
mod healer_job;
pub(crate) mod observer;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_core::backoff::RetryBackoff;
use dogwatch_core::condition;
use dogwatch_core::healer::{self, HealerAction, HealerConfig, HealingCase, HealingSubject};
use dogwatch_core::reboot::RebootReason;
use dogwatch_core::reported_events::ReportedEvents;
use dogwatch_k8s::healer::HealerClient;
use dogwatch_runtime::health::LoopHeartbeat;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use tracing::{info, warn};

use self::healer_job::{HealerCallResult, HealerJob, HealerJobResult};
use self::observer::HealerObserver;
use crate::ControllerContext;
use crate::context::RETRY_PAUSES;
use crate::metrics::{MetricFamily, MetricLabels, MetricShape};

/// The shortest time between two passes over all cases: with 5,000 nodes something changes many
/// times a second, and nothing here is urgent to a tenth of a second.
const MIN_DECIDE_INTERVAL: Duration = Duration::from_millis(500);
/// The same after a read for a decision: a Node that others write every second would have changed
/// again by the time of a later pass.
const READ_DECIDE_INTERVAL: Duration = Duration::from_millis(50);
const MAX_CONCURRENT_JOBS: usize = 16;

static HEALER_ACTIONS_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_healer_actions_total",
    help: "Actions of the healer, by reason and by result: done, changed or failed.",
    shape: MetricShape::Counter,
};
static HEALER_CASES_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_healer_cases",
    help: "Objects that the healer is working on, by the reason of its last decision.",
    shape: MetricShape::Gauge,
};

pub async fn run_healer(context: ControllerContext, config: HealerConfig) {
    context
        .run_while_leading(|| HealerLoop::new(context.clone(), config.clone()).run_as_leader())
        .await;
}

struct HealerLoop {
    context: ControllerContext,
    config: HealerConfig,
    client: HealerClient,
    heart: LoopHeartbeat,
    observer: HealerObserver,
    pace: BTreeMap<HealingSubject, RetryBackoff>,
    busy: BTreeSet<HealingSubject>,
    reported_events: BTreeMap<HealingSubject, ReportedEvents>,
    jobs: FuturesUnordered<BoxFuture<'static, HealerJobResult>>,
}

impl HealerLoop {
    fn new(context: ControllerContext, config: HealerConfig) -> Self {
        Self {
            client: HealerClient::new(context.client.clone(), &context.namespace),
            heart: context.health.heartbeat_of("healer"),
            context,
            config,
            observer: HealerObserver::default(),
            pace: BTreeMap::new(),
            busy: BTreeSet::new(),
            reported_events: BTreeMap::new(),
            jobs: FuturesUnordered::new(),
        }
    }

    async fn run_as_leader(mut self) {
        let mut cluster = self.context.cluster.clone();
        info!("the healer starts and observes every coordinator again");
        loop {
            let view = cluster.current_view();
            self.heart.mark_working("healing");
            let wake = if view.synced {
                self.decide_all_cases(&view)
            } else {
                None
            };
            let now = self.context.clock.now().mono;
            self.heart
                .mark_sleeping(wake.map(|wake| wake.saturating_sub(now)));
            let mut again = now + MIN_DECIDE_INTERVAL;
            // `biased`, so that events of one moment are always handled in the same order.
            tokio::select! {
                biased;
                _ = cluster.next_view() => {}
                Some(done) = self.jobs.next() => again = self.handle_job_result(done, again),
                () = self.context.clock.wake_at(wake) => {}
            }
            self.drain_results_until(again).await;
        }
    }

    /// Handles finished jobs, and nothing else, until `until`.
    async fn drain_results_until(&mut self, mut until: Duration) {
        loop {
            tokio::select! {
                biased;
                Some(done) = self.jobs.next() => until = self.handle_job_result(done, until),
                () = self.context.clock.sleep_until(until) => return,
            }
        }
    }

    /// Decides all cases and starts their jobs. Returns when to decide again.
    fn decide_all_cases(&mut self, view: &crate::cluster_views::ClusterView) -> Option<Duration> {
        let now = self.context.clock.now();
        self.observer.observe_view(view, now);
        let cases = healer::decide(&self.observer.seen, &self.config, now);
        self.record_case_metrics(&cases);
        let subjects: BTreeSet<&HealingSubject> = cases.iter().map(|case| &case.subject).collect();
        self.pace.retain(|subject, _| subjects.contains(subject));
        self.reported_events
            .retain(|subject, _| subjects.contains(subject));
        let wakes = cases.into_iter().map(|case| self.start_job(case));
        wakes.collect::<Vec<_>>().into_iter().flatten().min()
    }

    /// Starts the case's job, unless one runs for that object or the object has to pause.
    fn start_job(&mut self, case: HealingCase) -> Option<Duration> {
        let wake = case.decision.wake.as_ref().map(|wake| wake.at);
        if self.busy.contains(&case.subject) {
            return None;
        }
        let now = self.context.clock.now().mono;
        let pace = self.pace.get(&case.subject);
        if let Some(until) = pace.and_then(|pace| pace.blocked_until(now)) {
            return Some(until);
        }
        let job = self.build_job(case);
        if job.has_no_work() {
            return wake;
        }
        if self.busy.len() >= MAX_CONCURRENT_JOBS {
            // The end of a running job wakes the loop.
            return wake;
        }
        self.busy.insert(job.case.subject.clone());
        self.jobs.push(Box::pin(job.run_job()));
        wake
    }

    fn build_job(&self, case: HealingCase) -> HealerJob {
        let now = self.context.clock.now();
        let wanted = &case.decision.report.events;
        let reported = self.reported_events.get(&case.subject);
        let events =
            reported.map_or_else(|| wanted.clone(), |reported| reported.unreported_of(wanted));
        let node = match &case.subject {
            HealingSubject::Node(name) => self.observer.seen.nodes.get(name).cloned(),
            HealingSubject::Lease(_) | HealingSubject::Presence(_) => None,
        };
        let standing = node.as_ref().map_or(&[][..], |node| &node.conditions);
        let conditions =
            condition::conditions_to_write(standing, &case.decision.report.conditions, now);
        HealerJob {
            client: self.client.clone(),
            clock: self.context.clock.clone(),
            leadership: self.context.leadership.clone(),
            policies: self.observer.seen.policies.clone(),
            about: self.observer.event_object_of(&case),
            zone: self.observer.zone_of_case(&case),
            node,
            events,
            conditions,
            case,
        }
    }

    /// Returns when to decide again, at the latest at `until`.
    fn handle_job_result(&mut self, done: HealerJobResult, until: Duration) -> Duration {
        let now = self.context.clock.now();
        let is_read = done.facts.iter().any(HealerCallResult::is_read);
        self.busy.remove(&done.subject);
        for fact in done.facts {
            self.observer.apply_call_result(fact, now);
        }
        let reported = self.reported_events.entry(done.subject.clone());
        reported.or_default().record_events(&done.said);
        if let Some(end) = &done.end {
            let labels = [("reason", done.reason.as_str()), ("result", end.as_str())];
            self.context
                .metrics
                .add_to_counter(&HEALER_ACTIONS_METRIC, &labels, 1);
        }
        let pace = self.pace.entry(done.subject.clone()).or_default();
        match done.trouble {
            None => pace.reset(),
            Some(trouble) => {
                warn!(object = %observer::format_subject(&done.subject), reason = done.reason.as_str(), error = trouble, "the healer failed to write an object");
                pace.record_failure(RETRY_PAUSES, now.mono);
            }
        }
        if is_read {
            until.min(now.mono + READ_DECIDE_INTERVAL)
        } else {
            until
        }
    }

    fn record_case_metrics(&self, cases: &[HealingCase]) {
        let mut by_reason: BTreeMap<RebootReason, f64> = BTreeMap::new();
        for case in cases {
            *by_reason.entry(case.decision.cause.reason).or_default() += 1.0;
        }
        let samples = by_reason.into_iter();
        let samples = samples.map(|(reason, count)| {
            let labels: MetricLabels = vec![("reason", reason.to_string())];
            (labels, count)
        });
        self.context
            .metrics
            .replace_gauge(&HEALER_CASES_METRIC, samples);
    }
}

impl Drop for HealerLoop {
    /// A process that does not lead reports no cases.
    fn drop(&mut self) {
        self.heart.mark_sleeping(None);
        self.context.metrics.replace_gauge(&HEALER_CASES_METRIC, []);
    }
}

/// The action in words, for the log.
fn describe_action(action: &HealerAction) -> &'static str {
    match action {
        HealerAction::PatchNode { .. } => "patches the Node on behalf of its coordinator",
        HealerAction::Release { .. } => "removes runs from a Lease",
        HealerAction::Break { .. } => "breaks a lock: clears its Lease",
        HealerAction::PatchApiNode { .. } => "undoes what the lock API did to a Node",
        HealerAction::DeletePresence { .. } => {
            "deletes the Lease of a lock API process that no longer exists"
        }
        HealerAction::NoteEscalation { .. } => {
            "records that a reboot is handed over to the power controller"
        }
        HealerAction::Escalate { .. } => "requests a reboot of a BareMetalHost",
    }
}

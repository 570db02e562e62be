//! The loop of one leader: observe, decide every remediation, start the jobs, sleep until the
//! wake-up or a change.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::condition::CurrentCondition;
use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::reboot::WatchedReboots;
use dogwatch_core::remediation::{
    ConcurrentRemediations, Remediation, RemediationDecision, RemediationReason,
    RemediationSubject, decide, discover_remediations,
};
use dogwatch_k8s::remediation::RemediationWatch;
use dogwatch_runtime::health::LoopHeartbeat;
use dogwatch_runtime::jitter::JitterSource;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::watch;
use tracing::{debug, info, warn};

use super::case_memory::CaseMemory;
use super::observer::RemediationObserver;
use super::registry::DecidedRemediation;
use super::remediation_job::{
    RemediationDeps, RemediationJob, RemediationJobResult, report_events,
};
use super::remediation_metrics::{self, RemediationReasonCounts};
use super::remediation_ops::RemediationCallError;
use super::workload_clusters::{FollowedWorkloads, WorkloadRegistry};
use super::{RemediationSettings, concurrency};
use crate::ControllerContext;
use crate::cluster_views::ClusterViewReceiver;
use crate::power::observe_power;

/// The shortest pause after a pass, so that simultaneous changes are decided together.
const MIN_PASS_PAUSE: Duration = Duration::from_millis(10);
/// At most a fifth of the time is spent on deciding, however large the cluster is.
const PAUSE_PER_PASS_TIME: u32 = 4;
/// The delay before an overdue wake-up is handled again.
const DUE_RECHECK_DELAY: Duration = Duration::from_millis(50);
pub(super) struct RemediatorLoop {
    context: ControllerContext,
    settings: RemediationSettings,
    means: RemediationDeps,
    heart: LoopHeartbeat,
    watch: RemediationWatch,
    cluster: ClusterViewReceiver,
    workload: FollowedWorkloads,
    power: watch::Receiver<u64>,
    observer: RemediationObserver,
    /// The views that changed since the last pass. They are applied once per pass, because that
    /// copies all names.
    unseen: PendingViews,
    /// Since when planned reboots are under way.
    reboots: WatchedReboots,
    notes: BTreeMap<RemediationSubject, CaseMemory>,
    jobs: FuturesUnordered<BoxFuture<'static, RemediationJobResult>>,
    speeches: FuturesUnordered<BoxFuture<'static, ()>>,
    /// The watch errors, as last logged.
    trouble: BTreeMap<&'static str, String>,
}

#[derive(Default)]
struct PendingViews {
    objects: bool,
    cluster: bool,
    workload: bool,
}

impl RemediatorLoop {
    pub(super) fn new(
        context: ControllerContext,
        settings: RemediationSettings,
        means: RemediationDeps,
        workload: WorkloadRegistry,
    ) -> Self {
        let jitter = JitterSource::of_process(&context.process);
        let workload = FollowedWorkloads::new(&context, settings.workload, workload);
        Self {
            heart: context.health.heartbeat_of("remediation"),
            watch: RemediationWatch::new(
                context.client.clone(),
                Some(&context.namespace),
                move || jitter.next_fraction(),
            ),
            cluster: context.cluster.clone(),
            workload,
            power: settings.power.subscribe_changes(),
            context,
            settings,
            means,
            observer: RemediationObserver::default(),
            unseen: PendingViews {
                cluster: true,
                workload: true,
                ..PendingViews::default()
            },
            reboots: WatchedReboots::default(),
            notes: BTreeMap::new(),
            jobs: FuturesUnordered::new(),
            speeches: FuturesUnordered::new(),
            trouble: BTreeMap::new(),
        }
    }

    pub(super) async fn run_as_leader(mut self) {
        info!("remediation starts and reads all objects again");
        loop {
            self.heart.mark_working("remediation");
            let began = self.current_time().mono;
            let wake = self.decide_all_cases();
            let now = self.current_time().mono;
            self.heart
                .mark_sleeping(wake.map(|wake| wake.saturating_sub(now)));
            let rest = MIN_PASS_PAUSE.max(now.saturating_sub(began) * PAUSE_PER_PASS_TIME);
            self.wait_for_event(wake).await;
            self.handle_events_until(now + rest).await;
        }
    }

    fn current_time(&self) -> Now {
        self.context.clock.now()
    }

    /// Waits for an event that makes a new decision necessary.
    async fn wait_for_event(&mut self, wake: Option<Duration>) {
        let clock = self.context.clock.clone();
        let wake = async {
            match wake {
                Some(at) => clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(done) = self.jobs.next() => self.handle_job_result(done),
            Some(()) = self.speeches.next() => {}
            // `self.settings` holds the sender.
            _ = self.power.changed() => {}
            () = self.watch.wait_for_change() => self.unseen.objects = true,
            () = self.workload.wait_for_change() => self.unseen.workload = true,
            _ = self.cluster.next_view() => self.unseen.cluster = true,
            () = wake => {}
        }
    }

    /// Handles events until it is time to decide again.
    async fn handle_events_until(&mut self, until: Duration) {
        while self.current_time().mono < until {
            self.wait_for_event(Some(until)).await;
        }
    }

    /// Decides all remediations and starts their jobs. Returns when to decide again.
    fn decide_all_cases(&mut self) -> Option<Duration> {
        self.log_watch_errors();
        self.observe_changes();
        if !self.observer.world.synced {
            return None;
        }
        let now = self.current_time();
        let cases = self.update_cases(now);
        let mut around = self.concurrent_remediations(&cases, now.mono);
        let mut counts = RemediationReasonCounts::default();
        let mut wakes = Vec::new();
        for case in cases {
            let decision = self.decide_case(&case, &mut around, now);
            let note = self
                .notes
                .get_mut(&case.subject)
                .expect("every case has a note");
            let because = note
                .refused
                .as_ref()
                .map_or(decision.cause.reason, |_| RemediationReason::Refused);
            counts.count_case(because, &note.known, now);
            wakes.push(self.start_case(&case, &decision, now));
            let known = self.notes[&case.subject].known.clone();
            self.settings.board.publish_remediation(DecidedRemediation {
                case,
                known,
                decision,
            });
        }
        counts.publish_counts(&self.context.metrics);
        wakes.into_iter().flatten().min()
    }

    fn observe_changes(&mut self) {
        let unseen = std::mem::take(&mut self.unseen);
        if unseen.objects {
            let now = self.current_time().mono;
            self.observer
                .observe_objects(self.watch.current_view(), now);
            self.workload.follow_machines(&self.observer.world.machines);
        }
        if unseen.cluster {
            self.observe_cluster();
        }
        if unseen.workload {
            self.observe_workload();
        }
        let power = &self.settings.power;
        self.observer
            .observe_hosts(power.list_hosts(), power.is_in_sync());
    }

    fn observe_cluster(&mut self) {
        let (now, view) = (self.current_time(), self.cluster.current_view());
        self.observer.observe_cluster(&view, now.mono);
        if view.synced {
            self.reboots
                .observe_nodes(view.nodes.values().map(AsRef::as_ref), now);
        }
    }

    fn observe_workload(&mut self) {
        let now = self.current_time();
        if let Some(clusters) = self.workload.observe_clusters(now) {
            self.observer.observe_workload(clusters, now.mono);
        }
    }

    /// Finds all remediations, those that wait longest first, and forgets the others.
    fn update_cases(&mut self, now: Now) -> Vec<Remediation> {
        let mut cases = discover_remediations(&self.observer.world);
        for case in &cases {
            let note = self.notes.entry(case.subject.clone());
            note.or_insert_with(|| {
                let log = self.context.decision_log.open_remediation(&case.subject);
                CaseMemory::new(now.mono, log)
            });
        }
        let subjects: BTreeSet<&RemediationSubject> =
            cases.iter().map(|case| &case.subject).collect();
        self.notes
            .retain(|subject, note| note.is_busy || subjects.contains(subject));
        self.settings
            .board
            .retain_subjects(|subject| subjects.contains(subject));
        cases.sort_by_key(|case| self.notes[&case.subject].born);
        cases
    }

    fn concurrent_remediations(
        &self,
        cases: &[Remediation],
        now: Duration,
    ) -> ConcurrentRemediations {
        let cluster = self.cluster.current_view();
        let mut around =
            concurrency::observe_concurrency(cases, &cluster, &self.reboots, &self.settings.power);
        around.workload = self.workload.planned_reboots();
        for note in self.notes.values() {
            if let Some((case, decision)) = note.running_decision(now) {
                around.admit_decided(case, decision, note.does_bmc_answer());
            }
        }
        around
    }

    fn decide_case(
        &mut self,
        case: &Remediation,
        around: &mut ConcurrentRemediations,
        now: Now,
    ) -> RemediationDecision {
        let note = self
            .notes
            .get_mut(&case.subject)
            .expect("every case has a note");
        let power = case.host.as_ref().ok().and_then(|host| {
            observe_power(
                &self.settings.power,
                &self.settings.power_config,
                &host.name,
                now,
            )
        });
        note.known.power = power;
        let decision = decide(case, &note.known, around, &self.settings.config, now);
        note.known.record_decision(case, &decision, now.mono);
        note.decision_log.log_decision(&decision);
        around.admit_decided(case, &decision, note.does_bmc_answer());
        decision
    }

    /// Starts the decision's job, unless one runs for that remediation or it has to pause. Returns
    /// when to decide it again.
    fn start_case(
        &mut self,
        case: &Remediation,
        decision: &RemediationDecision,
        now: Now,
    ) -> Option<Duration> {
        let note = self
            .notes
            .get_mut(&case.subject)
            .expect("every case has a note");
        if note.is_busy {
            return None;
        }
        note.reset_if_settled(decision, now.mono);
        let observations = note.conditions_with_refusal(decision);
        let (conditions, next_write) =
            note.conditions_to_write(current_conditions(case), &observations, now);
        let paused = note.paused_until(now.mono);
        let (looks, actions) = match paused {
            Some(_) => (Vec::new(), Vec::new()),
            None => (
                note.unanswered_observations(&decision.observe),
                decision.actions.clone(),
            ),
        };
        let wake = [
            decision
                .wake
                .as_ref()
                .map(|wake| wake.at.max(now.mono + DUE_RECHECK_DELAY)),
            next_write,
            paused,
        ];
        // The Events of a write are sent once it is done.
        let events = decision.report.events.clone();
        let (said_now, said_then) = match decision.actions.as_slice() {
            [] => (events, Vec::new()),
            [..] => (Vec::new(), events),
        };
        let said_now: Vec<DecisionEvent> = said_now
            .into_iter()
            .chain(note.refusal_event(decision))
            .collect();
        let job = RemediationJob {
            means: self.means.clone(),
            case: case.clone(),
            reason: decision.cause.reason,
            looks,
            actions,
            conditions,
            events: said_then,
        };
        self.report_new_events(case, &said_now);
        self.start_job(job, decision);
        wake.into_iter().flatten().min()
    }

    fn start_job(&mut self, job: RemediationJob, decision: &RemediationDecision) {
        if job.has_no_work() {
            return;
        }
        if let Some(note) = self.notes.get_mut(&job.case.subject) {
            let cluster = &job.case.cluster.name;
            self.observer.record_sent_actions(cluster, &job.actions);
            note.record_job_start(&job, decision);
            self.jobs.push(job.run_job().boxed());
        }
    }

    fn handle_job_result(&mut self, mut done: RemediationJobResult) {
        let now = self.current_time();
        for (action, end) in &done.acts {
            remediation_metrics::record_action(&self.context.metrics, &done.case, action, end);
        }
        for answer in done.answers.drain(..) {
            let cluster = &done.case.cluster.name;
            self.observer.apply_answer(cluster, answer, now.mono);
        }
        let mut is_lasting = false;
        if let Some(note) = self.notes.get_mut(&done.case.subject) {
            note.record_job_end(&mut done, now);
            is_lasting = note.has_lasting_changes();
        }
        log_job_error(&done, is_lasting);
        self.report_new_events(&done.case, &done.events);
    }

    /// Sends each Event once during a remediation.
    fn report_new_events(&mut self, case: &Remediation, events: &[DecisionEvent]) {
        let Some(note) = self.notes.get_mut(&case.subject) else {
            return;
        };
        let news = note.reported_events.unreported_of(events);
        note.reported_events.record_events(&news);
        if !news.is_empty() {
            let speech = report_events(self.means.clone(), case.clone(), news);
            self.speeches.push(speech.boxed());
        }
    }

    fn log_watch_errors(&mut self) {
        let trouble = &self.watch.current_view().errors;
        if *trouble == self.trouble {
            return;
        }
        for (kind, error) in trouble {
            warn!(
                kind,
                error, "failed to read all objects that remediation needs; retrying"
            );
        }
        self.trouble.clone_from(trouble);
    }
}

fn log_job_error(done: &RemediationJobResult, is_lasting: bool) {
    let subject = &done.case.subject;
    match &done.trouble {
        Some(RemediationCallError::Changed(what)) if !is_lasting => {
            debug!(%subject, what, "the reason of a remediation has changed");
        }
        Some(
            RemediationCallError::Changed(error)
            | RemediationCallError::Refused(error)
            | RemediationCallError::Failed(error),
        ) => {
            warn!(%subject, error, "a remediation cannot continue now; retrying");
        }
        None => {}
    }
}

/// The conditions of the remediation's object.
fn current_conditions(case: &Remediation) -> &[CurrentCondition] {
    match &case.subject {
        RemediationSubject::Machine(_) => case.machine.as_ref().map_or(&[], |it| &it.conditions),
        RemediationSubject::Node(_) => case.node.as_ref().map_or(&[], |it| &it.conditions),
        RemediationSubject::Request(_) => case
            .request
            .as_ref()
            .map_or(&[], |it| &it.status.conditions),
        RemediationSubject::WorkloadNode(..) | RemediationSubject::Host(_) => &[],
    }
}

impl Drop for RemediatorLoop {
    /// A process that does not lead reports no remediations.
    fn drop(&mut self) {
        self.heart.mark_sleeping(None);
        RemediationReasonCounts::default().publish_counts(&self.context.metrics);
        self.settings.board.retain_subjects(|_| false);
    }
}

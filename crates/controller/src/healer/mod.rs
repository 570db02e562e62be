//! The healer: what a coordinator that never came back cannot finish.
//!
//! **For:** one loop while this process leads: watch, decide ([`heal::decide`]), do, say.
//! **May touch:** what [`HealClient`] may.
//! **Promises:** nothing is written while this process does not lead; of one object one thing is
//! done at a time, and trouble with it delays only itself (L1). Everything is watched anew by each
//! leader, on its own monotonic clock.

pub(crate) mod eyes;
mod hands;
pub(crate) mod pace;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_core::condition;
use dogwatch_core::decision::Event;
use dogwatch_core::heal::{self, Action, Case, Config, Subject};
use dogwatch_k8s::heal::HealClient;
use dogwatch_process::health::Heart;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use tracing::{info, warn};

use self::eyes::Eyes;
use self::pace::Pace;
use self::work::{Done, Job};
use crate::Context;
use crate::metrics::{Family, Labels, Shape};

/// How often everything is decided anew at most: with 5,000 nodes something changes many times a
/// second, and nothing here is urgent to the tenth of one.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How many objects are worked on at a time.
const AT_A_TIME: usize = 16;

static ACTIONS: Family = Family {
    name: "dogwatch_healer_actions_total",
    help: "What the healer did, by reason and by how it ended: done, changed or failed.",
    shape: Shape::Counter,
};
static CASES: Family = Family {
    name: "dogwatch_healer_cases",
    help: "Objects that the healer has in hand, by the reason of its last decision.",
    shape: Shape::Gauge,
};

/// Heals while this process leads.
pub async fn run(context: Context, config: Config) {
    context
        .while_leading(|| Healer::new(context.clone(), config.clone()).lead())
        .await;
}

struct Healer {
    context: Context,
    config: Config,
    client: HealClient,
    heart: Heart,
    eyes: Eyes,
    pace: BTreeMap<Subject, Pace>,
    busy: BTreeSet<Subject>,
    said: BTreeMap<Subject, Vec<Event>>,
    jobs: FuturesUnordered<BoxFuture<'static, Done>>,
}

impl Healer {
    fn new(context: Context, config: Config) -> Self {
        Self {
            client: HealClient::new(context.client.clone(), &context.namespace),
            heart: context.board.heart("healer"),
            context,
            config,
            eyes: Eyes::default(),
            pace: BTreeMap::new(),
            busy: BTreeSet::new(),
            said: BTreeMap::new(),
            jobs: FuturesUnordered::new(),
        }
    }

    async fn lead(mut self) {
        let mut cluster = self.context.cluster.clone();
        info!("healing begins; every coordinator is watched anew");
        loop {
            let view = cluster.view();
            self.heart.working("healing");
            let wake = if view.synced { self.pass(&view) } else { None };
            let now = self.context.clock.now().mono;
            self.heart
                .sleeping(wake.map(|wake| wake.saturating_sub(now)));
            let again = now + LOOK_EVERY;
            // In this order: what happens at one moment is taken in the same way each time.
            tokio::select! {
                biased;
                _ = cluster.next() => {}
                Some(done) = self.jobs.next() => self.finished(done),
                () = self.context.clock.wake_at(wake) => {}
            }
            self.rest(again).await;
        }
    }

    /// Takes what is finished meanwhile, and no more, until it is time to look again.
    async fn rest(&mut self, until: Duration) {
        loop {
            tokio::select! {
                biased;
                Some(done) = self.jobs.next() => self.finished(done),
                () = self.context.clock.sleep_until(until) => return,
            }
        }
    }

    /// Decides about everything, and begins what is to be done. When to do so again.
    fn pass(&mut self, view: &crate::cluster::ClusterView) -> Option<Duration> {
        let now = self.context.clock.now();
        self.eyes.see(view, now);
        let cases = heal::decide(&self.eyes.seen, &self.config, now);
        self.count(&cases);
        let subjects: BTreeSet<&Subject> = cases.iter().map(|case| &case.subject).collect();
        self.pace.retain(|subject, _| subjects.contains(subject));
        self.said.retain(|subject, _| subjects.contains(subject));
        let wakes = cases.into_iter().map(|case| self.begin(case));
        wakes.collect::<Vec<_>>().into_iter().flatten().min()
    }

    /// Begins what the case wants, unless it is at work on that object or has to pause.
    fn begin(&mut self, case: Case) -> Option<Duration> {
        let wake = case.decision.wake.as_ref().map(|wake| wake.at);
        if self.busy.contains(&case.subject) {
            return None;
        }
        let paused = self.pace.get(&case.subject).and_then(Pace::until);
        let now = self.context.clock.now();
        if let Some(until) = paused.filter(|until| *until > now.mono) {
            return Some(until);
        }
        let job = self.job(case);
        if job.is_nothing() {
            return wake;
        }
        if self.busy.len() >= AT_A_TIME {
            // Somebody finishes, and that wakes us.
            return wake;
        }
        self.busy.insert(job.case.subject.clone());
        self.jobs.push(Box::pin(job.run()));
        wake
    }

    fn job(&self, case: Case) -> Job {
        let now = self.context.clock.now();
        let said = self.said.get(&case.subject);
        let unsaid = case.decision.report.events.iter();
        let unsaid = unsaid.filter(|event| said.is_none_or(|said| !said.contains(event)));
        let events: Vec<Event> = unsaid.cloned().collect();
        let node = match &case.subject {
            Subject::Node(name) => self.eyes.seen.nodes.get(name).cloned(),
            Subject::Lease(_) | Subject::Presence(_) => None,
        };
        let standing = node.as_ref().map_or(&[][..], |node| &node.conditions);
        let conditions = condition::to_write(standing, &case.decision.report.conditions, now);
        Job {
            client: self.client.clone(),
            clock: self.context.clock.clone(),
            leadership: self.context.leadership.clone(),
            policies: self.eyes.seen.policies.clone(),
            about: self.eyes.about(&case),
            zone: self.eyes.zone(&case),
            node,
            events,
            conditions,
            case,
        }
    }

    fn finished(&mut self, done: Done) {
        let now = self.context.clock.now();
        self.busy.remove(&done.subject);
        for fact in done.facts {
            self.eyes.take(fact, now);
        }
        let said = self.said.entry(done.subject.clone()).or_default();
        said.extend(done.said);
        if let Some(end) = &done.end {
            let labels = [("reason", done.reason), ("result", end.as_str())];
            self.context.metrics.add(&ACTIONS, &labels, 1);
        }
        let pace = self.pace.entry(done.subject.clone()).or_default();
        match done.trouble {
            None => pace.well(),
            Some(trouble) => {
                warn!(object = %eyes::words(&done.subject), reason = done.reason, error = trouble, "cannot heal");
                pace.trouble(now.mono);
            }
        }
    }

    fn count(&self, cases: &[Case]) {
        let mut by_reason: BTreeMap<&'static str, f64> = BTreeMap::new();
        for case in cases {
            *by_reason.entry(case.decision.because.reason).or_default() += 1.0;
        }
        let samples = by_reason.into_iter();
        let samples = samples.map(|(reason, count)| {
            let labels: Labels = vec![("reason", reason.to_owned())];
            (labels, count)
        });
        self.context.metrics.replace(&CASES, samples);
    }
}

impl Drop for Healer {
    /// Who does not lead has nothing in hand.
    fn drop(&mut self) {
        self.heart.sleeping(None);
        self.context.metrics.replace(&CASES, []);
    }
}

/// What a log line says of an action.
fn verb(action: &Action) -> &'static str {
    match action {
        Action::PatchNode { .. } => "patches the Node in its coordinator's place",
        Action::Release { .. } => "takes runs off a Lease",
        Action::Break { .. } => "clears a Lease",
        Action::PatchApiNode { .. } => "undoes what the lock API did to a Node",
        Action::DeletePresence { .. } => "deletes the presence of a process that is gone",
        Action::NoteEscalation { .. } => "notes that a reboot is handed over",
        Action::Escalate { .. } => "asks a BareMetalHost to reboot",
    }
}

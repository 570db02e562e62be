//! The loop, in one time of leading: observe, decide about every case, begin what is to be done, sleep
//! until the wake-up or a change.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::condition::Condition;
use dogwatch_core::decision::Event;
use dogwatch_core::reboot::RebootsWatched;
use dogwatch_core::remedy::{Around, Case, Decision, Subject, cases, decide, reason};
use dogwatch_k8s::remedy::RemedyWatch;
use dogwatch_process::health::Heart;
use dogwatch_process::jitter::Jitter;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::watch;
use tracing::{debug, info, warn};

use super::board::Shown;
use super::eyes::Eyes;
use super::hands::Trouble;
use super::job::{Done, Job, Means, say};
use super::note::Note;
use super::tally::{self, Counts};
use super::{Settings, around};
use crate::Context;
use crate::cluster::Cluster;

/// How soon after a pass the next one may be: what happens together is decided together.
const REST: Duration = Duration::from_millis(10);
/// At most a fifth of the time is spent on deciding, however large the cluster is.
const REST_PER_PASS: u32 = 4;
/// A wake-up that is due already is looked at again so soon.
const WHILE_DUE: Duration = Duration::from_millis(50);
/// What one leader does.
pub(super) struct Remediator {
    context: Context,
    settings: Settings,
    means: Means,
    heart: Heart,
    watch: RemedyWatch,
    cluster: Cluster,
    power: watch::Receiver<u64>,
    eyes: Eyes,
    /// Whether the watches show what the eyes have not taken in: it is taken in once for each pass, for it
    /// costs a copy of all names.
    unseen: Unseen,
    /// Since when planned reboots are under way.
    reboots: RebootsWatched,
    notes: BTreeMap<Subject, Note>,
    jobs: FuturesUnordered<BoxFuture<'static, Done>>,
    speeches: FuturesUnordered<BoxFuture<'static, ()>>,
    /// What cannot be seen, as it was last said.
    trouble: BTreeMap<&'static str, String>,
}

#[derive(Default)]
struct Unseen {
    objects: bool,
    cluster: bool,
}

impl Remediator {
    pub(super) fn new(context: Context, settings: Settings, means: Means) -> Self {
        let jitter = Jitter::of(&context.process);
        Self {
            heart: context.board.heart("remediation"),
            watch: RemedyWatch::new(
                context.client.clone(),
                Some(&context.namespace),
                move || jitter.draw(),
            ),
            cluster: context.cluster.clone(),
            power: settings.power.changes(),
            context,
            settings,
            means,
            eyes: Eyes::default(),
            unseen: Unseen {
                cluster: true,
                ..Unseen::default()
            },
            reboots: RebootsWatched::default(),
            notes: BTreeMap::new(),
            jobs: FuturesUnordered::new(),
            speeches: FuturesUnordered::new(),
            trouble: BTreeMap::new(),
        }
    }

    pub(super) async fn lead(mut self) {
        info!("remediation begins; everything is looked at anew");
        loop {
            self.heart.working("remediation");
            let began = self.now().mono;
            let wake = self.pass();
            let now = self.now().mono;
            self.heart
                .sleeping(wake.map(|wake| wake.saturating_sub(now)));
            let rest = REST.max(now.saturating_sub(began) * REST_PER_PASS);
            self.next(wake).await;
            self.rest(now + rest).await;
        }
    }

    fn now(&self) -> Now {
        self.context.clock.now()
    }

    /// Waits until there is a reason to decide anew.
    async fn next(&mut self, wake: Option<Duration>) {
        let clock = self.context.clock.clone();
        let wake = async {
            match wake {
                Some(at) => clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.watch.changed() => self.unseen.objects = true,
            _ = self.cluster.next() => self.unseen.cluster = true,
            // The sender is on the board that is held here.
            _ = self.power.changed() => {}
            Some(done) = self.jobs.next() => self.finished(done),
            Some(()) = self.speeches.next() => {}
            () = wake => {}
        }
    }

    /// Takes what comes meanwhile, until it is time to decide again.
    async fn rest(&mut self, until: Duration) {
        while self.now().mono < until {
            self.next(Some(until)).await;
        }
    }

    /// Decides about everything, and begins what is to be done. When to do so again.
    fn pass(&mut self) -> Option<Duration> {
        self.say_trouble();
        self.see();
        if !self.eyes.world.synced {
            return None;
        }
        let now = self.now();
        let cases = self.cases(now);
        let mut around = self.around(&cases, now.mono);
        let mut counts = Counts::default();
        let mut wakes = Vec::new();
        for case in cases {
            let decision = self.decide(&case, &mut around, now);
            let note = self
                .notes
                .get_mut(&case.subject)
                .expect("every case has a note");
            let because = note
                .refused
                .as_ref()
                .map_or(decision.because.reason, |_| reason::REFUSED);
            counts.count(because, &note.known, now);
            wakes.push(self.begin(&case, &decision, now));
            let known = self.notes[&case.subject].known.clone();
            self.settings.board.show(Shown {
                case,
                known,
                decision,
            });
        }
        counts.show(&self.context.metrics);
        wakes.into_iter().flatten().min()
    }

    fn see(&mut self) {
        let unseen = std::mem::take(&mut self.unseen);
        if unseen.objects {
            let now = self.now().mono;
            self.eyes.see_objects(self.watch.view(), now);
        }
        if unseen.cluster {
            self.see_cluster();
        }
        let power = &self.settings.power;
        self.eyes.see_hosts(power.hosts(), power.is_in_sync());
    }

    fn see_cluster(&mut self) {
        let (now, view) = (self.now(), self.cluster.view());
        self.eyes.see_cluster(&view, now.mono);
        if view.synced {
            self.reboots
                .saw(view.nodes.values().map(AsRef::as_ref), now);
        }
    }

    /// Whoever is concerned, the one that waits longest first; the others are forgotten.
    fn cases(&mut self, now: Now) -> Vec<Case> {
        let mut cases = cases(&self.eyes.world);
        for case in &cases {
            let note = self.notes.entry(case.subject.clone());
            note.or_insert_with(|| Note::new(now.mono));
        }
        let subjects: BTreeSet<&Subject> = cases.iter().map(|case| &case.subject).collect();
        self.notes
            .retain(|subject, note| note.is_busy || subjects.contains(subject));
        self.settings
            .board
            .keep(|subject| subjects.contains(subject));
        cases.sort_by_key(|case| self.notes[&case.subject].born);
        cases
    }

    fn around(&self, cases: &[Case], now: Duration) -> Around {
        let cluster = self.cluster.view();
        let mut around = around::around(cases, &cluster, &self.reboots, &self.settings.power);
        for note in self.notes.values() {
            if let Some((case, decision)) = note.under_way(now) {
                around.admit(case, decision, note.answers());
            }
        }
        around
    }

    fn decide(&mut self, case: &Case, around: &mut Around, now: Now) -> Decision {
        let note = self
            .notes
            .get_mut(&case.subject)
            .expect("every case has a note");
        let power = case.host.as_ref().ok().and_then(|host| {
            around::power(
                &self.settings.power,
                &self.settings.power_config,
                &host.name,
                now,
            )
        });
        note.known.power = power;
        let decision = decide(case, &note.known, around, &self.settings.config, now);
        note.known.decided(&decision, now.mono);
        around.admit(case, &decision, note.answers());
        decision
    }

    /// Begins what the decision wants, unless that case is being worked on or has to pause. When to look
    /// at it again.
    fn begin(&mut self, case: &Case, decision: &Decision, now: Now) -> Option<Duration> {
        let note = self
            .notes
            .get_mut(&case.subject)
            .expect("every case has a note");
        if note.is_busy {
            return None;
        }
        note.rests(decision, now.mono);
        let observations = note.conditions(decision);
        let (conditions, next_write) = note.to_tell(standing(case), &observations, now);
        let paused = note.paused(now.mono);
        let (looks, actions) = match paused {
            Some(_) => (Vec::new(), Vec::new()),
            None => (note.unanswered(&decision.looks), decision.actions.clone()),
        };
        let wake = [
            decision
                .wake
                .as_ref()
                .map(|wake| wake.at.max(now.mono + WHILE_DUE)),
            next_write,
            paused,
        ];
        // What goes with a write is said once it is done.
        let events = decision.report.events.clone();
        let (said_now, said_then) = match decision.actions.as_slice() {
            [] => (events, Vec::new()),
            [..] => (Vec::new(), events),
        };
        let said_now = said_now.into_iter().chain(note.refusal(decision)).collect();
        let job = Job {
            means: self.means.clone(),
            case: case.clone(),
            reason: decision.because.reason,
            looks,
            actions,
            conditions,
            events: said_then,
        };
        self.say(case, said_now);
        self.start(job, decision);
        wake.into_iter().flatten().min()
    }

    fn start(&mut self, job: Job, decision: &Decision) {
        if job.is_nothing() {
            return;
        }
        if let Some(note) = self.notes.get_mut(&job.case.subject) {
            note.begins(&job, decision);
            self.jobs.push(job.run().boxed());
        }
    }

    fn finished(&mut self, mut done: Done) {
        let now = self.now();
        for (action, end) in &done.acts {
            tally::acted(&self.context.metrics, &done.case, action, end);
        }
        for answer in done.answers.drain(..) {
            self.eyes.take(answer, now.mono);
        }
        say_why(&done);
        if let Some(note) = self.notes.get_mut(&done.case.subject) {
            note.ends(&mut done, now);
        }
        self.say(&done.case, done.events);
    }

    /// Each once in the life of a case.
    fn say(&mut self, case: &Case, events: Vec<Event>) {
        let Some(note) = self.notes.get_mut(&case.subject) else {
            return;
        };
        let news: Vec<Event> = events
            .into_iter()
            .filter(|event| note.said.insert(event.clone()))
            .collect();
        if !news.is_empty() {
            let speech = say(self.means.clone(), case.clone(), news);
            self.speeches.push(speech.boxed());
        }
    }

    fn say_trouble(&mut self) {
        let trouble = &self.watch.view().trouble;
        if *trouble == self.trouble {
            return;
        }
        for (kind, error) in trouble {
            warn!(
                kind,
                error, "cannot see all that remediation needs; trying for ever"
            );
        }
        self.trouble.clone_from(trouble);
    }
}

fn say_why(done: &Done) {
    let subject = &done.case.subject;
    match &done.trouble {
        Some(Trouble::Changed(what)) => debug!(%subject, what, "decides anew"),
        Some(Trouble::Refused(error) | Trouble::Failed(error)) => {
            warn!(%subject, error, "cannot go on with a remediation for the moment");
        }
        None => {}
    }
}

/// Conditions as they stand on what the case is about.
fn standing(case: &Case) -> &[Condition] {
    match &case.subject {
        Subject::Machine(_) => case.machine.as_ref().map_or(&[], |it| &it.conditions),
        Subject::Node(_) => case.node.as_ref().map_or(&[], |it| &it.conditions),
        Subject::Request(_) => case
            .request
            .as_ref()
            .map_or(&[], |it| &it.status.conditions),
        Subject::Host(_) => &[],
    }
}

impl Drop for Remediator {
    /// Who does not lead has nothing in hand.
    fn drop(&mut self) {
        self.heart.sleeping(None);
        Counts::default().show(&self.context.metrics);
        self.settings.board.keep(|_| false);
    }
}

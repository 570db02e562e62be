//! One schedule's work: one write of its status, or some requests, or one look; and what is to be said.

use dogwatch_core::decision::Event;
use dogwatch_core::schedule::{
    Action, Ask, Decision, Object, Outcome, Schedule, ScheduleName, Seen, Status, Target,
    TargetsSeen,
};
use dogwatch_k8s::Kind;
use dogwatch_k8s::schedule::ScheduleClient;
use dogwatch_process::clock::Clock;
use futures::stream::{self, StreamExt as _};
use tracing::{info, warn};

use crate::Context;
use crate::leader::Leadership;

/// How many requests are made before it is decided anew: a schedule that is suspended meanwhile
/// stops soon.
const BATCH: usize = 64;
/// How many of them at a time.
const AT_A_TIME: usize = 16;

/// What came of a request.
#[derive(Debug)]
pub(super) enum Asked {
    /// It was made.
    Is {
        /// How the target stands now.
        object: Box<Object>,
        /// There was a request already, and it was only marked.
        noted: bool,
    },
    /// The target has changed since it was read; nothing was done.
    Changed,
    /// It failed.
    Failed(String),
}

/// What came of a job.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) name: ScheduleName,
    pub(super) uid: String,
    /// The answer to our own write.
    pub(super) wrote: Option<Schedule>,
    /// How occurrences ended that the write tells of.
    pub(super) ended: Vec<Outcome>,
    pub(super) looked: Option<TargetsSeen>,
    pub(super) asked: Vec<(Target, Asked)>,
    pub(super) said: Vec<Event>,
    /// The schedule has changed since it was seen; nothing was written.
    changed: bool,
    /// What went wrong with the write.
    failed: Option<String>,
}

impl Done {
    /// What went wrong.
    pub(super) fn trouble(&self) -> Option<&str> {
        let asked = self.asked.iter().find_map(|(_, asked)| match asked {
            Asked::Failed(why) => Some(why.as_str()),
            Asked::Is { .. } | Asked::Changed => None,
        });
        self.failed.as_deref().or(asked)
    }

    /// Whether something has changed since it was seen, so that nothing was done.
    pub(super) fn is_changed(&self) -> bool {
        let mut asked = self.asked.iter();
        self.changed || asked.any(|(_, asked)| matches!(asked, Asked::Changed))
    }

    /// Whether it is worth going on at once.
    pub(super) fn is_progress(&self) -> bool {
        let mut asked = self.asked.iter();
        asked.any(|(_, asked)| matches!(asked, Asked::Is { .. }))
    }
}

/// What one schedule wants.
enum Work {
    Write(Box<Status>),
    Ask(Vec<Ask>),
    Look,
    Say,
}

/// One schedule's work.
pub(super) struct Job {
    client: ScheduleClient,
    clock: Clock,
    leadership: Leadership,
    seen: Seen,
    decision: Decision,
    events: Vec<Event>,
    work: Work,
}

impl Job {
    /// Nothing, if there is nothing to do and nothing to say.
    pub(super) fn new(
        context: &Context,
        client: &ScheduleClient,
        seen: Seen,
        mut decision: Decision,
        events: Vec<Event>,
    ) -> Option<Self> {
        let work = match work(std::mem::take(&mut decision.actions), &seen) {
            Some(work) => work,
            None if !decision.looks.is_empty() => Work::Look,
            None if !events.is_empty() => Work::Say,
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

    pub(super) async fn run(mut self) -> Done {
        let mut done = Done {
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
        match std::mem::replace(&mut self.work, Work::Say) {
            Work::Write(status) => self.write(&status, &mut done).await,
            Work::Ask(asks) => self.ask(asks, &mut done).await,
            Work::Look => self.look(&mut done).await,
            Work::Say => self.say(&mut done).await,
        }
        done
    }

    async fn write(&self, status: &Status, done: &mut Done) {
        if self.leadership.leads().is_none() {
            done.failed = Some(NOT_LEADING.into());
            return;
        }
        let (schedule, why) = (&self.seen.schedule, &self.decision.because);
        info!(schedule = %schedule.name, reason = why.reason, why = why.message, "writes a schedule's status");
        let conditions = &self.decision.report.conditions;
        let now = self.clock.now();
        let write = self.client.write_status(schedule, status, conditions, now);
        match write.await {
            Ok(wrote) => {
                done.ended = ended(schedule, status);
                done.wrote = Some(wrote);
            }
            Err(error) if matches!(error.kind(), Kind::Conflict | Kind::NotFound) => {
                done.changed = true;
            }
            Err(error) => done.failed = Some(error.in_words()),
        }
    }

    async fn ask(&self, asks: Vec<Ask>, done: &mut Done) {
        let name = &self.seen.schedule.name;
        info!(schedule = %name, targets = asks.len(), "asks the targets of a schedule");
        let asked = stream::iter(asks).map(|ask| async move {
            let asked = self.ask_one(&ask).await;
            (ask.target, asked)
        });
        done.asked = asked.buffer_unordered(AT_A_TIME).collect().await;
    }

    async fn ask_one(&self, ask: &Ask) -> Asked {
        if self.leadership.leads().is_none() {
            return Asked::Failed(NOT_LEADING.into());
        }
        match self.client.ask(&self.seen.schedule.name, ask).await {
            // Something that takes our annotation off would make us ask for ever.
            Ok(object) if object.marks.get() != Some(&ask.marks) => {
                Asked::Failed("annotation dogwatch.dev/scheduled was not kept on it".into())
            }
            Ok(object) => Asked::Is {
                object: Box::new(object),
                noted: ask.request.is_none(),
            },
            Err(error) if matches!(error.kind(), Kind::Conflict | Kind::NotFound) => Asked::Changed,
            Err(error) => Asked::Failed(error.in_words()),
        }
    }

    async fn look(&self, done: &mut Done) {
        if let Ok(plan) = &self.seen.schedule.plan {
            let taken = self.clock.now().mono;
            let name = &self.seen.schedule.name;
            done.looked = Some(self.client.targets(plan, name, taken).await);
        }
    }

    async fn say(&self, done: &mut Done) {
        for event in &self.events {
            if self.leadership.leads().is_none() {
                return;
            }
            let schedule = &self.seen.schedule;
            match self.client.say(schedule, event, self.clock.now()).await {
                Ok(()) => {}
                Err(error) if error.kind() == Kind::Transient => {
                    done.failed = Some(error.in_words());
                    return;
                }
                // Asking again would not help; the condition and the history say the same.
                Err(error) => {
                    let error = error.in_words();
                    warn!(schedule = %schedule.name, event = event.reason, error, "cannot write an Event");
                }
            }
            done.said.push(event.clone());
        }
    }
}

/// Why nothing is written.
const NOT_LEADING: &str = "this process does not lead any more";

/// A write goes before everything else. Those that failed before wait behind the others.
fn work(actions: Vec<Action>, seen: &Seen) -> Option<Work> {
    let mut asks = Vec::new();
    for action in actions {
        match action {
            Action::WriteStatus(status) => return Some(Work::Write(status)),
            Action::Ask(ask) => asks.push(*ask),
        }
    }
    asks.sort_by_key(|ask| seen.trouble.contains_key(&ask.target));
    asks.truncate(BATCH);
    (!asks.is_empty()).then_some(Work::Ask(asks))
}

/// How the occurrences ended whose records are new.
fn ended(schedule: &Schedule, status: &Status) -> Vec<Outcome> {
    let before = &schedule.status.history;
    let new = status
        .history
        .iter()
        .filter(|record| !before.contains(record));
    new.map(|record| record.outcome).collect()
}

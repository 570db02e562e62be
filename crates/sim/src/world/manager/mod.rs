//! Runs the controllers: one cache, one queue, one look at a time.
//!
//! What the watches say goes into the cache; each change names keys to look at; each look leads to
//! writes, whose answers go into the cache before the next look. So no controller acts twice because
//! a watch lags behind. A write that failed has its key looked at again after a pause.

mod alarms;
mod feeds;
mod perform;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::SelectAll;
use futures::{FutureExt as _, StreamExt as _};
use kube::Client;
use tokio::sync::mpsc;
use tokio::time::Instant;

use alarms::Alarms;
use feeds::{Feed, Told};
use perform::Failure;

use super::Actor;
use super::cache::{Cache, Change, Key};
use super::controllers::{Action, Controller, Name};
use super::kubelet::{Power, PowerReport};
use crate::clock::Clock;

/// So many writes of one look are under way at a time.
const IN_FLIGHT: usize = 32;
/// A pause after a write that met a conflict: the watch is about to show with what.
const AFTER_CONFLICT: Duration = Duration::from_millis(100);
/// A pause after a write that failed otherwise.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// What the manager works with.
pub struct Setup {
    /// kube-controller-manager's client.
    pub controllers: Client,
    /// kube-scheduler's client.
    pub scheduler: Client,
    /// What time it is there.
    pub clock: Arc<dyn Clock>,
    /// Which controllers run.
    pub names: BTreeSet<Name>,
    /// What machines without heartbeats report of their power.
    pub reports: mpsc::UnboundedReceiver<PowerReport>,
}

/// Starts the controllers; they stop when the actor is dropped.
pub fn start(setup: Setup) -> Actor {
    Actor::spawn(Manager::new(setup).run())
}

struct Manager {
    controllers: Vec<(Name, Box<dyn Controller>)>,
    clients: (Client, Client),
    clock: Arc<dyn Clock>,
    cache: Cache,
    feeds: SelectAll<Feed>,
    unlisted: BTreeSet<&'static str>,
    reports: mpsc::UnboundedReceiver<PowerReport>,
    queue: VecDeque<(usize, Key)>,
    queued: BTreeSet<(usize, Key)>,
    alarms: Alarms<(usize, Key)>,
}

impl Manager {
    fn new(setup: Setup) -> Self {
        let feeds = feeds::all(&setup.controllers);
        Self {
            controllers: setup
                .names
                .iter()
                .map(|name| (*name, name.make()))
                .collect(),
            clients: (setup.controllers, setup.scheduler),
            clock: setup.clock,
            cache: Cache::default(),
            unlisted: feeds::KINDS.into(),
            feeds,
            reports: setup.reports,
            queue: VecDeque::new(),
            queued: BTreeSet::new(),
            alarms: Alarms::default(),
        }
    }

    async fn run(mut self) {
        loop {
            self.hear_what_is_there();
            for entry in self.alarms.due(Instant::now()) {
                self.enqueue(entry);
            }
            // A half-known cluster looks like one that lost half of its objects.
            let next = if self.unlisted.is_empty() {
                self.queue.pop_front()
            } else {
                None
            };
            match next {
                Some(entry) => {
                    self.queued.remove(&entry);
                    self.look(entry).await;
                }
                None => self.wait().await,
            }
        }
    }

    fn hear_what_is_there(&mut self) {
        while let Some(Some(told)) = self.feeds.next().now_or_never() {
            self.hear(told);
        }
        while let Ok(report) = self.reports.try_recv() {
            self.report(&report);
        }
    }

    async fn wait(&mut self) {
        let wake = self.alarms.next();
        tokio::select! { biased;
            Some(told) = self.feeds.next() => self.hear(told),
            Some(report) = self.reports.recv() => self.report(&report),
            () = until(wake) => {}
        }
    }

    fn hear(&mut self, told: Told) {
        let changes = (told.apply)(&mut self.cache);
        if told.complete {
            self.unlisted.remove(told.kind);
        }
        for change in &changes {
            self.changed(change);
        }
    }

    fn report(&mut self, report: &PowerReport) {
        self.changed(&Change::Power {
            node: report.node.to_string(),
            on: matches!(report.power, Power::On(_)),
        });
    }

    fn changed(&mut self, change: &Change) {
        let now = self.clock.now();
        for index in 0..self.controllers.len() {
            let mut keys = BTreeSet::new();
            self.controllers[index]
                .1
                .touched(&self.cache, change, now, &mut keys);
            for key in keys {
                self.enqueue((index, key));
            }
        }
    }

    fn enqueue(&mut self, entry: (usize, Key)) {
        if self.queued.insert(entry.clone()) {
            self.queue.push_back(entry);
        }
    }

    async fn look(&mut self, entry: (usize, Key)) {
        let (name, controller) = &mut self.controllers[entry.0];
        let name = *name;
        let verdict = controller.reconcile(&self.cache, &entry.1, self.clock.now());
        if let Some(pause) = verdict.again_in {
            self.alarms.set(entry.clone(), Instant::now() + pause);
        }
        for failure in self.perform(name, verdict.actions).await {
            let pause = match failure {
                Failure::Conflict => AFTER_CONFLICT,
                Failure::Other => AFTER_FAILURE,
            };
            self.alarms.set(entry.clone(), Instant::now() + pause);
        }
    }

    /// Does it all; what came of it is known when this ends.
    async fn perform(&mut self, name: Name, actions: Vec<Action>) -> Vec<Failure> {
        let client = match name {
            Name::Scheduler => &self.clients.1,
            Name::ReplicaSet
            | Name::DaemonSet
            | Name::Deployment
            | Name::Disruption
            | Name::NodeLifecycle
            | Name::AttachDetach
            | Name::Garbage => &self.clients.0,
        };
        let calls = actions
            .into_iter()
            .map(|action| perform::perform(client.clone(), action));
        let ends: Vec<_> = futures::stream::iter(calls)
            .buffered(IN_FLIGHT)
            .collect()
            .await;
        let mut failures = Vec::new();
        for end in ends {
            match end {
                Ok(effect) => {
                    let changes = effect(&mut self.cache);
                    for change in &changes {
                        self.changed(change);
                    }
                }
                Err(failure) => failures.push(failure),
            }
        }
        failures
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

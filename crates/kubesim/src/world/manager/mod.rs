//! Runs the controllers: one cache, one queue, one reconcile at a time.
//!
//! Watch events update the cache; each change enqueues keys; each reconcile leads to writes, whose
//! answers update the cache before the next reconcile. So no controller acts twice because a watch
//! lags. After a failed write its key is reconciled again after a pause.

mod feeds;
mod perform;
mod requeue_timers;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::SelectAll;
use futures::{FutureExt as _, StreamExt as _};
use kube::Client;
use tokio::sync::mpsc;
use tokio::time::Instant;

use feeds::{FeedUpdate, KindFeed};
use perform::ActionFailure;
use requeue_timers::RequeueTimers;

use super::ActorTask;
use super::cache::{CacheChange, ControllerCache, ObjectKey};
use super::controllers::{ControllerAction, ControllerName, SimulatedController};
use super::kubelet::{MachinePower, PowerReport};
use crate::clock::ClusterClock;

/// Number of concurrent writes of one reconcile.
const MAX_CALLS_IN_FLIGHT: usize = 32;
/// Pause after a write with a conflict: the watch soon shows the other change.
const PAUSE_AFTER_CONFLICT: Duration = Duration::from_millis(100);
/// Pause after a write that failed otherwise.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The manager's clients and settings.
pub struct ManagerSetup {
    /// kube-controller-manager's client.
    pub controllers: Client,
    /// kube-scheduler's client.
    pub scheduler: Client,
    /// The clock of the controllers.
    pub clock: Arc<dyn ClusterClock>,
    pub names: BTreeSet<ControllerName>,
    /// Power reports of machines without heartbeats.
    pub reports: mpsc::UnboundedReceiver<PowerReport>,
}

/// Starts the controllers; they stop when the actor is dropped.
pub fn start_manager(setup: ManagerSetup) -> ActorTask {
    ActorTask::spawn(ControllerManager::new(setup).run())
}

struct ControllerManager {
    controllers: Vec<(ControllerName, Box<dyn SimulatedController>)>,
    clients: (Client, Client),
    clock: Arc<dyn ClusterClock>,
    cache: ControllerCache,
    feeds: SelectAll<KindFeed>,
    unlisted: BTreeSet<&'static str>,
    reports: mpsc::UnboundedReceiver<PowerReport>,
    queue: VecDeque<(usize, ObjectKey)>,
    queued: BTreeSet<(usize, ObjectKey)>,
    alarms: RequeueTimers<(usize, ObjectKey)>,
}

impl ControllerManager {
    fn new(setup: ManagerSetup) -> Self {
        let feeds = feeds::all_feeds(&setup.controllers);
        Self {
            controllers: setup
                .names
                .iter()
                .map(|name| (*name, name.build_controller()))
                .collect(),
            clients: (setup.controllers, setup.scheduler),
            clock: setup.clock,
            cache: ControllerCache::default(),
            unlisted: feeds::WATCHED_KINDS.into(),
            feeds,
            reports: setup.reports,
            queue: VecDeque::new(),
            queued: BTreeSet::new(),
            alarms: RequeueTimers::default(),
        }
    }

    async fn run(mut self) {
        loop {
            self.drain_pending_updates();
            for entry in self.alarms.take_due(Instant::now()) {
                self.enqueue(entry);
            }
            // An incomplete cache looks like a cluster that lost half of its objects.
            let next = if self.unlisted.is_empty() {
                self.queue.pop_front()
            } else {
                None
            };
            match next {
                Some(entry) => {
                    self.queued.remove(&entry);
                    self.reconcile_key(entry).await;
                }
                None => self.wait_for_update().await,
            }
        }
    }

    fn drain_pending_updates(&mut self) {
        while let Some(Some(told)) = self.feeds.next().now_or_never() {
            self.apply_update(told);
        }
        while let Ok(report) = self.reports.try_recv() {
            self.apply_power_report(&report);
        }
    }

    async fn wait_for_update(&mut self) {
        let wake = self.alarms.next_due();
        tokio::select! { biased;
            Some(told) = self.feeds.next() => self.apply_update(told),
            Some(report) = self.reports.recv() => self.apply_power_report(&report),
            () = sleep_until_or_forever(wake) => {}
        }
    }

    fn apply_update(&mut self, told: FeedUpdate) {
        let changes = (told.apply)(&mut self.cache);
        if told.complete {
            self.unlisted.remove(told.kind);
        }
        for change in &changes {
            self.enqueue_for_change(change);
        }
    }

    fn apply_power_report(&mut self, report: &PowerReport) {
        self.enqueue_for_change(&CacheChange::Power {
            node: report.node.clone(),
            on: matches!(report.power, MachinePower::On(_)),
        });
    }

    fn enqueue_for_change(&mut self, change: &CacheChange) {
        let now = self.clock.now();
        for index in 0..self.controllers.len() {
            let mut keys = BTreeSet::new();
            self.controllers[index]
                .1
                .enqueue_keys(&self.cache, change, now, &mut keys);
            for key in keys {
                self.enqueue((index, key));
            }
        }
    }

    fn enqueue(&mut self, entry: (usize, ObjectKey)) {
        if self.queued.insert(entry.clone()) {
            self.queue.push_back(entry);
        }
    }

    async fn reconcile_key(&mut self, entry: (usize, ObjectKey)) {
        let (name, controller) = &mut self.controllers[entry.0];
        let name = *name;
        let verdict = controller.reconcile(&self.cache, &entry.1, self.clock.now());
        if let Some(pause) = verdict.requeue_after {
            self.alarms
                .set_earliest(entry.clone(), Instant::now() + pause);
        }
        for failure in self.perform_actions(name, verdict.actions).await {
            let pause = match failure {
                ActionFailure::Conflict => PAUSE_AFTER_CONFLICT,
                ActionFailure::Other => PAUSE_AFTER_FAILURE,
            };
            self.alarms
                .set_earliest(entry.clone(), Instant::now() + pause);
        }
    }

    /// Performs all actions; the results are applied when this returns.
    async fn perform_actions(
        &mut self,
        name: ControllerName,
        actions: Vec<ControllerAction>,
    ) -> Vec<ActionFailure> {
        let client = match name {
            ControllerName::Scheduler => &self.clients.1,
            ControllerName::ReplicaSet
            | ControllerName::DaemonSet
            | ControllerName::Deployment
            | ControllerName::Disruption
            | ControllerName::NodeLifecycle
            | ControllerName::AttachDetach
            | ControllerName::Garbage => &self.clients.0,
        };
        let calls = actions
            .into_iter()
            .map(|action| perform::perform_action(client.clone(), action));
        let ends: Vec<_> = futures::stream::iter(calls)
            .buffered(MAX_CALLS_IN_FLIGHT)
            .collect()
            .await;
        let mut failures = Vec::new();
        for end in ends {
            match end {
                Ok(effect) => {
                    let changes = effect(&mut self.cache);
                    for change in &changes {
                        self.enqueue_for_change(change);
                    }
                }
                Err(failure) => failures.push(failure),
            }
        }
        failures
    }
}

async fn sleep_until_or_forever(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

//! The loop that runs a drain.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use dogwatch_core::drain::{Drain, DrainConfig, PodRef, Progress, Step};
use dogwatch_core::{Now, Wake};
use futures::future::FutureExt as _;
use futures::stream::{BoxStream, FuturesUnordered, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::budget::BudgetWatch;
use super::call::{self, Call, Done};
use super::pod;
use crate::watch::{self as objects, Event, Full, Selection};

/// How much is taken in before the progress is published again.
const AT_ONCE: usize = 64;

/// A drain under way. It stops when this is dropped; calls already sent are not taken back.
#[derive(Debug)]
pub struct Handle {
    /// Where it stands; changes wake whoever waits for them.
    pub progress: watch::Receiver<Progress>,
    delete_rest: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Handle {
    /// The deadline has passed: from now on what is left is deleted with its own grace, without
    /// asking budgets. Saying so again changes nothing.
    pub fn delete_rest(&self) {
        self.delete_rest
            .send_if_modified(|delete| !std::mem::replace(delete, true));
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Runs a [`Drain`] on one node.
pub struct Runner<C> {
    client: Client,
    /// Who asks pods to go.
    evicts: Client,
    clock: C,
    drain: Drain,
    pods: BoxStream<'static, Event<Pod>>,
    budgets: BTreeMap<String, BudgetWatch>,
    calls: FuturesUnordered<Call>,
    delete_rest: watch::Receiver<bool>,
    progress: watch::Sender<Progress>,
}

/// Something that the drain must hear of.
enum Happened {
    Pods(Box<Event<Pod>>),
    Call(Done),
    Budgets(String, Box<Event<PodDisruptionBudget>>),
    DeleteRest,
}

impl<C: Fn() -> Now + Send + 'static> Runner<C> {
    /// Starts to drain this node, in a task of its own on the current runtime. The node should be
    /// cordoned: a pod that appears is drained too.
    pub fn start(client: Client, node: &str, config: DrainConfig, clock: C) -> Handle {
        Self::start_as(client.clone(), client, node, config, clock)
    }

    /// The same, where another client has the right to evict: `client` then only looks.
    pub fn start_as(
        client: Client,
        evicts: Client,
        node: &str,
        config: DrainConfig,
        clock: C,
    ) -> Handle {
        let (progress, seen) = watch::channel(Progress::default());
        let (delete_rest, deletes) = watch::channel(false);
        let api: Api<Pod> = Api::all(client.clone());
        let here = Selection::fields(format!("spec.nodeName={node}"));
        let runner = Self {
            pods: objects::watch(Full(api), here, middle).boxed(),
            client,
            evicts,
            clock,
            drain: Drain::new(config),
            budgets: BTreeMap::new(),
            calls: FuturesUnordered::new(),
            delete_rest: deletes,
            progress,
        };
        Handle {
            progress: seen,
            delete_rest,
            task: tokio::spawn(runner.run()),
        }
    }

    async fn run(mut self) {
        loop {
            let wake = self.step();
            tokio::select! {
                biased;
                happened = self.happens() => self.take(happened),
                () = sleep(wake) => continue,
            }
            for _ in 1..AT_ONCE {
                match self.happens().now_or_never() {
                    Some(happened) => self.take(happened),
                    None => break,
                }
            }
        }
    }

    /// Does what the drain wants, and publishes where it stands. Answers how long nothing is due.
    fn step(&mut self) -> Option<Duration> {
        let now = (self.clock)();
        let Step {
            tries,
            look_up,
            list_budgets,
            watch_budgets,
            wake,
        } = self.drain.next(now);
        for one in tries {
            tracing::debug!(pod = %one.pod, way = ?one.way, "asking a pod to go");
            self.calls
                .push(call::try_to_remove(self.evicts.clone(), one));
        }
        for set in look_up {
            self.calls.push(call::look_up(self.client.clone(), set));
        }
        if list_budgets {
            self.calls.push(call::list_budgets(self.client.clone()));
        }
        self.watch_budgets(&watch_budgets);
        let progress = self.drain.progress();
        self.progress.send_if_modified(|published| {
            let changed = *published != progress;
            *published = progress;
            changed
        });
        wake.map(|Wake { at, .. }| at.saturating_sub(now.mono))
    }

    fn watch_budgets(&mut self, namespaces: &BTreeSet<String>) {
        self.budgets
            .retain(|namespace, _| namespaces.contains(namespace));
        for namespace in namespaces {
            if !self.budgets.contains_key(namespace) {
                self.budgets.insert(
                    namespace.clone(),
                    BudgetWatch::start(&self.client, namespace),
                );
            }
        }
    }

    /// Waits for the next thing to happen. What the watch shows comes first: no call may go out
    /// for a pod whose end has arrived here. Dropping it loses nothing.
    async fn happens(&mut self) -> Happened {
        tokio::select! {
            biased;
            Some(event) = self.pods.next() => Happened::Pods(Box::new(event)),
            Some(done) = self.calls.next() => Happened::Call(done),
            (namespace, event) = next_budget(&mut self.budgets) => Happened::Budgets(namespace, Box::new(event)),
            Ok(()) = self.delete_rest.changed() => Happened::DeleteRest,
        }
    }

    fn take(&mut self, happened: Happened) {
        let now = (self.clock)();
        match happened {
            Happened::Pods(event) => self.take_pods(*event, now),
            Happened::Call(Done::Tried(id, answer)) => self.drain.answered(id, answer, now),
            Happened::Call(Done::LookedUp(set, lookup)) => self.drain.daemonset(&set, lookup, now),
            Happened::Call(Done::Budgets(answer)) => self.drain.budgets_listed(answer, now),
            Happened::Budgets(namespace, event) => {
                let watch = self.budgets.get_mut(&namespace);
                if let Some(seen) = watch.and_then(|watch| watch.take(*event)) {
                    self.drain.budgets(&namespace, seen);
                }
            }
            Happened::DeleteRest => self.drain.delete_rest(),
        }
    }

    fn take_pods(&mut self, event: Event<Pod>, now: Now) {
        match event {
            Event::Restarted(pods) => {
                self.drain
                    .relisted(pods.into_iter().map(pod::seen).collect());
            }
            Event::Applied(pod) => self.drain.applied(pod::seen(pod)),
            Event::Deleted(pod) => {
                let gone: PodRef = pod::seen(pod).pod;
                tracing::debug!(pod = %gone, "gone");
                self.drain.deleted(&gone);
            }
            Event::Trouble(error) => self.drain.troubled(error.in_words(), now),
        }
    }
}

/// The next event of any namespace's budgets; never, if none is watched.
async fn next_budget(
    watches: &mut BTreeMap<String, BudgetWatch>,
) -> (String, Event<PodDisruptionBudget>) {
    poll_fn(|context| {
        for (namespace, watch) in &mut *watches {
            if let Poll::Ready(Some(event)) = watch.events.poll_next_unpin(context) {
                return Poll::Ready((namespace.clone(), event));
            }
        }
        Poll::Pending
    })
    .await
}

async fn sleep(wake: Option<Duration>) {
    match wake {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

/// Where in its span each pause after trouble lies. Few nodes drain at a time: there is no herd to
/// scatter, and without chance a drain under a paused clock is the same every time.
pub(super) fn middle() -> f64 {
    0.5
}

//! Runs the loop of a drain.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use dogwatch_core::drain::{
    DrainConfig, DrainProgress, EvictionStep, MachineRulesLookup, NodeDrain, PodIdentity,
};
use dogwatch_core::{Now, WakeTime};
use futures::future::FutureExt as _;
use futures::stream::{BoxStream, FuturesUnordered, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::budget::BudgetWatch;
use super::call::{self, DrainCall, DrainCallResult};
use super::pod;
use crate::watch::{self as objects, FullObjects, ObjectEvent, ObjectSelection};

/// How many events are processed before the progress is published again.
const EVENTS_PER_BATCH: usize = 64;

/// A running drain. Dropping it stops the drain; calls that were sent are not undone.
#[derive(Debug)]
pub struct DrainHandle {
    pub progress: watch::Receiver<DrainProgress>,
    delete_rest: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl DrainHandle {
    /// Called when the deadline has passed: the remaining pods are deleted with their own grace
    /// periods, without asking PodDisruptionBudgets. Further calls change nothing.
    pub fn delete_rest(&self) {
        self.delete_rest
            .send_if_modified(|delete| !std::mem::replace(delete, true));
    }
}

impl Drop for DrainHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub struct DrainRunner<C> {
    client: Client,
    /// The client that evicts and deletes pods.
    evict_client: Client,
    node: String,
    clock: C,
    drain: NodeDrain,
    pods: BoxStream<'static, ObjectEvent<Pod>>,
    budgets: BTreeMap<String, BudgetWatch>,
    calls: FuturesUnordered<DrainCall>,
    delete_rest: watch::Receiver<bool>,
    progress: watch::Sender<DrainProgress>,
}

/// An event that the drain has to process.
enum DrainEvent {
    Pods(Box<ObjectEvent<Pod>>),
    Call(DrainCallResult),
    Budgets(String, Box<ObjectEvent<PodDisruptionBudget>>),
    DeleteRest,
}

impl<C: Fn() -> Now + Send + 'static> DrainRunner<C> {
    /// Starts to drain this node in a task on the current runtime. The node should be cordoned: a
    /// pod that appears later is drained too.
    pub fn start_drain(client: Client, node: &str, config: DrainConfig, clock: C) -> DrainHandle {
        Self::start_drain_as(client.clone(), client, node, config, clock)
    }

    /// Like [`Self::start_drain`], but `client` only reads and another client evicts.
    pub fn start_drain_as(
        client: Client,
        evicts: Client,
        node: &str,
        config: DrainConfig,
        clock: C,
    ) -> DrainHandle {
        let (progress, seen) = watch::channel(DrainProgress::default());
        let (delete_rest, deletes) = watch::channel(false);
        let api: Api<Pod> = Api::all(client.clone());
        let here = ObjectSelection::by_fields(format!("spec.nodeName={node}"));
        let runner = Self {
            pods: objects::list_and_watch(FullObjects(api), here, fixed_jitter).boxed(),
            client,
            evict_client: evicts,
            node: node.to_owned(),
            clock,
            drain: NodeDrain::new(config),
            budgets: BTreeMap::new(),
            calls: FuturesUnordered::new(),
            delete_rest: deletes,
            progress,
        };
        DrainHandle {
            progress: seen,
            delete_rest,
            task: tokio::spawn(runner.run_loop()),
        }
    }

    async fn run_loop(mut self) {
        loop {
            let wake = self.perform_step();
            tokio::select! {
                biased;
                happened = self.next_event() => self.apply_event(happened),
                () = sleep_for(wake) => continue,
            }
            for _ in 1..EVENTS_PER_BATCH {
                match self.next_event().now_or_never() {
                    Some(happened) => self.apply_event(happened),
                    None => break,
                }
            }
        }
    }

    /// Sends the calls that the drain asks for, and publishes the progress. Returns the time until
    /// the next step is due.
    fn perform_step(&mut self) -> Option<Duration> {
        let now = (self.clock)();
        let mut step = self.drain.next_step(now);
        let wake = step.wake.take();
        self.ensure_budget_watches(&step.watch_budgets);
        self.start_calls(step);
        let progress = self.drain.current_progress();
        self.progress.send_if_modified(|published| {
            let changed = *published != progress;
            *published = progress;
            changed
        });
        wake.map(|WakeTime { at, .. }| at.saturating_sub(now.mono))
    }

    fn start_calls(&mut self, step: EvictionStep) {
        let client = || self.client.clone();
        for one in step.tries {
            tracing::debug!(pod = %one.pod, way = ?one.removal_method, "asking a pod to go");
            self.calls
                .push(call::removal_call(self.evict_client.clone(), one));
        }
        for set in step.look_up {
            self.calls.push(call::lookup_call(client(), set));
        }
        for namespace in step.look_up_namespaces {
            self.calls.push(call::namespace_call(client(), namespace));
        }
        if step.look_up_machine_rules {
            let node = self.node.clone();
            self.calls.push(call::machine_rules_call(client(), node));
        }
        for set in step.look_up_deployments {
            self.calls.push(call::deployment_call(client(), set));
        }
        for restart in step.restarts {
            let namespace = &restart.replica_set.namespace;
            tracing::info!(
                deployment = format!("{namespace}/{}", restart.deployment),
                "restarts a Deployment by rollout, before its pod goes"
            );
            self.calls.push(call::restart_call(client(), restart));
        }
        if step.list_budgets {
            self.calls.push(call::budget_list_call(client()));
        }
    }

    fn ensure_budget_watches(&mut self, namespaces: &BTreeSet<String>) {
        self.budgets
            .retain(|namespace, _| namespaces.contains(namespace));
        for namespace in namespaces {
            if !self.budgets.contains_key(namespace) {
                self.budgets.insert(
                    namespace.clone(),
                    BudgetWatch::start_watch(&self.client, namespace),
                );
            }
        }
    }

    /// Waits for the next event. Events of the pod watch come first: no call may be sent for a pod
    /// whose deletion has arrived here. Cancel-safe.
    async fn next_event(&mut self) -> DrainEvent {
        tokio::select! {
            biased;
            Some(event) = self.pods.next() => DrainEvent::Pods(Box::new(event)),
            Some(done) = self.calls.next() => DrainEvent::Call(done),
            (namespace, event) = next_budget_event(&mut self.budgets) => DrainEvent::Budgets(namespace, Box::new(event)),
            Ok(()) = self.delete_rest.changed() => DrainEvent::DeleteRest,
        }
    }

    fn apply_event(&mut self, happened: DrainEvent) {
        let now = (self.clock)();
        match happened {
            DrainEvent::Pods(event) => self.apply_pod_event(*event, now),
            DrainEvent::Call(DrainCallResult::Tried(id, answer)) => {
                self.drain.apply_eviction_answer(id, answer, now);
            }
            DrainEvent::Call(DrainCallResult::LookedUp(set, lookup)) => {
                self.drain.apply_daemonset_lookup(&set, lookup, now);
            }
            DrainEvent::Call(DrainCallResult::Namespace(name, labels)) => {
                self.drain.apply_namespace_labels(&name, labels, now);
            }
            DrainEvent::Call(DrainCallResult::MachineRules(lookup)) => {
                if let MachineRulesLookup::Elsewhere { why } = &lookup {
                    tracing::info!(node = self.node, why, "honours no MachineDrainRules");
                }
                self.drain.apply_machine_rules(lookup, now);
            }
            DrainEvent::Call(DrainCallResult::Deployment(set, lookup)) => {
                self.drain.apply_deployment_lookup(&set, lookup, now);
            }
            DrainEvent::Call(DrainCallResult::Restarted(set, answer)) => {
                self.drain.apply_restart_answer(&set, answer, now);
            }
            DrainEvent::Call(DrainCallResult::Budgets(answer)) => {
                self.drain.apply_budget_list(answer, now);
            }
            DrainEvent::Budgets(namespace, event) => {
                let watch = self.budgets.get_mut(&namespace);
                if let Some(seen) = watch.and_then(|watch| watch.apply_event(*event)) {
                    self.drain.apply_namespace_budgets(&namespace, seen);
                }
            }
            DrainEvent::DeleteRest => self.drain.delete_remaining_pods(),
        }
    }

    fn apply_pod_event(&mut self, event: ObjectEvent<Pod>, now: Now) {
        match event {
            ObjectEvent::Restarted(pods) => {
                self.drain
                    .apply_pod_list(pods.into_iter().map(pod::observed_pod).collect());
            }
            ObjectEvent::Applied(pod) => self.drain.apply_pod(pod::observed_pod(pod)),
            ObjectEvent::Deleted(pod) => {
                let gone: PodIdentity = pod::observed_pod(pod).pod;
                tracing::debug!(pod = %gone, "gone");
                self.drain.apply_pod_deletion(&gone);
            }
            ObjectEvent::Failed(error) => self.drain.record_watch_error(error.error_chain(), now),
        }
    }
}

/// The next event of the PodDisruptionBudgets of any namespace. Pending for ever if none is
/// watched.
async fn next_budget_event(
    watches: &mut BTreeMap<String, BudgetWatch>,
) -> (String, ObjectEvent<PodDisruptionBudget>) {
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

async fn sleep_for(wake: Option<Duration>) {
    match wake {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

/// Where each retry pause lies within its range. Few nodes drain at the same time, so their retries
/// need no jitter, and without it a drain under a paused clock is reproducible.
pub(super) fn fixed_jitter() -> f64 {
    0.5
}

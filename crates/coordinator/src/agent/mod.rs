//! Runs the coordinator's loop: observe → decide → perform the first batch of actions → report →
//! sleep until the wake-up time or a change.
//!
//! **May touch:** the API server through [`dogwatch_k8s`], the host through [`HostOps`].
//! **Promises:** it acts only on [`dogwatch_core::reboot::decide`]; killed at any moment, its next
//! run continues from the record on the Node; after it has started the reboot command, it ends only
//! when it is told to stop.

mod actions;
mod decision_sink;
mod drain_observer;
pub mod facts;
mod host_ops;
mod node_watch;
mod observers;
mod policy_sender;
mod releases;
mod reporting;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dogwatch_core::decision::{DecisionCause, DecisionEvent};
use dogwatch_core::lock::HolderId;
use dogwatch_core::name::{GroupName, NodeName, RunId};
use dogwatch_core::reboot::{
    self, RebootCommandState, RebootConfig, RebootDecision, RebootReason, RebootSnapshot,
};
use dogwatch_k8s::lock::LockClient;
use dogwatch_k8s::node::EventWriter;
use dogwatch_k8s::policy;
use dogwatch_runtime::jitter;
use futures::StreamExt as _;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use self::actions::{ACTING_ERROR_KEY, ActionOutcome};
pub use self::decision_sink::DecisionSink;
use self::facts::{ObservedFact, initial_snapshot, jitter_seed_of};
pub use self::host_ops::{HostOps, RebootEnd, RebootNotStarted};
use self::node_watch::watch_node;
use self::observers::{ObserverContext, ObserverSet, ObserverTask};
use self::policy_sender::PolicySender;
use crate::clock::ProcessClock;
use crate::health::LoopHeartbeat;
pub use dogwatch_prometheus::{GateChecker, NoGateChecker};

/// First and longest pause after a failed action.
const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_RETRY_PAUSE: Duration = Duration::from_secs(30);

pub struct CoordinatorSetup {
    pub client: dogwatch_k8s::Client,
    /// The API client with the rights to write this Node and to evict its pods.
    pub node_client: dogwatch_k8s::Client,
    pub node: NodeName,
    /// The namespace of the Leases.
    pub namespace: String,
    /// From the flags.
    pub config: RebootConfig,
    /// This run's id: `coordinator/…`, never used before.
    pub run: RunId,
    pub clock: ProcessClock,
    pub host_ops: Box<dyn HostOps>,
    /// Checks the gates that need neither host nor API server.
    pub gatekeeper: Arc<dyn GateChecker>,
    /// Receives each decision, for metrics or a timeline.
    pub decision_sink: Arc<dyn DecisionSink>,
    pub heart: LoopHeartbeat,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CoordinatorExit {
    /// It was told to stop.
    Stopped,
    /// A newer run of the same node's coordinator took over.
    Superseded {
        /// Id of the newer run.
        by: String,
    },
}

pub struct CoordinatorAgent {
    client: dogwatch_k8s::Client,
    node_client: dogwatch_k8s::Client,
    name: String,
    config: RebootConfig,
    clock: ProcessClock,
    host_ops: Box<dyn HostOps>,
    locks: LockClient,
    observer_context: ObserverContext,
    observers: ObserverSet,
    events: EventWriter,
    facts: UnboundedSender<ObservedFact>,
    incoming: UnboundedReceiver<ObservedFact>,
    seen: RebootSnapshot,
    last_cause: Option<DecisionCause<RebootReason>>,
    pending_events: Vec<DecisionEvent>,
    report_at: Option<Duration>,
    report_pause: Duration,
    decision_sink: Arc<dyn DecisionSink>,
    heart: LoopHeartbeat,
    draws: u64,
}

impl CoordinatorAgent {
    pub fn new(mut setup: CoordinatorSetup) -> Self {
        let holder = HolderId::for_node(&setup.node);
        let (facts, incoming) = unbounded_channel();
        let locks = LockClient::new(setup.client.clone(), &setup.namespace, holder.clone());
        let eyes = ObserverContext {
            locks: locks.clone(),
            client: setup.client.clone(),
            node_client: setup.node_client.clone(),
            node: setup.node.to_string(),
            clock: setup.clock.clone(),
            facts: facts.clone(),
            policies: PolicySender::new(facts.clone()),
            jitter_seed: jitter_seed_of(&setup.run),
            gatekeeper: setup.gatekeeper,
        };
        let seen = initial_snapshot(&setup.run, holder, setup.host_ops.read_boot_id());
        Self {
            events: EventWriter::new(setup.client.clone(), setup.node.as_str()),
            name: setup.node.to_string(),
            client: setup.client,
            node_client: setup.node_client,
            config: setup.config,
            clock: setup.clock,
            host_ops: setup.host_ops,
            locks,
            observer_context: eyes,
            observers: ObserverSet::default(),
            facts,
            incoming,
            seen,
            last_cause: None,
            pending_events: Vec::new(),
            report_at: None,
            report_pause: FIRST_RETRY_PAUSE,
            decision_sink: setup.decision_sink,
            heart: setup.heart,
            draws: 0,
        }
    }

    /// Runs until `stop` completes or a newer run takes over.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> CoordinatorExit {
        let mut stop = std::pin::pin!(stop);
        let watching = watch_node(self.client.clone(), self.name.clone(), self.facts.clone());
        let _watching = ObserverTask::spawn(watching);
        let policies = watch_policies(self.observer_context.clone());
        let _watching_policies = ObserverTask::spawn(policies);
        let _listening = ObserverTask::spawn(forward_triggers(
            self.host_ops.watch_triggers(),
            self.facts.clone(),
        ));
        let _counting = ObserverTask::spawn(forward_soft_reboots(
            self.host_ops.read_soft_reboots(),
            self.facts.clone(),
        ));
        let exit = tokio::select! {
            biased;
            () = &mut stop => CoordinatorExit::Stopped,
            exit = self.run_loop() => exit,
        };
        if matches!(exit, CoordinatorExit::Superseded { .. })
            && self.seen.run.command != RebootCommandState::None
        {
            // If the process ended now, it would be restarted; waiting does not disturb the newer
            // run.
            stop.await;
            return CoordinatorExit::Stopped;
        }
        exit
    }

    async fn run_loop(&mut self) -> CoordinatorExit {
        let mut pause = FIRST_RETRY_PAUSE;
        loop {
            self.heart.mark_working("deciding and acting");
            self.apply_pending_facts();
            let decision = self.decide();
            let reason = decision.cause.reason;
            self.seen.run.record_decision(reason, self.clock.now());
            self.queue_report(&decision);
            self.observers.ensure_observers(
                &decision.observe,
                &self.observer_context,
                &mut self.seen,
            );
            match self.perform_decision(&decision).await {
                LoopStep::Again => pause = FIRST_RETRY_PAUSE,
                LoopStep::Wait => {
                    pause = FIRST_RETRY_PAUSE;
                    self.wait_for_change(&decision).await;
                }
                LoopStep::Pause => {
                    self.pause_after_failure(pause).await;
                    pause = (pause * 2).min(LONGEST_RETRY_PAUSE);
                }
                LoopStep::Exit(exit) => return exit,
            }
        }
    }

    /// Performs the decision's actions; if there are none, writes the report.
    async fn perform_decision(&mut self, decision: &RebootDecision) -> LoopStep {
        for action in &decision.actions {
            match self.perform_action(action).await {
                ActionOutcome::Changed => {
                    self.seen.observation_errors.remove(ACTING_ERROR_KEY);
                }
                ActionOutcome::Failed => return LoopStep::Pause,
                ActionOutcome::Refused => {
                    self.report_refusal().await;
                    return LoopStep::Pause;
                }
                ActionOutcome::Exit(exit) => return LoopStep::Exit(exit),
            }
        }
        if !decision.actions.is_empty() {
            return LoopStep::Again;
        }
        if !self.is_report_due(decision) {
            return LoopStep::Wait;
        }
        match self.write_report(decision).await {
            Ok(()) => {
                self.report_pause = FIRST_RETRY_PAUSE;
                LoopStep::Again
            }
            Err(error) => {
                tracing::warn!(error = error.error_chain(), "failed to report");
                // A failed report must not delay actions.
                self.report_at = Some(self.clock.now().mono + self.report_pause);
                self.report_pause = (self.report_pause * 2).min(LONGEST_RETRY_PAUSE);
                LoopStep::Wait
            }
        }
    }

    fn decide(&self) -> RebootDecision {
        reboot::decide(&self.seen, &self.config, self.clock.now())
    }

    fn publish_decision(&self, decision: &RebootDecision) {
        self.decision_sink.on_decision(&self.seen, decision);
    }

    fn lock_group(&self) -> GroupName {
        reboot::lock_group(&self.seen).unwrap_or_else(GroupName::default_group)
    }

    fn apply_pending_facts(&mut self) {
        while let Ok(fact) = self.incoming.try_recv() {
            facts::apply_fact(&mut self.seen, fact, self.clock.now());
        }
        self.redraw_jitter();
    }

    /// Draws a new number for each wait for the lock.
    fn redraw_jitter(&mut self) {
        if self.seen.run.waiting_since.is_none() {
            self.draws += 1;
            self.seen.run.jitter =
                jitter::nth_fraction(self.observer_context.jitter_seed, self.draws);
        }
    }

    /// Sleeps until a fact arrives or the decision's wake-up time.
    async fn wait_for_change(&mut self, decision: &RebootDecision) {
        let clock = self.clock.clone();
        let at_most = decision
            .wake
            .as_ref()
            .map(|wake| wake.at.saturating_sub(clock.now().mono));
        self.heart.mark_sleeping(at_most);
        let wake = decision.wake.as_ref().map(|wake| wake.at);
        let until = [wake, self.report_at].into_iter().flatten().min();
        let wake = clock.wake_at(until);
        tokio::select! {
            biased;
            Some(fact) = self.incoming.recv() => facts::apply_fact(&mut self.seen, fact, self.clock.now()),
            () = wake => {}
        }
    }

    /// Pauses after a failure: facts are applied, but nothing is tried before the pause is over.
    async fn pause_after_failure(&mut self, pause: Duration) {
        self.heart.mark_sleeping(Some(pause));
        let until = self.clock.now().mono + pause;
        let over = self.clock.clone();
        let mut over = std::pin::pin!(over.sleep_until(until));
        loop {
            tokio::select! {
                biased;
                () = &mut over => return,
                Some(fact) = self.incoming.recv() => facts::apply_fact(&mut self.seen, fact, self.clock.now()),
            }
        }
    }
}

enum LoopStep {
    /// The snapshot changed: decide again at once.
    Again,
    Wait,
    Pause,
    Exit(CoordinatorExit),
}

/// Runs as a watch only if the kind is installed.
async fn watch_policies(eyes: ObserverContext) {
    let draws = AtomicU64::new(0);
    let seed = eyes.jitter_seed;
    let jitter = move || jitter::nth_fraction(seed, draws.fetch_add(1, Ordering::Relaxed));
    let mut seen = std::pin::pin!(policy::watch_policies(eyes.client.clone(), jitter));
    while let Some(seen) = seen.next().await {
        eyes.policies.send_watched(seen);
    }
}

async fn forward_triggers(
    mut triggers: futures::stream::BoxStream<'static, Vec<reboot::ObservedTrigger>>,
    facts: UnboundedSender<ObservedFact>,
) {
    while let Some(triggers) = triggers.next().await {
        if facts.send(ObservedFact::Triggers(triggers)).is_err() {
            return;
        }
    }
}

async fn forward_soft_reboots(
    count: futures::future::BoxFuture<'static, Option<u32>>,
    facts: UnboundedSender<ObservedFact>,
) {
    if let Some(count) = count.await {
        // The receiver is gone only when the agent has ended.
        let _ = facts.send(ObservedFact::SoftReboots(count));
    }
}

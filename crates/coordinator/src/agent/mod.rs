//! The coordinator's loop: observe → decide → do the first batch → say it → sleep until the wake-up
//! or a change.
//!
//! **May touch:** the API server through [`dogwatch_k8s`], the host through [`Hands`].
//! **Promises:** it acts only on [`dogwatch_core::reboot::decide`]; killed at any moment it finds
//! its way from the record on the Node; it never ends after the reboot command was started, unless
//! it is told to.

mod act;
pub mod facts;
mod hands;
mod looks;
mod say;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dogwatch_core::decision::{Because, Event};
use dogwatch_core::lock::HolderId;
use dogwatch_core::name::{GroupName, NodeName, RunId};
use dogwatch_core::reboot::{self, CommandSeen, Config, Decision, LastReboot, NodeFact, Seen};
use dogwatch_k8s::lock::LockClient;
use dogwatch_k8s::node::{self, EventWriter};
use dogwatch_k8s::policy;
use dogwatch_k8s::watch::Event as WatchEvent;
use dogwatch_process::jitter;
use futures::StreamExt as _;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use self::act::{ACTING, Done};
use self::facts::{Fact, first_sight, seed_of};
pub use self::hands::{Hands, NotStarted, RebootEnd};
use self::looks::{Eyes, Observers, Running};
use crate::clock::Clock;
use crate::health::Heart;
pub use dogwatch_prometheus::{CannotAsk, Gatekeeper};

/// The pause after a failed action: at first, and at the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What one coordinator is made from.
pub struct Setup {
    /// The API server.
    pub client: dogwatch_k8s::Client,
    /// The same, asked by whoever may write this Node and evict its pods.
    pub node_client: dogwatch_k8s::Client,
    /// The node it serves.
    pub node: NodeName,
    /// Where the Leases are.
    pub namespace: String,
    /// What it was told.
    pub config: Config,
    /// This run's id: `coordinator/…`, never used before.
    pub run: RunId,
    /// The time.
    pub clock: Clock,
    /// The host.
    pub hands: Box<dyn Hands>,
    /// Asks gates that are neither host nor API server.
    pub gatekeeper: Arc<dyn Gatekeeper>,
    /// Told what happens: metrics, a timeline.
    pub watcher: Arc<dyn Watcher>,
    /// Shows that the loop is not stuck.
    pub heart: Heart,
}

/// Who is told what the loop does.
pub trait Watcher: Send + Sync {
    /// This was decided, from this.
    fn decided(&self, seen: &Seen, decision: &Decision);

    /// A call to the API server failed.
    fn api_failed(&self, _error: &dogwatch_k8s::Error) {}

    /// A planned reboot has ended.
    fn finished(&self, _last: &LastReboot) {}
}

/// Why the loop ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// It was told to stop.
    Stopped,
    /// A newer run of the same node's coordinator took over.
    Superseded {
        /// Which.
        by: String,
    },
}

/// One node's coordinator.
pub struct Agent {
    client: dogwatch_k8s::Client,
    node_client: dogwatch_k8s::Client,
    name: String,
    config: Config,
    clock: Clock,
    hands: Box<dyn Hands>,
    locks: LockClient,
    eyes: Eyes,
    observers: Observers,
    events: EventWriter,
    facts: UnboundedSender<Fact>,
    incoming: UnboundedReceiver<Fact>,
    seen: Seen,
    said: Option<Because>,
    unsaid: Vec<Event>,
    say_at: Option<Duration>,
    say_pause: Duration,
    watcher: Arc<dyn Watcher>,
    heart: Heart,
    draws: u64,
}

impl Agent {
    /// A coordinator that has seen nothing yet.
    pub fn new(mut setup: Setup) -> Self {
        let holder = HolderId::node(&setup.node);
        let (facts, incoming) = unbounded_channel();
        let locks = LockClient::new(setup.client.clone(), &setup.namespace, holder.clone());
        let eyes = Eyes {
            locks: locks.clone(),
            client: setup.client.clone(),
            node_client: setup.node_client.clone(),
            node: setup.node.to_string(),
            clock: setup.clock.clone(),
            facts: facts.clone(),
            jitter_seed: seed_of(&setup.run),
            gatekeeper: setup.gatekeeper,
        };
        let seen = first_sight(&setup.run, holder, setup.hands.boot_id());
        Self {
            events: EventWriter::new(setup.client.clone(), setup.node.as_str()),
            name: setup.node.to_string(),
            client: setup.client,
            node_client: setup.node_client,
            config: setup.config,
            clock: setup.clock,
            hands: setup.hands,
            locks,
            eyes,
            observers: Observers::default(),
            facts,
            incoming,
            seen,
            said: None,
            unsaid: Vec::new(),
            say_at: None,
            say_pause: FIRST_PAUSE,
            watcher: setup.watcher,
            heart: setup.heart,
            draws: 0,
        }
    }

    /// Runs until it is told to stop, or a newer run takes over.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> Exit {
        let mut stop = std::pin::pin!(stop);
        let watching = watch_node(self.client.clone(), self.name.clone(), self.facts.clone());
        let _watching = Running::spawn(watching);
        let policies = watch_policies(self.eyes.clone());
        let _watching_policies = Running::spawn(policies);
        let _listening = Running::spawn(listen(self.hands.triggers(), self.facts.clone()));
        let exit = tokio::select! {
            biased;
            () = &mut stop => Exit::Stopped,
            exit = self.forever() => exit,
        };
        if matches!(exit, Exit::Superseded { .. }) && self.seen.run.command != CommandSeen::None {
            // Ending would start us again; the newer run is not disturbed by waiting.
            stop.await;
            return Exit::Stopped;
        }
        exit
    }

    async fn forever(&mut self) -> Exit {
        let mut pause = FIRST_PAUSE;
        loop {
            self.heart.working("deciding and acting");
            self.take_all();
            let decision = self.decide();
            let reason = decision.because.reason;
            self.seen.run.decided(reason, self.clock.now());
            self.announce(&decision);
            self.observers
                .ensure(&decision.looks, &self.eyes, &mut self.seen);
            match self.step(&decision).await {
                Step::Again => pause = FIRST_PAUSE,
                Step::Wait => {
                    pause = FIRST_PAUSE;
                    self.wait(&decision).await;
                }
                Step::Pause => {
                    self.pause(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Step::Exit(exit) => return exit,
            }
        }
    }

    /// Performs the decision's actions; with nothing to do, says what is to be said.
    async fn step(&mut self, decision: &Decision) -> Step {
        for action in &decision.actions {
            match self.perform(action).await {
                Done::Changed => {
                    self.seen.trouble.remove(ACTING);
                }
                Done::Failed => return Step::Pause,
                Done::Refused => {
                    self.report_refusal().await;
                    return Step::Pause;
                }
                Done::Exit(exit) => return Step::Exit(exit),
            }
        }
        if !decision.actions.is_empty() {
            return Step::Again;
        }
        if !self.time_to_say(decision) {
            return Step::Wait;
        }
        match self.report(decision).await {
            Ok(()) => {
                self.say_pause = FIRST_PAUSE;
                Step::Again
            }
            Err(error) => {
                tracing::warn!(error = error.in_words(), "failed to report");
                // What cannot be said must not hold up what can be done.
                self.say_at = Some(self.clock.now().mono + self.say_pause);
                self.say_pause = (self.say_pause * 2).min(LONGEST_PAUSE);
                Step::Wait
            }
        }
    }

    fn decide(&self) -> Decision {
        reboot::decide(&self.seen, &self.config, self.clock.now())
    }

    fn show(&self, decision: &Decision) {
        self.watcher.decided(&self.seen, decision);
    }

    fn group(&self) -> GroupName {
        reboot::lock_group(&self.seen).unwrap_or_else(GroupName::default_group)
    }

    fn take_all(&mut self) {
        while let Ok(fact) = self.incoming.try_recv() {
            facts::apply(&mut self.seen, fact, self.clock.now());
        }
        self.draw();
    }

    /// A new number for each wait for the lock.
    fn draw(&mut self) {
        if self.seen.run.waiting_since.is_none() {
            self.draws += 1;
            self.seen.run.jitter = jitter::nth(self.eyes.jitter_seed, self.draws);
        }
    }

    /// Sleeps until something changes or the decision's wake-up.
    async fn wait(&mut self, decision: &Decision) {
        let clock = self.clock.clone();
        let at_most = decision
            .wake
            .as_ref()
            .map(|wake| wake.at.saturating_sub(clock.now().mono));
        self.heart.sleeping(at_most);
        let wake = decision.wake.as_ref().map(|wake| wake.at);
        let until = [wake, self.say_at].into_iter().flatten().min();
        let wake = clock.wake_at(until);
        tokio::select! {
            biased;
            Some(fact) = self.incoming.recv() => facts::apply(&mut self.seen, fact, self.clock.now()),
            () = wake => {}
        }
    }

    /// After a failure: facts are taken in, but nothing is tried before the pause is over.
    async fn pause(&mut self, pause: Duration) {
        self.heart.sleeping(Some(pause));
        let until = self.clock.now().mono + pause;
        let over = self.clock.clone();
        let mut over = std::pin::pin!(over.sleep_until(until));
        loop {
            tokio::select! {
                biased;
                () = &mut over => return,
                Some(fact) = self.incoming.recv() => facts::apply(&mut self.seen, fact, self.clock.now()),
            }
        }
    }
}

/// What follows a batch of actions.
enum Step {
    /// Decide again at once: something is different.
    Again,
    /// Nothing to do.
    Wait,
    /// Something failed.
    Pause,
    /// The loop ends.
    Exit(Exit),
}

/// The one watch of an idle coordinator. It ends when nobody listens any more.
async fn watch_node(client: dogwatch_k8s::Client, name: String, facts: UnboundedSender<Fact>) {
    let mut events = std::pin::pin!(node::watch_node(client, &name));
    while let Some(event) = events.next().await {
        let fact = match event {
            WatchEvent::Restarted(nodes) => match nodes.first() {
                Some(node) => there(node),
                None => Some(NodeFact::Gone),
            },
            WatchEvent::Applied(node) => there(&node),
            WatchEvent::Deleted(_) => Some(NodeFact::Gone),
            WatchEvent::Trouble(error) => {
                tracing::warn!(
                    error = error.in_words(),
                    "cannot watch the Node; trying again"
                );
                None
            }
        };
        if let Some(node) = fact
            && facts.send(Fact::Node(node)).is_err()
        {
            return;
        }
    }
}

/// The other standing watch, where the kind is installed.
async fn watch_policies(eyes: Eyes) {
    let draws = AtomicU64::new(0);
    let seed = eyes.jitter_seed;
    let jitter = move || jitter::nth(seed, draws.fetch_add(1, Ordering::Relaxed));
    let mut seen = std::pin::pin!(policy::watch_policies(eyes.client.clone(), jitter));
    while let Some(seen) = seen.next().await {
        let trouble = Fact::Trouble("watching the RebootPolicies", seen.trouble);
        let told = [trouble, Fact::Policies(seen.policies)];
        if told.into_iter().any(|fact| eyes.facts.send(fact).is_err()) {
            return;
        }
    }
}

fn there(node: &node::Node) -> Option<NodeFact> {
    match node::node_seen(node) {
        Ok(seen) => Some(NodeFact::There(Box::new(seen))),
        Err(error) => {
            tracing::warn!(%error, "the API server shows a Node that cannot be read");
            None
        }
    }
}

async fn listen(
    mut triggers: futures::stream::BoxStream<'static, Vec<reboot::TriggerSeen>>,
    facts: UnboundedSender<Fact>,
) {
    while let Some(triggers) = triggers.next().await {
        if facts.send(Fact::Triggers(triggers)).is_err() {
            return;
        }
    }
}

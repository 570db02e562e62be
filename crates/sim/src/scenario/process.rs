//! A controller's pod: started again when it crashed, and called by hosts that want the lock.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dogwatch_controller::lock::engine::Engine;
use dogwatch_controller::lock::service::LockService as _;
use dogwatch_controller::run::Component;
use dogwatch_core::reboot::Config;
use tokio::sync::mpsc;

use super::caller::{Answers, Asked, CallWish};
use super::minds::Minds;
use crate::api::ApiServer;
use crate::clock::TokioClock;
use crate::host::Prometheus;
use crate::metal::{Controller, Replica, Way};
use crate::world::Actor;

/// How long the kubelet takes to start a crashed container again.
const RESTART: Duration = Duration::from_secs(1);
/// How long is waited before it is looked again whether a process that was told to stop has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What a controller is made from.
#[derive(Clone)]
pub(super) struct ProcessConfig {
    pub(super) server: ApiServer,
    pub(super) clock: Arc<TokioClock>,
    /// As a script names it.
    pub(super) name: String,
    pub(super) components: BTreeSet<Component>,
    pub(super) flags: Config,
    /// The way to the BMCs of the script's hosts, if it has any.
    pub(super) way: Option<Way>,
    pub(super) prometheus: Prometheus,
    pub(super) minds: Minds,
}

enum Command {
    Kill,
    Hold,
    Start,
    Stop,
}

/// One controller, whatever runs of it there are.
pub(super) struct Process {
    running: Running,
    commands: mpsc::UnboundedSender<Command>,
    _actor: Actor,
}

/// The run that there is now, if any.
type Running = Arc<Mutex<Option<Run>>>;

struct Run {
    user: String,
    controller: Controller,
    /// Calls of hosts: they break off with the process.
    calls: Vec<(String, Actor)>,
}

impl Process {
    /// Starts it.
    pub(super) fn start(config: ProcessConfig) -> Self {
        let (commands, inbox) = mpsc::unbounded_channel();
        let running = Running::default();
        let pod = Pod {
            config,
            running: Arc::clone(&running),
            runs: 0,
        };
        Self {
            running,
            commands,
            _actor: Actor::spawn(pod.live(inbox)),
        }
    }

    /// Kills it; it is started again after a second.
    pub(super) fn kill(&self) {
        self.tell(Command::Kill);
    }

    /// The same, for whoever does not keep it.
    pub(super) fn killer(&self) -> impl Fn() + Send + Sync + use<> {
        let commands = self.commands.clone();
        move || {
            // As in `tell`.
            let _ = commands.send(Command::Kill);
        }
    }

    /// Kills it; it stays away until [`Self::start_again`].
    pub(super) fn hold(&self) {
        self.tell(Command::Hold);
    }

    /// Tells it to finish, and to stay away until [`Self::start_again`].
    pub(super) fn stop(&self) {
        self.tell(Command::Stop);
    }

    /// Starts one that was held or stopped.
    pub(super) fn start_again(&self) {
        self.tell(Command::Start);
    }

    /// Under which name its run asks the API server.
    pub(super) fn user(&self) -> Option<String> {
        lock(&self.running).as_ref().map(|run| run.user.clone())
    }

    /// A host asks it. Whether there was somebody to ask.
    pub(super) fn ask(&self, asked: Asked, answers: &Answers, minds: &Minds) -> bool {
        let mut running = lock(&self.running);
        let Some(run) = running.as_mut() else {
            return false;
        };
        let Some(engine) = run.controller.lock.clone() else {
            return false;
        };
        let name = asked.client.clone();
        answers.forget(&name);
        let call = Actor::spawn(call(engine, asked, answers.clone(), minds.clone()));
        run.calls.retain(|(_, call)| call.is_running());
        run.calls.push((name, call));
        true
    }

    /// A host goes away before its answer. Whether it was waiting here.
    pub(super) fn hang_up(&self, client: &str) -> bool {
        let mut running = lock(&self.running);
        let calls = running.as_mut().map(|run| &mut run.calls);
        let Some(calls) = calls else { return false };
        let waits = |(name, call): &(String, Actor)| name == client && call.is_running();
        let before = calls.len();
        calls.retain(|call| !waits(call));
        calls.len() < before
    }

    fn tell(&self, command: Command) {
        // The receiver is gone only when the whole world stops.
        let _ = self.commands.send(command);
    }
}

async fn call(engine: Engine, asked: Asked, answers: Answers, minds: Minds) {
    let told = match asked.wish {
        CallWish::Lock(request) => engine.lock(request).await.into(),
        CallWish::Unlock(client) => engine.unlock(client).await.into(),
    };
    answers.told(&asked.client, &told, &minds);
}

struct Pod {
    config: ProcessConfig,
    running: Running,
    runs: u32,
}

impl Pod {
    async fn live(mut self, mut inbox: mpsc::UnboundedReceiver<Command>) {
        self.begin();
        while let Some(command) = inbox.recv().await {
            match command {
                Command::Kill => {
                    self.die();
                    tokio::time::sleep(RESTART).await;
                    self.begin();
                }
                Command::Hold => self.die(),
                Command::Stop => self.finish().await,
                Command::Start => self.begin(),
            }
        }
    }

    fn begin(&mut self) {
        if lock(&self.running).is_some() {
            return;
        }
        self.runs += 1;
        let process = format!("{}-{}", self.config.name, self.runs);
        let controller = Controller::whole(Replica {
            server: &self.config.server,
            clock: &self.config.clock,
            process: &process,
            components: self.config.components.clone(),
            flags: self.config.flags.clone(),
            way: self.config.way.clone(),
            gatekeeper: Arc::new(self.config.prometheus.clone()),
        });
        *lock(&self.running) = Some(Run {
            user: Controller::user(&process),
            controller,
            calls: Vec::new(),
        });
    }

    /// Nothing of it is heard any more: what its clean-up has started elsewhere is cut off.
    fn die(&self) {
        let Some(run) = lock(&self.running).take() else {
            return;
        };
        for (client, call) in &run.calls {
            if call.is_running() {
                let text = format!("its connection to {} breaks off", self.config.name);
                self.config.minds.note(client, text);
            }
        }
        self.config.server.partition(&run.user, true);
    }

    async fn finish(&self) {
        let is_running = || {
            let running = lock(&self.running);
            let run = running.as_ref();
            run.is_some_and(|run| run.controller.is_running())
        };
        if let Some(run) = lock(&self.running).as_ref() {
            run.controller.stop();
        }
        while is_running() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        let text = "has ended".to_owned();
        self.config.minds.note(&self.config.name, text);
        lock(&self.running).take();
    }
}

/// Nothing panics while it holds one of these.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! A controller's pod: it restarts after a crash, and answers lock calls of hosts.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dogwatch_controller::lock::engine::LockEngine;
use dogwatch_controller::lock::service::LockService as _;
use dogwatch_controller::run::ControllerComponent;
use dogwatch_core::reboot::RebootConfig;
use dogwatch_kubesim::api::ApiServer;
use dogwatch_kubesim::clock::TokioClock;
use dogwatch_kubesim::world::ActorTask;
use tokio::sync::mpsc;

use super::decision_log::DecisionLog;
use super::lock_caller::{LockCall, LockCallAnswers, LockCallKind};
use crate::bare_metal::{BmcAccess, ControllerReplica, SimController};
use crate::host::SimPrometheus;

/// How long the kubelet waits before it restarts a crashed container.
const RESTART_DELAY: Duration = Duration::from_secs(1);
/// How often to check whether a stopped process has ended.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Clone)]
pub(super) struct ControllerProcessConfig {
    pub(super) server: ApiServer,
    pub(super) clock: Arc<TokioClock>,
    /// Its name in the script.
    pub(super) name: String,
    pub(super) components: BTreeSet<ControllerComponent>,
    pub(super) flags: RebootConfig,
    /// How to reach the BMCs of the script's hosts, if it has any.
    pub(super) bmc_access: Option<BmcAccess>,
    pub(super) prometheus: SimPrometheus,
    pub(super) decision_log: DecisionLog,
}

enum ProcessCommand {
    Kill,
    Hold,
    Start,
    Stop,
}

/// One controller, across all its runs.
pub(super) struct ControllerProcess {
    running: CurrentRun,
    commands: mpsc::UnboundedSender<ProcessCommand>,
    _actor: ActorTask,
}

/// The present run, if any.
type CurrentRun = Arc<Mutex<Option<ControllerRun>>>;

struct ControllerRun {
    user: String,
    controller: SimController,
    /// Lock calls of hosts; they break off when the process ends.
    calls: Vec<(String, ActorTask)>,
}

impl ControllerProcess {
    pub(super) fn start_process(config: ControllerProcessConfig) -> Self {
        let (commands, inbox) = mpsc::unbounded_channel();
        let running = CurrentRun::default();
        let pod = ControllerPod {
            config,
            running: Arc::clone(&running),
            runs: 0,
        };
        Self {
            running,
            commands,
            _actor: ActorTask::spawn(pod.run_pod(inbox)),
        }
    }

    /// Kills the process; it restarts after one second.
    pub(super) fn kill_process(&self) {
        self.send_command(ProcessCommand::Kill);
    }

    /// Returns a function that kills the process.
    pub(super) fn kill_function(&self) -> impl Fn() + Send + Sync + use<> {
        let commands = self.commands.clone();
        move || {
            // Ignored for the same reason as in `send_command`.
            let _ = commands.send(ProcessCommand::Kill);
        }
    }

    /// Kills the process until [`Self::restart_process`].
    pub(super) fn hold_process(&self) {
        self.send_command(ProcessCommand::Hold);
    }

    /// Asks the process to finish; it stays away until [`Self::restart_process`].
    pub(super) fn stop_process(&self) {
        self.send_command(ProcessCommand::Stop);
    }

    /// Starts a process that was held or stopped.
    pub(super) fn restart_process(&self) {
        self.send_command(ProcessCommand::Start);
    }

    pub(super) fn current_user(&self) -> Option<String> {
        lock_mutex(&self.running)
            .as_ref()
            .map(|run| run.user.clone())
    }

    /// Calls the lock for a host; returns whether a process was running.
    pub(super) fn call_lock(
        &self,
        asked: LockCall,
        answers: &LockCallAnswers,
        minds: &DecisionLog,
    ) -> bool {
        let mut running = lock_mutex(&self.running);
        let Some(run) = running.as_mut() else {
            return false;
        };
        let Some(engine) = run.controller.lock.clone() else {
            return false;
        };
        let name = asked.client.clone();
        answers.forget_answer(&name);
        let call = ActorTask::spawn(perform_call(engine, asked, answers.clone(), minds.clone()));
        run.calls.retain(|(_, call)| call.is_running());
        run.calls.push((name, call));
        true
    }

    /// Ends a host's call before its answer; returns whether the call was waiting here.
    pub(super) fn hang_up(&self, client: &str) -> bool {
        let mut running = lock_mutex(&self.running);
        let calls = running.as_mut().map(|run| &mut run.calls);
        let Some(calls) = calls else { return false };
        let waits = |(name, call): &(String, ActorTask)| name == client && call.is_running();
        let before = calls.len();
        calls.retain(|call| !waits(call));
        calls.len() < before
    }

    fn send_command(&self, command: ProcessCommand) {
        // The receiver is gone only when the whole simulation stops.
        let _ = self.commands.send(command);
    }
}

async fn perform_call(
    engine: LockEngine,
    asked: LockCall,
    answers: LockCallAnswers,
    minds: DecisionLog,
) {
    let told = match asked.kind {
        LockCallKind::Lock(request) => engine.lock_host(request).await.into(),
        LockCallKind::Unlock(client) => engine.unlock_host(client).await.into(),
    };
    answers.record_answer(&asked.client, &told, &minds);
}

struct ControllerPod {
    config: ControllerProcessConfig,
    running: CurrentRun,
    runs: u32,
}

impl ControllerPod {
    async fn run_pod(mut self, mut inbox: mpsc::UnboundedReceiver<ProcessCommand>) {
        self.start_run();
        while let Some(command) = inbox.recv().await {
            match command {
                ProcessCommand::Kill => {
                    self.kill_run();
                    tokio::time::sleep(RESTART_DELAY).await;
                    self.start_run();
                }
                ProcessCommand::Hold => self.kill_run(),
                ProcessCommand::Stop => self.stop_run().await,
                ProcessCommand::Start => self.start_run(),
            }
        }
    }

    fn start_run(&mut self) {
        if lock_mutex(&self.running).is_some() {
            return;
        }
        self.runs += 1;
        let process = format!("{}-{}", self.config.name, self.runs);
        let controller = SimController::start_replica(ControllerReplica {
            server: &self.config.server,
            clock: &self.config.clock,
            process: &process,
            components: self.config.components.clone(),
            flags: self.config.flags.clone(),
            bmc_access: self.config.bmc_access.clone(),
            gatekeeper: Arc::new(self.config.prometheus.clone()),
            planner: None,
        });
        *lock_mutex(&self.running) = Some(ControllerRun {
            user: SimController::controller_user(&process),
            controller,
            calls: Vec::new(),
        });
    }

    /// Kills the run and partitions its user, so that clean-up tasks of the killed process have no
    /// effect.
    fn kill_run(&self) {
        let Some(run) = lock_mutex(&self.running).take() else {
            return;
        };
        for (client, call) in &run.calls {
            if call.is_running() {
                let text = format!("its connection to {} breaks off", self.config.name);
                self.config.decision_log.record_note(client, text);
            }
        }
        self.config.server.set_partitioned(&run.user, true);
    }

    async fn stop_run(&self) {
        let is_running = || {
            let running = lock_mutex(&self.running);
            let run = running.as_ref();
            run.is_some_and(|run| run.controller.is_running())
        };
        if let Some(run) = lock_mutex(&self.running).as_ref() {
            run.controller.request_stop();
        }
        while is_running() {
            tokio::time::sleep(STOP_POLL_INTERVAL).await;
        }
        let text = "has ended".to_owned();
        self.config
            .decision_log
            .record_note(&self.config.name, text);
        lock_mutex(&self.running).take();
    }
}

/// Locks a mutex; no code panics while it holds one of these.
pub(super) fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

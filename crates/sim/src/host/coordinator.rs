//! The coordinator's pod on a simulated node: it starts and dies with the machine, and is restarted
//! after a crash.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dogwatch_coordinator::agent::{CoordinatorAgent, CoordinatorSetup, DecisionSink};
use dogwatch_coordinator::clock::ProcessClock;
use dogwatch_coordinator::health::LoopHeartbeat;
use dogwatch_core::name::{BootId, NodeName, RunId};
use dogwatch_core::reboot::RebootConfig;
use dogwatch_kubesim::clock::ClusterClock;
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_kubesim::world::ActorTask;
use dogwatch_kubesim::world::kubelet::MachinePower;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::disk::SimDisk;
use super::host_ops::{PowerCycle, RebootCommand, SimHostOps};
use super::prometheus::SimPrometheus;
use crate::names;

/// How long the kubelet waits before it restarts a crashed container.
const RESTART_DELAY: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub struct CoordinatorConfig {
    /// The API server's client, with this coordinator's user.
    pub client: kube::Client,
    pub node: NodeName,
    /// The namespace of the Leases.
    pub namespace: String,
    /// The coordinator's flags.
    pub config: RebootConfig,
    pub sentinels: Vec<String>,
    /// Source of the run ids.
    pub seed: SimulationSeed,
    /// The clock of this node.
    pub clock: Arc<dyn ClusterClock>,
    /// Answers queries for alerts.
    pub prometheus: SimPrometheus,
    /// Receives each decision.
    pub watcher: Arc<dyn DecisionSink>,
}

enum CoordinatorCommand {
    Kill,
    Hold,
    Start,
}

/// The coordinator of one simulated node, across all its runs.
pub struct SimCoordinator {
    pub disk: SimDisk,
    command: Arc<Mutex<RebootCommand>>,
    started: Arc<Mutex<Vec<Instant>>>,
    commands: mpsc::UnboundedSender<CoordinatorCommand>,
    _actor: ActorTask,
}

impl SimCoordinator {
    /// Starts the coordinator; it runs while the machine of this `power` runs.
    pub fn start_coordinator(
        config: CoordinatorConfig,
        power: watch::Receiver<MachinePower>,
        cycle: PowerCycle,
    ) -> Self {
        let (commands, inbox) = mpsc::unbounded_channel();
        let disk = SimDisk::default();
        let command = Arc::new(Mutex::new(RebootCommand::default()));
        let started = Arc::new(Mutex::new(Vec::new()));
        let pod = CoordinatorPod {
            config,
            disk: disk.clone(),
            command: Arc::clone(&command),
            started: Arc::clone(&started),
            cycle,
            soft_reboots: Arc::new(AtomicU32::new(0)),
            commands: commands.downgrade(),
            runs: 0,
        };
        Self {
            disk,
            command,
            started,
            commands,
            _actor: ActorTask::spawn(pod.run_pod(power, inbox)),
        }
    }

    /// Kills the process; it restarts after one second.
    pub fn kill_process(&self) {
        self.send_command(CoordinatorCommand::Kill);
    }

    /// Kills the process until [`Self::restart_process`].
    pub fn hold_process(&self) {
        self.send_command(CoordinatorCommand::Hold);
    }

    /// Starts a held process.
    pub fn restart_process(&self) {
        self.send_command(CoordinatorCommand::Start);
    }

    /// Sets what the reboot command does from now on.
    pub fn set_reboot_command(&self, command: RebootCommand) {
        *self.command.lock().expect("nothing panics while it is set") = command;
    }

    /// Returns when the reboot command was started, in all runs.
    pub fn commands_started(&self) -> Vec<Instant> {
        let started = self.started.lock();
        started.expect("nothing panics while it counts").clone()
    }

    fn send_command(&self, command: CoordinatorCommand) {
        // The receiver is gone only when the whole simulation stops.
        let _ = self.commands.send(command);
    }
}

struct CoordinatorPod {
    config: CoordinatorConfig,
    disk: SimDisk,
    command: Arc<Mutex<RebootCommand>>,
    started: Arc<Mutex<Vec<Instant>>>,
    cycle: PowerCycle,
    /// How often userspace was restarted in this boot.
    soft_reboots: Arc<AtomicU32>,
    commands: mpsc::WeakUnboundedSender<CoordinatorCommand>,
    runs: u32,
}

impl CoordinatorPod {
    async fn run_pod(
        mut self,
        mut power: watch::Receiver<MachinePower>,
        mut inbox: mpsc::UnboundedReceiver<CoordinatorCommand>,
    ) {
        let mut boot = None;
        let mut process: Option<ActorTask> = None;
        let mut held = false;
        loop {
            let on = match power.borrow_and_update().clone() {
                MachinePower::On(boot) => Some(names::boot_id(&boot)),
                MachinePower::Off => None,
            };
            if on != boot {
                process = None;
                self.soft_reboots.store(0, Ordering::Relaxed);
                if on.is_some() && self.runs > 0 {
                    self.disk.clear_volatile_files();
                }
                boot = on;
            }
            if process.is_none()
                && !held
                && let Some(boot) = &boot
            {
                process = Some(self.spawn_process(boot.clone()));
            }
            tokio::select! {
                biased;
                changed = power.changed() => if changed.is_err() { return },
                command = inbox.recv() => match command {
                    None => return,
                    Some(CoordinatorCommand::Kill) => {
                        process = None;
                        tokio::time::sleep(RESTART_DELAY).await;
                    }
                    Some(CoordinatorCommand::Hold) => { process = None; held = true; }
                    Some(CoordinatorCommand::Start) => held = false,
                },
            }
        }
    }

    fn spawn_process(&mut self, boot: BootId) -> ActorTask {
        self.runs += 1;
        let name = format!("coordinator/{}/{}", self.config.node, self.runs);
        let run = format!(
            "coordinator/{}",
            self.config.seed.stream_for_actor(&name).next_uuid()
        );
        let hands = SimHostOps {
            boot,
            disk: self.disk.clone(),
            sentinels: self.config.sentinels.clone(),
            command: Arc::clone(&self.command),
            cycle: Arc::clone(&self.cycle),
            soft_reboots: self.soft_reboots.load(Ordering::Relaxed),
            soft_reboot: self.build_soft_reboot(),
            started: Arc::clone(&self.started),
        };
        let wall = Arc::clone(&self.config.clock);
        let setup = CoordinatorSetup {
            client: self.config.client.clone(),
            node_client: self.config.client.clone(),
            node: self.config.node.clone(),
            namespace: self.config.namespace.clone(),
            config: self.config.config.clone(),
            run: RunId::new(run).expect("a UUID after a known prefix"),
            clock: ProcessClock::with_wall_clock(move || wall.now()),
            host_ops: Box::new(hands),
            gatekeeper: Arc::new(self.config.prometheus.clone()),
            decision_sink: Arc::clone(&self.config.watcher),
            heart: LoopHeartbeat::new(),
        };
        ActorTask::spawn(async move {
            CoordinatorAgent::new(setup)
                .run(std::future::pending())
                .await;
        })
    }

    /// Restarts userspace: files in memory stay, and the pod starts anew.
    fn build_soft_reboot(&self) -> PowerCycle {
        let (count, commands) = (Arc::clone(&self.soft_reboots), self.commands.clone());
        Arc::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            if let Some(commands) = commands.upgrade() {
                // The receiver is gone only when the whole simulation stops.
                let _ = commands.send(CoordinatorCommand::Kill);
            }
        })
    }
}

//! The coordinator's pod on a simulated node: starts with the machine, dies with it, is started
//! again when it crashed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dogwatch_coordinator::agent::{Agent, Setup, Watcher};
use dogwatch_coordinator::clock::Clock as ProcessClock;
use dogwatch_coordinator::health::Heart;
use dogwatch_core::name::{BootId, NodeName, RunId};
use dogwatch_core::reboot::Config;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::disk::Disk;
use super::hands::{PowerCycle, RebootCommand, SimHands};
use super::prometheus::Prometheus;
use crate::clock::Clock;
use crate::seed::Seed;
use crate::world::Actor;
use crate::world::kubelet::Power;

/// How long the kubelet takes to start a crashed container again.
const RESTART: Duration = Duration::from_secs(1);

/// What a node's coordinator is made from.
#[derive(Clone)]
pub struct CoordinatorConfig {
    /// The API server, as this node's coordinator.
    pub client: kube::Client,
    /// The node.
    pub node: NodeName,
    /// Where the Leases are.
    pub namespace: String,
    /// What it is told.
    pub config: Config,
    /// Its sentinel files.
    pub sentinels: Vec<String>,
    /// Where run ids come from.
    pub seed: Seed,
    /// What time it is on this node.
    pub clock: Arc<dyn Clock>,
    /// Whom it asks of alerts.
    pub prometheus: Prometheus,
    /// Told of each decision.
    pub watcher: Arc<dyn Watcher>,
}

enum Command {
    Kill,
    Hold,
    Start,
}

/// The coordinator of one simulated node, whatever runs of it there are.
pub struct Coordinator {
    /// The host's files.
    pub disk: Disk,
    command: Arc<Mutex<RebootCommand>>,
    started: Arc<Mutex<Vec<Instant>>>,
    commands: mpsc::UnboundedSender<Command>,
    _actor: Actor,
}

impl Coordinator {
    /// Starts it, to live and die with the machine of this `power`.
    pub fn start(
        config: CoordinatorConfig,
        power: watch::Receiver<Power>,
        cycle: PowerCycle,
    ) -> Self {
        let (commands, inbox) = mpsc::unbounded_channel();
        let disk = Disk::default();
        let command = Arc::new(Mutex::new(RebootCommand::default()));
        let started = Arc::new(Mutex::new(Vec::new()));
        let pod = Pod {
            config,
            disk: disk.clone(),
            command: Arc::clone(&command),
            started: Arc::clone(&started),
            cycle,
            runs: 0,
        };
        Self {
            disk,
            command,
            started,
            commands,
            _actor: Actor::spawn(pod.live(power, inbox)),
        }
    }

    /// Kills the process; it is started again after a second.
    pub fn kill(&self) {
        self.tell(Command::Kill);
    }

    /// Kills the process; it stays away until [`Self::start_again`].
    pub fn hold(&self) {
        self.tell(Command::Hold);
    }

    /// Starts a process that was held.
    pub fn start_again(&self) {
        self.tell(Command::Start);
    }

    /// What the reboot command does from now on.
    pub fn set_reboot_command(&self, command: RebootCommand) {
        *self.command.lock().expect("nothing panics while it is set") = command;
    }

    /// When the reboot command was started, in all runs.
    pub fn commands_started(&self) -> Vec<Instant> {
        let started = self.started.lock();
        started.expect("nothing panics while it counts").clone()
    }

    fn tell(&self, command: Command) {
        // The receiver is gone only when the whole world stops.
        let _ = self.commands.send(command);
    }
}

struct Pod {
    config: CoordinatorConfig,
    disk: Disk,
    command: Arc<Mutex<RebootCommand>>,
    started: Arc<Mutex<Vec<Instant>>>,
    cycle: PowerCycle,
    runs: u32,
}

impl Pod {
    async fn live(
        mut self,
        mut power: watch::Receiver<Power>,
        mut inbox: mpsc::UnboundedReceiver<Command>,
    ) {
        let mut boot = None;
        let mut process: Option<Actor> = None;
        let mut held = false;
        loop {
            let on = match power.borrow_and_update().clone() {
                Power::On(boot) => Some(boot),
                Power::Off => None,
            };
            if on != boot {
                process = None;
                if on.is_some() && self.runs > 0 {
                    self.disk.boot();
                }
                boot = on;
            }
            if process.is_none()
                && !held
                && let Some(boot) = &boot
            {
                process = Some(self.process(boot.clone()));
            }
            tokio::select! {
                biased;
                changed = power.changed() => if changed.is_err() { return },
                command = inbox.recv() => match command {
                    None => return,
                    Some(Command::Kill) => {
                        process = None;
                        tokio::time::sleep(RESTART).await;
                    }
                    Some(Command::Hold) => { process = None; held = true; }
                    Some(Command::Start) => held = false,
                },
            }
        }
    }

    fn process(&mut self, boot: BootId) -> Actor {
        self.runs += 1;
        let name = format!("coordinator/{}/{}", self.config.node, self.runs);
        let run = format!("coordinator/{}", self.config.seed.stream(&name).uuid());
        let hands = SimHands {
            boot,
            disk: self.disk.clone(),
            sentinels: self.config.sentinels.clone(),
            command: Arc::clone(&self.command),
            cycle: Arc::clone(&self.cycle),
            started: Arc::clone(&self.started),
        };
        let wall = Arc::clone(&self.config.clock);
        let setup = Setup {
            client: self.config.client.clone(),
            node_client: self.config.client.clone(),
            node: self.config.node.clone(),
            namespace: self.config.namespace.clone(),
            config: self.config.config.clone(),
            run: RunId::new(run).expect("a UUID after a known prefix"),
            clock: ProcessClock::with_wall(move || wall.now()),
            hands: Box::new(hands),
            gatekeeper: Arc::new(self.config.prometheus.clone()),
            watcher: Arc::clone(&self.config.watcher),
            heart: Heart::new(),
        };
        Actor::spawn(async move {
            Agent::new(setup).run(std::future::pending()).await;
        })
    }
}

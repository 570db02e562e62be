//! A simulated kubelet and the machine under it.
//!
//! It registers its Node, keeps it Ready, runs the pods bound to it and finishes their deletion, as
//! a real one would towards the API server; it runs nothing. When its machine stops it falls silent:
//! nothing is said good-bye to. When the machine boots it registers the new boot id and starts its
//! pods anew. It speaks to any API server through a `kube::Client`.

mod calls;
mod config;
mod duty;
mod machine;
mod objects;
mod run;
mod seat;

use std::sync::OnceLock;
use std::time::Duration;

use dogwatch_core::name::{BootId, NodeName};
use kube::Client;
use tokio::sync::{mpsc, watch};

pub use config::{Heartbeat, KubeletConfig, PodSource};

use crate::bmc::Machine;
use crate::seed::Stream;
use crate::world::Actor;

/// Whether a machine runs, and since which boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Power {
    /// It stands still.
    Off,
    /// It runs; its kubelet has been started.
    On(BootId),
}

/// What a machine without heartbeats tells of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerReport {
    /// Its Node.
    pub node: NodeName,
    /// What it is from now on.
    pub power: Power,
}

/// What a machine is told from outside.
#[derive(Debug)]
enum Command {
    PowerOff,
    PowerOn(BootId),
    Reboot(Option<Duration>),
}

/// Starts kubelets.
#[derive(Debug)]
pub struct Kubelet;

impl Kubelet {
    /// Starts the machine and its kubelet, in the first boot of its random stream. Pods that the API
    /// server shows as running on this node are taken as running.
    pub fn start(client: Client, config: KubeletConfig) -> KubeletHandle {
        let mut stream = config.seed.stream(&format!("machine/{}", config.node));
        let identity = objects::MachineIdentity {
            machine_id: stream.uuid().replace('-', ""),
            system_uuid: stream.uuid(),
        };
        let boot = stream.boot_id();
        Self::start_in(client, config, identity, boot, stream)
    }

    fn start_in(
        client: Client,
        config: KubeletConfig,
        identity: objects::MachineIdentity,
        boot: BootId,
        stream: Stream,
    ) -> KubeletHandle {
        let (commands, inbox) = mpsc::unbounded_channel();
        let (power, seen) = watch::channel(Power::On(boot.clone()));
        let node = config.node.clone();
        let system_uuid = identity.system_uuid.clone();
        let shell = run::Shell::new(client, config, identity, stream, power);
        KubeletHandle {
            node,
            system_uuid,
            commands,
            power: seen,
            seat: OnceLock::new(),
            _actor: Actor::spawn(shell.run(boot, inbox)),
        }
    }
}

/// A running machine. Dropping it is pulling the plug for good.
#[derive(Debug)]
pub struct KubeletHandle {
    node: NodeName,
    system_uuid: String,
    commands: mpsc::UnboundedSender<Command>,
    power: watch::Receiver<Power>,
    seat: OnceLock<(Machine, Actor)>,
    _actor: Actor,
}

impl KubeletHandle {
    /// Its Node's name.
    pub fn node(&self) -> &NodeName {
        &self.node
    }

    /// The UUID of its machine, as its Node has it.
    pub fn system_uuid(&self) -> &str {
        &self.system_uuid
    }

    /// Puts it on this machine: it lives while processes of the machine live, in the machine's boots,
    /// and what this handle is told is done to the machine. Once; a second machine is not looked at.
    pub fn sit_on(&self, machine: Machine) {
        let boot = match &*self.power.borrow() {
            Power::On(boot) => Some(boot.clone()),
            Power::Off => None,
        };
        let sit = || {
            let follows = seat::follow(machine.watch(), boot, self.commands.clone());
            (machine, Actor::spawn(follows))
        };
        self.seat.get_or_init(sit);
    }

    /// The machine that it was put on.
    pub fn machine(&self) -> Option<&Machine> {
        self.seat.get().map(|(machine, _)| machine)
    }

    /// Stops the machine where it stands: no call is made any more, its objects stay as they are.
    pub fn power_off(&self) {
        self.tell(Command::PowerOff);
    }

    /// Boots the machine; its kubelet starts at once. On a machine that runs it is a reset.
    pub fn power_on(&self, boot: BootId) {
        self.tell(Command::PowerOn(boot));
    }

    /// Stops the machine and boots it under a new boot id after the configured time.
    pub fn reboot(&self) {
        self.tell(Command::Reboot(None));
    }

    /// The same, with a time of its own from the stop until the kubelet runs.
    pub fn reboot_taking(&self, time: Duration) {
        self.tell(Command::Reboot(Some(time)));
    }

    /// The kubelet dies, and its machine runs on: no call is made any more until the machine boots anew.
    /// What runs beside it is not stopped by that.
    pub fn kubelet_dies(&self) {
        // The receiver is gone only once the runtime shuts down, and then nothing runs any more.
        let _ = self.commands.send(Command::PowerOff);
    }

    /// Follows the machine's power: for what else runs on it, and stops and starts with it.
    pub fn power(&self) -> watch::Receiver<Power> {
        self.power.clone()
    }

    fn tell(&self, command: Command) {
        if let Some(machine) = self.machine() {
            return seat::pass_on(command, machine);
        }
        // The receiver is gone only once the runtime shuts down, and then nothing runs any more.
        let _ = self.commands.send(command);
    }
}

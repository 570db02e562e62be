//! A simulated kubelet and the machine under it.
//!
//! It registers its Node, keeps it Ready, reports the pods bound to it as running and completes
//! their deletion, like a real kubelet towards the API server; it runs no containers. When its
//! machine stops, it falls silent without a goodbye. When the machine boots, it registers the new
//! boot id and starts its pods again. It works with any API server through a `kube::Client`.

mod api_calls;
mod config;
mod event_loop;
mod machine;
mod machine_link;
mod node_duties;
mod objects;

use std::sync::OnceLock;
use std::time::Duration;

use kube::Client;
use tokio::sync::{mpsc, watch};

pub use config::{KubeletConfig, KubeletHeartbeat, PodSource};

use crate::machine::SimMachine;
use crate::seed::RandomStream;
use crate::world::ActorTask;

/// Whether a machine runs, and in which boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachinePower {
    /// The machine is off.
    Off,
    /// The machine runs and its kubelet has been started.
    On(String),
}

/// Power report of a machine without heartbeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerReport {
    pub node: String,
    pub power: MachinePower,
}

/// A command to a machine.
#[derive(Debug)]
enum MachineCommand {
    PowerOff,
    PowerOn(String),
    Reboot(Option<Duration>),
}

#[derive(Debug)]
pub struct SimulatedKubelet;

impl SimulatedKubelet {
    /// Starts the machine and its kubelet in the first boot of its random stream. Pods that the API
    /// server shows as running on this node count as running.
    pub fn start_machine(client: Client, config: KubeletConfig) -> KubeletHandle {
        let mut stream = config
            .seed
            .stream_for_actor(&format!("machine/{}", config.node));
        let identity = objects::MachineIdentity {
            machine_id: stream.next_uuid().replace('-', ""),
            system_uuid: stream.next_uuid(),
        };
        let boot = stream.next_boot_id();
        Self::start_in_boot(client, config, identity, boot, stream)
    }

    fn start_in_boot(
        client: Client,
        config: KubeletConfig,
        identity: objects::MachineIdentity,
        boot: String,
        stream: RandomStream,
    ) -> KubeletHandle {
        let (commands, inbox) = mpsc::unbounded_channel();
        let (power, seen) = watch::channel(MachinePower::On(boot.clone()));
        let node = config.node.clone();
        let system_uuid = identity.system_uuid.clone();
        let shell = event_loop::KubeletLoop::new(client, config, identity, stream, power);
        KubeletHandle {
            node,
            system_uuid,
            commands,
            power: seen,
            seat: OnceLock::new(),
            _actor: ActorTask::spawn(shell.run(boot, inbox)),
        }
    }
}

/// A running machine. Dropping the handle cuts its power for good.
#[derive(Debug)]
pub struct KubeletHandle {
    node: String,
    system_uuid: String,
    commands: mpsc::UnboundedSender<MachineCommand>,
    power: watch::Receiver<MachinePower>,
    seat: OnceLock<(SimMachine, ActorTask)>,
    _actor: ActorTask,
}

impl KubeletHandle {
    pub fn node_name(&self) -> &str {
        &self.node
    }

    /// The machine's UUID, as in its Node.
    pub fn system_uuid(&self) -> &str {
        &self.system_uuid
    }

    /// Attaches the kubelet to this machine: it runs while processes of the machine run, in the
    /// machine's boots, and this handle's commands go to the machine. Works once; a second machine
    /// is ignored.
    pub fn attach_to_machine(&self, machine: SimMachine) {
        let boot = match &*self.power.borrow() {
            MachinePower::On(boot) => Some(boot.clone()),
            MachinePower::Off => None,
        };
        let sit = || {
            let follows =
                machine_link::follow_machine(machine.watch_state(), boot, self.commands.clone());
            (machine, ActorTask::spawn(follows))
        };
        self.seat.get_or_init(sit);
    }

    /// The machine of [`KubeletHandle::attach_to_machine`].
    pub fn attached_machine(&self) -> Option<&SimMachine> {
        self.seat.get().map(|(machine, _)| machine)
    }

    /// Stops the machine at once: no more calls are made, its objects stay as they are.
    pub fn power_off(&self) {
        self.send_command(MachineCommand::PowerOff);
    }

    /// Boots the machine; its kubelet starts at once. A running machine is reset.
    pub fn power_on(&self, boot: impl Into<String>) {
        self.send_command(MachineCommand::PowerOn(boot.into()));
    }

    /// Stops the machine and boots it with a new boot id after the configured time.
    pub fn reboot(&self) {
        self.send_command(MachineCommand::Reboot(None));
    }

    /// Like [`KubeletHandle::reboot`], with this time from the stop until the kubelet runs.
    pub fn reboot_taking(&self, time: Duration) {
        self.send_command(MachineCommand::Reboot(Some(time)));
    }

    /// Kills the kubelet while its machine runs on: no more calls are made until the machine boots
    /// again. Other programs on the machine keep running.
    pub fn kill_kubelet(&self) {
        // The receiver is gone only while the runtime shuts down, when nothing runs any more.
        let _ = self.commands.send(MachineCommand::PowerOff);
    }

    /// Watches the machine's power, for other programs that start and stop with it.
    pub fn watch_power(&self) -> watch::Receiver<MachinePower> {
        self.power.clone()
    }

    fn send_command(&self, command: MachineCommand) {
        if let Some(machine) = self.attached_machine() {
            return machine_link::forward_command(command, machine);
        }
        // The receiver is gone only while the runtime shuts down, when nothing runs any more.
        let _ = self.commands.send(command);
    }
}

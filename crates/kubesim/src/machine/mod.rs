//! The machine behind a BMC: its power state, its processes and its log.

mod log;
mod power_actions;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::watch;

pub use log::{BootLifetime, MachineLog, MachineTransition, TransitionCause};

use crate::clock::ClusterClock;
use crate::seed::{RandomStream, SimulationSeed};
use crate::world::KubeletHandle;
use crate::world::kubelet::MachinePower;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineState {
    /// The host has no power (its BMC may have): no process lives.
    Off,
    /// The host has power and its firmware runs; no process lives yet.
    Booting { boot: String },
    /// The operating system and its kubelet run.
    Running { boot: String },
    /// The operating system was asked to stop; processes still live.
    ShuttingDown { boot: String },
}

impl MachineState {
    pub fn is_powered(&self) -> bool {
        self.boot_id().is_some()
    }

    pub fn boot_id(&self) -> Option<&str> {
        match self {
            MachineState::Off => None,
            MachineState::Booting { boot }
            | MachineState::Running { boot }
            | MachineState::ShuttingDown { boot } => Some(boot),
        }
    }

    /// The boot whose processes live.
    pub fn running_boot(&self) -> Option<&str> {
        match self {
            MachineState::Off | MachineState::Booting { .. } => None,
            MachineState::Running { boot } | MachineState::ShuttingDown { boot } => Some(boot),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerRestorePolicy {
    /// The machine waits for a command.
    StaysOff,
    /// The machine boots if it ran when the feed was lost.
    AsBefore,
    /// The machine always boots.
    Boots,
}

#[derive(Clone)]
pub struct MachineSpec {
    /// Selects the machine's random stream, and appears in messages.
    pub name: String,
    /// Source of the boot ids.
    pub seed: SimulationSeed,
    /// True time, for the log.
    pub clock: Arc<dyn ClusterClock>,
    /// From power-on to the first process.
    pub boots_after: Duration,
    /// From the power button to "off"; `None`: the operating system ignores the button.
    pub shuts_down_after: Option<Duration>,
    /// What the machine does when its feed comes back.
    pub after_feed: PowerRestorePolicy,
    /// The UUID that firmware and BMC report; `None`: one from the machine's random stream.
    pub system_uuid: Option<String>,
}

impl MachineSpec {
    /// A machine that boots in 30 s and shuts down 5 s after the request.
    pub fn new(
        name: impl Into<String>,
        seed: SimulationSeed,
        clock: Arc<dyn ClusterClock>,
    ) -> Self {
        Self {
            name: name.into(),
            seed,
            clock,
            boots_after: Duration::from_secs(30),
            shuts_down_after: Some(Duration::from_secs(5)),
            after_feed: PowerRestorePolicy::AsBefore,
            system_uuid: None,
        }
    }
}

/// A simulated machine. Clones are the same machine. Make and drive it inside a tokio runtime.
///
/// Several devices may control one machine: its BMC, and the outlets of its feed.
#[derive(Clone)]
pub struct SimMachine(Arc<MachineInner>);

impl std::fmt::Debug for SimMachine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {:?}", self.name(), self.power_state())
    }
}

struct MachineInner {
    spec: MachineSpec,
    uuid: String,
    held: Mutex<MachineRecord>,
    state: watch::Sender<MachineState>,
}

struct MachineRecord {
    stream: RandomStream,
    /// Outlets that are open. The machine has power as long as one outlet is closed.
    open: Vec<String>,
    outlets: usize,
    ran_when_cut: bool,
    /// How often the last closed outlet was opened.
    blackouts: u64,
    /// Counts state changes, so that a timer set in an earlier state does nothing.
    epoch: u64,
    log: MachineLog,
}

impl SimMachine {
    /// Makes a machine that is off.
    pub fn powered_off(spec: MachineSpec) -> Self {
        Self::build_machine(spec, |_| MachineState::Off)
    }

    /// Makes a machine that runs the first boot of its random stream.
    pub fn running_first_boot(spec: MachineSpec) -> Self {
        Self::build_machine(spec, |stream| MachineState::Running {
            boot: stream.next_boot_id(),
        })
    }

    /// Makes a machine that runs this boot, for a kubelet that existed before the machine.
    pub fn running_in_boot(spec: MachineSpec, boot: String) -> Self {
        Self::build_machine(spec, |_| MachineState::Running { boot })
    }

    fn build_machine(
        spec: MachineSpec,
        state: impl FnOnce(&mut RandomStream) -> MachineState,
    ) -> Self {
        let mut stream = spec
            .seed
            .stream_for_actor(&format!("hardware/{}", spec.name));
        let drawn = stream.next_uuid();
        let state = state(&mut stream);
        let held = MachineRecord {
            stream,
            open: Vec::new(),
            outlets: 1,
            ran_when_cut: false,
            blackouts: 0,
            epoch: 0,
            log: MachineLog::starting_with(&state, spec.clock.now()),
        };
        Self(Arc::new(MachineInner {
            uuid: spec.system_uuid.clone().unwrap_or(drawn),
            spec,
            held: Mutex::new(held),
            state: watch::channel(state).0,
        }))
    }

    pub fn name(&self) -> &str {
        &self.0.spec.name
    }

    /// The system UUID that the firmware reports.
    pub fn system_uuid(&self) -> &str {
        &self.0.uuid
    }

    pub fn power_state(&self) -> MachineState {
        self.0.state.borrow().clone()
    }

    /// Follows the state. A receiver can miss short states; the log has them all.
    pub fn watch_state(&self) -> watch::Receiver<MachineState> {
        self.0.state.subscribe()
    }

    /// Waits until the state is as wanted. For tests; put a deadline around it.
    pub async fn wait_for_state(&self, wanted: impl FnMut(&MachineState) -> bool) -> MachineState {
        let mut states = self.watch_state();
        let state = states.wait_for(wanted).await;
        state.expect("the sender is ours").clone()
    }

    /// Returns everything that happened to the machine, the oldest first.
    pub fn transition_log(&self) -> MachineLog {
        self.lock_record().log.clone()
    }

    /// Returns whether any outlet feeds the machine.
    pub fn is_fed(&self) -> bool {
        let held = self.lock_record();
        held.open.len() < held.outlets
    }

    /// Counts how often all outlets were open. Each time the BMC restarted.
    pub fn count_blackouts(&self) -> u64 {
        self.lock_record().blackouts
    }

    /// Puts a machine under a kubelet. From now on only the machine controls the kubelet's power.
    pub fn under_kubelet(kubelet: &KubeletHandle, spec: MachineSpec) -> Self {
        let spec = MachineSpec {
            system_uuid: spec
                .system_uuid
                .or_else(|| Some(kubelet.system_uuid().to_owned())),
            ..spec
        };
        let power = kubelet.watch_power().borrow().clone();
        let machine = match power {
            MachinePower::On(boot) => Self::running_in_boot(spec, boot),
            MachinePower::Off => Self::powered_off(spec),
        };
        kubelet.attach_to_machine(machine.clone());
        machine
    }

    fn lock_record(&self) -> MutexGuard<'_, MachineRecord> {
        self.0.held.lock().expect("nothing panics in a machine")
    }
}

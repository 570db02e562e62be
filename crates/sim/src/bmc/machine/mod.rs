//! The machine behind a BMC: what has power, what runs, and since when.

mod drive;
mod log;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use dogwatch_core::name::BootId;
use tokio::sync::watch;

pub use log::{Cause, Life, Log, Transition};

use crate::clock::Clock;
use crate::seed::{Seed, Stream};
use crate::world::KubeletHandle;
use crate::world::kubelet::Power;

/// What a machine does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It has no power, or only its BMC has: no process lives.
    Off,
    /// It has power; its firmware works, and no process lives yet.
    Booting {
        /// The boot that begins.
        boot: BootId,
    },
    /// Its operating system runs, and its kubelet with it.
    Running {
        /// Since which boot.
        boot: BootId,
    },
    /// Its operating system was asked to stop, and processes still live.
    ShuttingDown {
        /// The boot that ends.
        boot: BootId,
    },
}

impl State {
    /// Whether it has power.
    pub fn is_powered(&self) -> bool {
        self.boot().is_some()
    }

    /// The boot under way.
    pub fn boot(&self) -> Option<&BootId> {
        match self {
            State::Off => None,
            State::Booting { boot } | State::Running { boot } | State::ShuttingDown { boot } => {
                Some(boot)
            }
        }
    }

    /// The boot whose processes live.
    pub fn living(&self) -> Option<&BootId> {
        match self {
            State::Off | State::Booting { .. } => None,
            State::Running { boot } | State::ShuttingDown { boot } => Some(boot),
        }
    }
}

/// What a machine does when its feed comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFeed {
    /// It waits for a command.
    StaysOff,
    /// It boots if it ran when the feed went.
    AsBefore,
    /// It boots.
    Boots,
}

/// What a machine is made from.
#[derive(Clone)]
pub struct MachineSpec {
    /// Its name: of its random stream, and for people.
    pub name: String,
    /// Where its boot ids come from.
    pub seed: Seed,
    /// The true time, for its log.
    pub clock: Arc<dyn Clock>,
    /// From power to the first process.
    pub boots_after: Duration,
    /// From the power button to off; `None`: its operating system does not hear it.
    pub shuts_down_after: Option<Duration>,
    /// What it does when its feed comes back.
    pub after_feed: AfterFeed,
    /// What its firmware and its BMC say of it; `None`: a UUID of its stream.
    pub system_uuid: Option<String>,
}

impl MachineSpec {
    /// One that boots in 30s and shuts down in 5s when asked to.
    pub fn new(name: impl Into<String>, seed: Seed, clock: Arc<dyn Clock>) -> Self {
        Self {
            name: name.into(),
            seed,
            clock,
            boots_after: Duration::from_secs(30),
            shuts_down_after: Some(Duration::from_secs(5)),
            after_feed: AfterFeed::AsBefore,
            system_uuid: None,
        }
    }
}

/// A machine. Clones are the same one. To be made, and driven, inside a tokio runtime.
///
/// Several devices may hold one machine: its BMC, and the outlets of its feed.
#[derive(Clone)]
pub struct Machine(Arc<Inner>);

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {:?}", self.name(), self.state())
    }
}

struct Inner {
    spec: MachineSpec,
    uuid: String,
    held: Mutex<Held>,
    state: watch::Sender<State>,
}

struct Held {
    stream: Stream,
    /// Outlets that are open: with one of them open it still has the others.
    open: Vec<String>,
    /// How many outlets feed it.
    outlets: usize,
    ran_when_cut: bool,
    /// How often the last outlet was opened.
    blackouts: u64,
    /// Counts states, so that a timer set in an earlier one does nothing.
    epoch: u64,
    log: Log,
}

impl Machine {
    /// One that stands still.
    pub fn off(spec: MachineSpec) -> Self {
        Self::make(spec, |_| State::Off)
    }

    /// One that runs, in the first boot of its stream.
    pub fn running(spec: MachineSpec) -> Self {
        Self::make(spec, |stream| State::Running {
            boot: stream.boot_id(),
        })
    }

    /// One that runs in this boot: of a kubelet that was there before it.
    pub fn running_in(spec: MachineSpec, boot: BootId) -> Self {
        Self::make(spec, |_| State::Running { boot })
    }

    fn make(spec: MachineSpec, state: impl FnOnce(&mut Stream) -> State) -> Self {
        let mut stream = spec.seed.stream(&format!("hardware/{}", spec.name));
        let drawn = stream.uuid();
        let state = state(&mut stream);
        let held = Held {
            stream,
            open: Vec::new(),
            outlets: 1,
            ran_when_cut: false,
            blackouts: 0,
            epoch: 0,
            log: Log::beginning(&state, spec.clock.now()),
        };
        Self(Arc::new(Inner {
            uuid: spec.system_uuid.clone().unwrap_or(drawn),
            spec,
            held: Mutex::new(held),
            state: watch::channel(state).0,
        }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.spec.name
    }

    /// What its firmware says it is.
    pub fn system_uuid(&self) -> &str {
        &self.0.uuid
    }

    /// What it does now.
    pub fn state(&self) -> State {
        self.0.state.borrow().clone()
    }

    /// Follows what it does. A state that was over before somebody looked is not seen: the log has it.
    pub fn watch(&self) -> watch::Receiver<State> {
        self.0.state.subscribe()
    }

    /// Waits until it is as wanted. For tests: with a deadline around it.
    pub async fn until(&self, wanted: impl FnMut(&State) -> bool) -> State {
        let mut states = self.watch();
        let state = states.wait_for(wanted).await;
        state.expect("the sender is ours").clone()
    }

    /// All that happened to it, the oldest first.
    pub fn log(&self) -> Log {
        self.held().log.clone()
    }

    /// Whether any outlet feeds it.
    pub fn is_fed(&self) -> bool {
        let held = self.held();
        held.open.len() < held.outlets
    }

    /// How often its feed was gone altogether: so often its BMC began anew.
    pub fn blackouts(&self) -> u64 {
        self.held().blackouts
    }

    /// The machine under a kubelet, as far as that knows it: its power is in one hand from now on.
    pub fn under(kubelet: &KubeletHandle, spec: MachineSpec) -> Self {
        let spec = MachineSpec {
            system_uuid: spec
                .system_uuid
                .or_else(|| Some(kubelet.system_uuid().to_owned())),
            ..spec
        };
        let power = kubelet.power().borrow().clone();
        let machine = match power {
            Power::On(boot) => Self::running_in(spec, boot),
            Power::Off => Self::off(spec),
        };
        kubelet.sit_on(machine.clone());
        machine
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().expect("nothing panics in a machine")
    }
}

//! One simulated BMC: its spec, and the actions on it that are not requests.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use dogwatch_kubesim::clock::ClusterClock;
use dogwatch_kubesim::machine::SimMachine;
use dogwatch_kubesim::seed::SimulationSeed;

use super::bmc_state::{BmcState, BmcSystem};
use super::command::ReceivedCommand;
use super::fault::{ActiveFaults, BmcFaultKind, SimBmcFault};
use super::maker_profile::MakerProfile;
use super::request::RequestCounters;
use super::session::BmcSessions;
use super::task::BmcTasks;

#[derive(Clone)]
pub struct BmcSpec {
    /// Selects the BMC's random stream, and appears in its machines' logs.
    pub name: String,
    /// The maker whose Redfish the BMC speaks.
    pub profile: MakerProfile,
    pub username: String,
    pub password: String,
    /// Source of the session tokens.
    pub seed: SimulationSeed,
    /// True time; the BMC's own clock can be wrong.
    pub clock: Arc<dyn ClusterClock>,
    /// From an accepted command to the change of the host's power.
    pub acts_after: Duration,
    pub answers_after: Duration,
    /// How long an unused session lives.
    pub session_life: Duration,
    /// The maximum number of sessions. Source: makers' manuals name 4 to 32.
    pub session_limit: usize,
}

impl BmcSpec {
    /// User `admin` with password `sekret16`; a command takes 1 s, an answer 5 ms; 16 sessions of 5
    /// minutes.
    pub fn new(
        name: impl Into<String>,
        seed: SimulationSeed,
        clock: Arc<dyn ClusterClock>,
    ) -> Self {
        Self {
            name: name.into(),
            profile: MakerProfile::plain_profile(),
            username: "admin".into(),
            password: "sekret16".into(),
            seed,
            clock,
            acts_after: Duration::from_secs(1),
            answers_after: Duration::from_millis(5),
            session_life: Duration::from_mins(5),
            session_limit: 16,
        }
    }

    /// Replaces the maker's profile.
    #[must_use]
    pub fn with_profile(self, shape: MakerProfile) -> Self {
        Self {
            profile: shape,
            ..self
        }
    }
}

/// How a BMC controls a machine's power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerControl {
    /// The BMC is the machine's own: it works while the machine is fed.
    Power,
    /// The BMC is a power strip: it switches the outlet of its own name, and has its own power.
    Outlet,
}

/// A simulated BMC. Clones are the same BMC.
#[derive(Clone)]
pub struct SimBmc(pub(super) Arc<SimBmcInner>);

pub(super) struct SimBmcInner {
    pub spec: BmcSpec,
    held: Mutex<BmcState>,
}

impl SimBmc {
    /// Makes the BMC of one machine.
    pub fn for_machine(spec: BmcSpec, machine: SimMachine) -> Self {
        let id = spec.profile.system.to_owned();
        Self::with_systems(spec, [(id, machine, PowerControl::Power)])
    }

    /// Makes a power strip with one outlet for this machine; the outlet has the strip's name.
    pub fn power_strip(spec: BmcSpec, machine: SimMachine) -> Self {
        let spec = spec.with_profile(MakerProfile::power_strip());
        let id = spec.profile.system.to_owned();
        Self::with_systems(spec, [(id, machine, PowerControl::Outlet)])
    }

    /// Makes a BMC of several systems, or of none.
    pub fn with_systems(
        spec: BmcSpec,
        systems: impl IntoIterator<Item = (String, SimMachine, PowerControl)>,
    ) -> Self {
        let system = |(id, machine, controls)| BmcSystem {
            id,
            machine,
            controls,
            pending: Vec::new(),
            says_off_until: None,
        };
        let held = BmcState {
            faults: ActiveFaults::default(),
            systems: systems.into_iter().map(system).collect(),
            sessions: BmcSessions::default(),
            tasks: BmcTasks::default(),
            counters: RequestCounters::default(),
            received: Vec::new(),
            password: spec.password.clone(),
            stream: spec.seed.stream_for_actor(&format!("bmc/{}", spec.name)),
            taken: 0,
            blackouts: 0,
            contradictions: 0,
        };
        Self(Arc::new(SimBmcInner {
            spec,
            held: Mutex::new(held),
        }))
    }

    pub fn name(&self) -> &str {
        &self.0.spec.name
    }

    pub fn spec(&self) -> &BmcSpec {
        &self.0.spec
    }

    /// The machine of the first system.
    ///
    /// # Panics
    /// If the BMC was made without a system.
    pub fn machine(&self) -> SimMachine {
        self.lock_state().systems[0].machine.clone()
    }

    /// The path of the first system, as in `spec.bmc.address`.
    pub fn system_path(&self) -> String {
        format!("/redfish/v1/Systems/{}", self.lock_state().systems[0].id)
    }

    /// Adds a fault, from now on.
    pub fn add_fault(&self, fault: impl Into<SimBmcFault>) {
        self.lock_state().faults.add_fault(fault.into());
    }

    /// Removes the faults for which `is_over` returns true.
    pub fn cure_faults(&self, is_over: impl Fn(&BmcFaultKind) -> bool) {
        self.lock_state().faults.cure_faults(is_over);
    }

    /// Removes all faults. False states that were already reported are not corrected.
    pub fn cure_all_faults(&self) {
        self.cure_faults(|_| true);
    }

    pub fn active_faults(&self) -> Vec<SimBmcFault> {
        self.lock_state().faults.active_faults()
    }

    /// Changes the password; open sessions stay open.
    pub fn set_password(&self, password: &str) {
        password.clone_into(&mut self.lock_state().password);
    }

    /// Restarts the BMC: sessions, tasks and commands that were not carried out are lost.
    pub fn restart_bmc(&self) {
        self.lock_state().restart_bmc();
    }

    /// Counts of the requests so far.
    pub fn request_counters(&self) -> RequestCounters {
        self.lock_state().counters
    }

    /// The commands that reached the BMC so far, the oldest first.
    pub fn received_commands(&self) -> Vec<ReceivedCommand> {
        self.lock_state().received.clone()
    }

    pub fn count_sessions(&self) -> usize {
        let mut held = self.lock_state();
        held.sessions.expire_sessions(self.0.spec.session_life);
        held.sessions.count_sessions()
    }

    pub(super) fn lock_state(&self) -> MutexGuard<'_, BmcState> {
        let mut held = self.0.held.lock().expect("nothing panics in a BMC");
        held.restart_after_blackout();
        held
    }
}

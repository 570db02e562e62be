//! One simulated BMC: what it is made from, and what can be done to it besides asking it.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::command::Received;
use super::fault::{Fault, Faults, What};
use super::held::{Held, System};
use super::machine::Machine;
use super::request::Counters;
use super::session::LoggedIn;
use super::shape::Shape;
use super::task::Tasks;
use crate::clock::Clock;
use crate::seed::Seed;

/// What a BMC is made from.
#[derive(Clone)]
pub struct BmcSpec {
    /// Its name: of its random stream, and in its machines' logs.
    pub name: String,
    /// Whose Redfish it speaks.
    pub shape: Shape,
    /// Who may log in.
    pub username: String,
    /// With what.
    pub password: String,
    /// Where its session tokens come from.
    pub seed: Seed,
    /// The true time; what it says itself can be wrong.
    pub clock: Arc<dyn Clock>,
    /// From a command to the host's power.
    pub acts_after: Duration,
    /// How long each answer takes.
    pub answers_after: Duration,
    /// How long a session lives unused.
    pub session_life: Duration,
    /// How many sessions there may be. Source: makers' manuals name 4 to 32.
    pub session_limit: usize,
}

impl BmcSpec {
    /// `admin` with password `sekret16`; a command takes 1s, an answer 5ms; 16 sessions of 5 minutes.
    pub fn new(name: impl Into<String>, seed: Seed, clock: Arc<dyn Clock>) -> Self {
        Self {
            name: name.into(),
            shape: Shape::plain(),
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

    /// The same with another maker's Redfish.
    #[must_use]
    pub fn shaped(self, shape: Shape) -> Self {
        Self { shape, ..self }
    }
}

/// What a BMC does to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Controls {
    /// It is the machine's own: it works while the machine is fed.
    Power,
    /// It is a power strip: it opens and closes the outlet of its own name, and lives by itself.
    Outlet,
}

/// A simulated BMC. Clones are the same one.
#[derive(Clone)]
pub struct SimBmc(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub spec: BmcSpec,
    held: Mutex<Held>,
}

impl SimBmc {
    /// A machine's own.
    pub fn of(spec: BmcSpec, machine: Machine) -> Self {
        let id = spec.shape.system.to_owned();
        Self::with_systems(spec, [(id, machine, Controls::Power)])
    }

    /// A power strip with one outlet of this machine, named as the strip is.
    pub fn strip(spec: BmcSpec, machine: Machine) -> Self {
        let spec = spec.shaped(Shape::strip());
        let id = spec.shape.system.to_owned();
        Self::with_systems(spec, [(id, machine, Controls::Outlet)])
    }

    /// One of several systems, or of none.
    pub fn with_systems(
        spec: BmcSpec,
        systems: impl IntoIterator<Item = (String, Machine, Controls)>,
    ) -> Self {
        let system = |(id, machine, controls)| System {
            id,
            machine,
            controls,
            pending: Vec::new(),
            says_off_until: None,
        };
        let held = Held {
            faults: Faults::default(),
            systems: systems.into_iter().map(system).collect(),
            sessions: LoggedIn::default(),
            tasks: Tasks::default(),
            counters: Counters::default(),
            received: Vec::new(),
            password: spec.password.clone(),
            stream: spec.seed.stream(&format!("bmc/{}", spec.name)),
            taken: 0,
            blackouts: 0,
            contradictions: 0,
        };
        Self(Arc::new(Inner {
            spec,
            held: Mutex::new(held),
        }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.spec.name
    }

    /// What it was made from.
    pub fn spec(&self) -> &BmcSpec {
        &self.0.spec
    }

    /// The machine of its first system.
    ///
    /// # Panics
    /// When it was made without one.
    pub fn machine(&self) -> Machine {
        self.held().systems[0].machine.clone()
    }

    /// The path of its first system, as it stands in an address.
    pub fn path(&self) -> String {
        format!("/redfish/v1/Systems/{}", self.held().systems[0].id)
    }

    /// This is wrong from now on.
    pub fn add(&self, fault: impl Into<Fault>) {
        self.held().faults.add(fault.into());
    }

    /// Those are over.
    pub fn cure(&self, is_over: impl Fn(&What) -> bool) {
        self.held().faults.cure(is_over);
    }

    /// Nothing is wrong any more. What was lied about already stays said.
    pub fn cure_all(&self) {
        self.cure(|_| true);
    }

    /// What is wrong with it.
    pub fn faults(&self) -> Vec<Fault> {
        self.held().faults.standing()
    }

    /// Its password is another from now on; who is logged in stays so.
    pub fn set_password(&self, password: &str) {
        password.clone_into(&mut self.held().password);
    }

    /// It restarts: sessions and tasks are gone, and commands that were not carried out.
    pub fn restart(&self) {
        self.held().restart();
    }

    /// What it was asked so far.
    pub fn counters(&self) -> Counters {
        self.held().counters
    }

    /// The commands that reached it so far, the oldest first.
    pub fn received(&self) -> Vec<Received> {
        self.held().received.clone()
    }

    /// How many sessions are open.
    pub fn sessions(&self) -> usize {
        let mut held = self.held();
        held.sessions.expire(self.0.spec.session_life);
        held.sessions.count()
    }

    pub(super) fn held(&self) -> MutexGuard<'_, Held> {
        let mut held = self.0.held.lock().expect("nothing panics in a BMC");
        held.wake();
        held
    }
}

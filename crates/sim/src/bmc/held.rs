//! What changes in a BMC.

use tokio::time::Instant;

use super::command::Received;
use super::effect::Pending;
use super::fault::{Faults, What};
use super::machine::Machine;
use super::request::Counters;
use super::session::LoggedIn;
use super::simulated::Controls;
use super::task::Tasks;
use crate::seed::Stream;

/// What changes.
pub(super) struct Held {
    pub faults: Faults,
    pub systems: Vec<System>,
    pub sessions: LoggedIn,
    pub tasks: Tasks,
    pub counters: Counters,
    pub received: Vec<Received>,
    pub password: String,
    pub stream: Stream,
    /// How many commands were taken: their numbers.
    pub taken: u64,
    /// How often its feed had been gone when it was looked at last.
    pub blackouts: u64,
    /// How many contradicting readings there were.
    pub contradictions: u64,
}

/// One system of a BMC.
pub(super) struct System {
    pub id: String,
    pub machine: Machine,
    pub controls: Controls,
    /// Commands that were taken and are not carried out yet.
    pub pending: Vec<Pending>,
    /// Until when it says off whatever is.
    pub says_off_until: Option<Instant>,
}

impl Held {
    pub(super) fn system(&self, id: &str) -> Option<&System> {
        self.systems.iter().find(|system| system.id == id)
    }

    pub(super) fn system_mut(&mut self, id: &str) -> Option<&mut System> {
        self.systems.iter_mut().find(|system| system.id == id)
    }

    /// It begins anew: sessions and tasks are gone, and commands that were not carried out.
    pub(super) fn restart(&mut self) {
        self.sessions = LoggedIn::default();
        self.tasks = Tasks::default();
        for system in &mut self.systems {
            system.pending.clear();
            system.says_off_until = None;
        }
    }

    /// Begins anew if its feed was gone since it was looked at last.
    pub(super) fn wake(&mut self) {
        let own = |system: &&System| system.controls == Controls::Power;
        let blackouts = |system: &System| system.machine.blackouts();
        let blackouts = self.systems.iter().filter(own).map(blackouts).sum();
        if self.blackouts != blackouts {
            self.blackouts = blackouts;
            self.restart();
        }
    }

    /// Whether it lives: it has its own power, from its host's feed mostly.
    pub(super) fn lives(&self) -> bool {
        let dies = self.faults.has(|what| *what == What::DiesWithHost);
        let feeds = |system: &System| match system.controls {
            Controls::Outlet => true,
            Controls::Power if dies => system.machine.state().is_powered(),
            Controls::Power => system.machine.is_fed(),
        };
        self.systems.is_empty() || self.systems.iter().any(feeds)
    }
}

impl System {
    /// Whether it is on in truth.
    pub(super) fn is_on(&self, bmc: &str) -> bool {
        match self.controls {
            Controls::Power => self.machine.state().is_powered(),
            Controls::Outlet => !self.machine.is_open(bmc),
        }
    }
}

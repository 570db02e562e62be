//! The mutable state of a simulated BMC.

use dogwatch_kubesim::machine::SimMachine;
use dogwatch_kubesim::seed::RandomStream;
use tokio::time::Instant;

use super::command::ReceivedCommand;
use super::effect::PendingReset;
use super::fault::{ActiveFaults, BmcFaultKind};
use super::request::RequestCounters;
use super::session::BmcSessions;
use super::sim_bmc::PowerControl;
use super::task::BmcTasks;

pub(super) struct BmcState {
    pub faults: ActiveFaults,
    pub systems: Vec<BmcSystem>,
    pub sessions: BmcSessions,
    pub tasks: BmcTasks,
    pub counters: RequestCounters,
    pub received: Vec<ReceivedCommand>,
    pub password: String,
    pub stream: RandomStream,
    /// How many effects were scheduled; the last command has this number.
    pub taken: u64,
    /// The machine's count of feed losses when the BMC last checked it.
    pub blackouts: u64,
    /// How many readings the fault `contradicts` has falsified.
    pub contradictions: u64,
}

pub(super) struct BmcSystem {
    pub id: String,
    pub machine: SimMachine,
    pub controls: PowerControl,
    /// Commands that the BMC accepted and has not carried out yet.
    pub pending: Vec<PendingReset>,
    /// Until this time the system reports "off", whatever the host's power is.
    pub says_off_until: Option<Instant>,
}

impl BmcState {
    pub(super) fn find_system(&self, id: &str) -> Option<&BmcSystem> {
        self.systems.iter().find(|system| system.id == id)
    }

    pub(super) fn find_system_mut(&mut self, id: &str) -> Option<&mut BmcSystem> {
        self.systems.iter_mut().find(|system| system.id == id)
    }

    /// Restarts the BMC: sessions, tasks and commands that were not carried out are lost.
    pub(super) fn restart_bmc(&mut self) {
        self.sessions = BmcSessions::default();
        self.tasks = BmcTasks::default();
        for system in &mut self.systems {
            system.pending.clear();
            system.says_off_until = None;
        }
    }

    /// Restarts the BMC if its feed was lost since the last check.
    pub(super) fn restart_after_blackout(&mut self) {
        let own = |system: &&BmcSystem| system.controls == PowerControl::Power;
        let blackouts = |system: &BmcSystem| system.machine.count_blackouts();
        let blackouts = self.systems.iter().filter(own).map(blackouts).sum();
        if self.blackouts != blackouts {
            self.blackouts = blackouts;
            self.restart_bmc();
        }
    }

    /// Returns whether the BMC works: it has its own power, usually from its host's feed.
    pub(super) fn is_alive(&self) -> bool {
        let dies = self
            .faults
            .has_fault(|what| *what == BmcFaultKind::DiesWithHost);
        let feeds = |system: &BmcSystem| match system.controls {
            PowerControl::Outlet => true,
            PowerControl::Power if dies => system.machine.power_state().is_powered(),
            PowerControl::Power => system.machine.is_fed(),
        };
        self.systems.is_empty() || self.systems.iter().any(feeds)
    }
}

impl BmcSystem {
    /// Returns whether the host is on in truth, whatever the BMC reports.
    pub(super) fn is_on(&self, bmc: &str) -> bool {
        match self.controls {
            PowerControl::Power => self.machine.power_state().is_powered(),
            PowerControl::Outlet => !self.machine.is_outlet_open(bmc),
        }
    }
}

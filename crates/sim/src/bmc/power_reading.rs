//! The power state that a simulated BMC reports: the true one, unless a fault changes it.

use dogwatch_kubesim::machine::MachineState;
use jiff::SignedDuration;
use serde_json::Value;
use tokio::time::Instant;

use super::bmc_state::{BmcState, BmcSystem};
use super::fault::BmcFaultKind;
use super::fault_values;
use super::sim_bmc::{PowerControl, SimBmc};

/// The value of `PowerState` in a system's document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReportedPowerState {
    /// A value that Redfish defines.
    Word(&'static str),
    /// The value that a fault sets; `null` is JSON null, `absent` omits the property.
    Whatever(String),
}

impl ReportedPowerState {
    pub fn write_power_state(&self, document: &mut Value) {
        document["PowerState"] = match self {
            ReportedPowerState::Word(word) => (*word).into(),
            ReportedPowerState::Whatever(word) => match word.as_str() {
                "absent" => return,
                "null" => Value::Null,
                word => word.into(),
            },
        };
    }
}

impl SimBmc {
    /// `PowerState` of a system; `None`: there is no such system.
    pub(super) fn reported_power_state(
        &self,
        held: &mut BmcState,
        id: &str,
    ) -> Option<ReportedPowerState> {
        if held
            .faults
            .has_fault(|what| *what == BmcFaultKind::NoSuchSystem)
        {
            return None;
        }
        held.find_system(id)?;
        if let Some(word) = held.faults.strike_first(fault_values::power_state_word) {
            return Some(ReportedPowerState::Whatever(word));
        }
        let contradicts = |what: &BmcFaultKind| (*what == BmcFaultKind::Contradicts).then_some(());
        if held.faults.strike_first(contradicts).is_some() {
            held.contradictions += 1;
            let word = if held.contradictions % 2 == 1 {
                "Off"
            } else {
                "On"
            };
            return Some(ReportedPowerState::Word(word));
        }
        let age = held.faults.strike_first(fault_values::stale_age);
        let system = held.find_system(id)?;
        let word = match age {
            Some(age) => self.past_power_word(system, age),
            None => self.current_power_word(system),
        };
        Some(ReportedPowerState::Word(word))
    }

    /// Returns whether the BMC believes that the system is on. Commands are checked against this.
    pub(super) fn is_reported_on(&self, system: &BmcSystem) -> bool {
        system.is_on(self.name()) && !system.is_reporting_off()
    }

    fn current_power_word(&self, system: &BmcSystem) -> &'static str {
        if system.is_reporting_off() {
            return "Off";
        }
        let transition = system.pending.last().and_then(|pending| pending.transition);
        match transition {
            Some(word) if self.0.spec.profile.has_transitions => return word,
            Some(_) | None => {}
        }
        match (system.controls, system.machine.power_state()) {
            (PowerControl::Power, state) => self.power_word(&state),
            (PowerControl::Outlet, _) if system.is_on(self.name()) => "On",
            (PowerControl::Outlet, _) => "Off",
        }
    }

    fn power_word(&self, state: &MachineState) -> &'static str {
        match state {
            MachineState::Off => "Off",
            MachineState::ShuttingDown { .. } if self.0.spec.profile.has_transitions => {
                "PoweringOff"
            }
            MachineState::Booting { .. }
            | MachineState::Running { .. }
            | MachineState::ShuttingDown { .. } => "On",
        }
    }

    fn past_power_word(&self, system: &BmcSystem, age: std::time::Duration) -> &'static str {
        let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
        let then = self.0.spec.clock.now().saturating_sub(age);
        let then = then.unwrap_or(jiff::Timestamp::MIN);
        self.power_word(system.machine.transition_log().state_at(then))
    }
}

impl BmcSystem {
    fn is_reporting_off(&self) -> bool {
        self.says_off_until
            .is_some_and(|until| Instant::now() < until)
    }
}

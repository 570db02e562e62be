//! What a BMC says of the power: the truth, unless something is wrong with it.

use jiff::SignedDuration;
use serde_json::Value;
use tokio::time::Instant;

use super::fault::What;
use super::held::{Held, System};
use super::machine::State;
use super::pick;
use super::simulated::{Controls, SimBmc};

/// What a system's document has in `PowerState`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// A word that Redfish knows.
    Word(&'static str),
    /// What a fault says; `null` and `absent` are what they say.
    Whatever(String),
}

impl Said {
    /// Writes it there.
    pub fn write(&self, document: &mut Value) {
        document["PowerState"] = match self {
            Said::Word(word) => (*word).into(),
            Said::Whatever(word) => match word.as_str() {
                "absent" => return,
                "null" => Value::Null,
                word => word.into(),
            },
        };
    }
}

impl SimBmc {
    /// `PowerState` of a system; `None`: there is no such system.
    pub(super) fn power_state(&self, held: &mut Held, id: &str) -> Option<Said> {
        if held.faults.has(|what| *what == What::NoSuchSystem) {
            return None;
        }
        held.system(id)?;
        if let Some(word) = held.faults.strike(pick::word) {
            return Some(Said::Whatever(word));
        }
        let contradicts = |what: &What| (*what == What::Contradicts).then_some(());
        if held.faults.strike(contradicts).is_some() {
            held.contradictions += 1;
            let word = if held.contradictions % 2 == 1 {
                "Off"
            } else {
                "On"
            };
            return Some(Said::Word(word));
        }
        let age = held.faults.strike(pick::stale);
        let system = held.system(id)?;
        let word = match age {
            Some(age) => self.formerly(system, age),
            None => self.says(system),
        };
        Some(Said::Word(word))
    }

    /// What it believes: what a command is held against.
    pub(super) fn believes_on(&self, system: &System) -> bool {
        system.is_on(self.name()) && !system.says_off()
    }

    fn says(&self, system: &System) -> &'static str {
        if system.says_off() {
            return "Off";
        }
        let transition = system.pending.last().and_then(|pending| pending.transition);
        match transition {
            Some(word) if self.0.spec.shape.has_transitions => return word,
            Some(_) | None => {}
        }
        match (system.controls, system.machine.state()) {
            (Controls::Power, state) => self.spells(&state),
            (Controls::Outlet, _) if system.is_on(self.name()) => "On",
            (Controls::Outlet, _) => "Off",
        }
    }

    fn spells(&self, state: &State) -> &'static str {
        match state {
            State::Off => "Off",
            State::ShuttingDown { .. } if self.0.spec.shape.has_transitions => "PoweringOff",
            State::Booting { .. } | State::Running { .. } | State::ShuttingDown { .. } => "On",
        }
    }

    fn formerly(&self, system: &System, age: std::time::Duration) -> &'static str {
        let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
        let then = self.0.spec.clock.now().saturating_sub(age);
        let then = then.unwrap_or(jiff::Timestamp::MIN);
        self.spells(system.machine.log().state_at(then))
    }
}

impl System {
    fn says_off(&self) -> bool {
        self.says_off_until
            .is_some_and(|until| Instant::now() < until)
    }
}

//! The log of what a machine did: the truth with which a proof of "off" is compared.

use std::fmt;

use jiff::Timestamp;

use super::MachineState;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransitionCause {
    /// The BMC or outlet of this name carried out a command.
    Device(String),
    /// A boot or a shutdown that was under way ended.
    Done,
    /// The machine's own operating system rebooted.
    Reboot,
    /// A person in front of the machine did it.
    Hand,
    /// The machine came back by itself.
    Nobody,
}

impl fmt::Display for TransitionCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransitionCause::Device(name) => write!(f, "by {name}"),
            TransitionCause::Done => f.write_str("done"),
            TransitionCause::Reboot => f.write_str("by its operating system"),
            TransitionCause::Hand => f.write_str("by hand"),
            TransitionCause::Nobody => f.write_str("by itself"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineTransition {
    /// True time.
    pub at: Timestamp,
    pub to: MachineState,
    pub cause: TransitionCause,
}

/// How long the processes of one boot lived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootLifetime {
    pub boot: String,
    pub from: Timestamp,
    /// `None`: they still live.
    pub until: Option<Timestamp>,
}

/// Everything that happened to a machine, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineLog {
    begun: (Timestamp, MachineState),
    pub transitions: Vec<MachineTransition>,
    /// Which boots had processes, and for how long.
    pub lives: Vec<BootLifetime>,
}

impl MachineLog {
    pub(super) fn starting_with(state: &MachineState, at: Timestamp) -> Self {
        let life = |boot: &str| BootLifetime {
            boot: boot.to_owned(),
            from: at,
            until: None,
        };
        Self {
            begun: (at, state.clone()),
            transitions: Vec::new(),
            lives: state.running_boot().map(life).into_iter().collect(),
        }
    }

    pub(super) fn record_transition(
        &mut self,
        at: Timestamp,
        to: MachineState,
        cause: TransitionCause,
    ) {
        let living = self.lives.last().filter(|life| life.until.is_none());
        let before = living.map(|life| life.boot.clone());
        if before.as_deref() != to.running_boot() {
            if let Some(life) = self.lives.last_mut().filter(|life| life.until.is_none()) {
                life.until = Some(at);
            }
            let begun = to.running_boot().map(|boot| BootLifetime {
                boot: boot.to_owned(),
                from: at,
                until: None,
            });
            self.lives.extend(begun);
        }
        self.transitions.push(MachineTransition { at, to, cause });
    }

    /// Returns the state at this time. Before the log begins, that is the initial state.
    pub fn state_at(&self, time: Timestamp) -> &MachineState {
        let earlier = |transition: &&MachineTransition| transition.at <= time;
        let last = self.transitions.iter().rev().find(earlier);
        last.map_or(&self.begun.1, |transition| &transition.to)
    }

    /// Returns whether a process lived at this time, the moment of its end included.
    pub fn had_processes_at(&self, time: Timestamp) -> bool {
        let covers =
            |life: &BootLifetime| life.from <= time && life.until.is_none_or(|until| time <= until);
        self.lives.iter().any(covers)
    }

    /// Counts how often the power was cut.
    pub fn count_power_offs(&self) -> usize {
        let off = |transition: &&MachineTransition| transition.to == MachineState::Off;
        self.transitions.iter().filter(off).count()
    }

    /// Counts how often the power was switched on.
    pub fn count_power_ons(&self) -> usize {
        let states = self.transitions.iter().map(|transition| &transition.to);
        let before = std::iter::once(&self.begun.1).chain(states.clone());
        let came = |(before, after): &(&MachineState, &MachineState)| {
            !before.is_powered() && after.is_powered()
        };
        before.zip(states).filter(came).count()
    }
}

impl fmt::Display for MachineLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for MachineTransition { at, to, cause } in &self.transitions {
            let word = match to {
                MachineState::Off => "off",
                MachineState::Booting { .. } => "booting",
                MachineState::Running { .. } => "running",
                MachineState::ShuttingDown { .. } => "shutting down",
            };
            writeln!(f, "{at} {word}, {cause}")?;
        }
        Ok(())
    }
}

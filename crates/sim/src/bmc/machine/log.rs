//! What happened to a machine: the truth that a proof of "off" is held against.

use std::fmt;

use dogwatch_core::name::BootId;
use jiff::Timestamp;

use super::State;

/// Why a machine changed its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// A BMC or an outlet of this name did it, as it was told.
    Device(String),
    /// What was begun ended: its boot, or its shutdown.
    Done,
    /// Its own operating system rebooted.
    Reboot,
    /// Somebody stood before it.
    Hand,
    /// Nobody did: it came back by itself.
    Nobody,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Device(name) => write!(f, "by {name}"),
            Cause::Done => f.write_str("done"),
            Cause::Reboot => f.write_str("by its operating system"),
            Cause::Hand => f.write_str("by hand"),
            Cause::Nobody => f.write_str("by itself"),
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// When, by the true clock.
    pub at: Timestamp,
    /// What it is from then on.
    pub to: State,
    /// Why.
    pub cause: Cause,
}

/// How long the processes of one boot lived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// The boot.
    pub boot: BootId,
    /// Since when.
    pub from: Timestamp,
    /// Until when; `None`: they still live.
    pub until: Option<Timestamp>,
}

/// Everything that happened, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    begun: (Timestamp, State),
    /// The changes.
    pub transitions: Vec<Transition>,
    /// Whose processes lived, and how long.
    pub lives: Vec<Life>,
}

impl Log {
    pub(super) fn beginning(state: &State, at: Timestamp) -> Self {
        let life = |boot: &BootId| Life {
            boot: boot.clone(),
            from: at,
            until: None,
        };
        Self {
            begun: (at, state.clone()),
            transitions: Vec::new(),
            lives: state.living().map(life).into_iter().collect(),
        }
    }

    pub(super) fn changed(&mut self, at: Timestamp, to: State, cause: Cause) {
        let living = self.lives.last().filter(|life| life.until.is_none());
        let before = living.map(|life| life.boot.clone());
        if before.as_ref() != to.living() {
            if let Some(life) = self.lives.last_mut().filter(|life| life.until.is_none()) {
                life.until = Some(at);
            }
            let begun = to.living().map(|boot| Life {
                boot: boot.clone(),
                from: at,
                until: None,
            });
            self.lives.extend(begun);
        }
        self.transitions.push(Transition { at, to, cause });
    }

    /// What it did at this time; before its beginning, what it began with.
    pub fn state_at(&self, time: Timestamp) -> &State {
        let earlier = |transition: &&Transition| transition.at <= time;
        let last = self.transitions.iter().rev().find(earlier);
        last.map_or(&self.begun.1, |transition| &transition.to)
    }

    /// Whether a process lived at this time. At the very moment of its end it did.
    pub fn lived_at(&self, time: Timestamp) -> bool {
        let covers =
            |life: &Life| life.from <= time && life.until.is_none_or(|until| time <= until);
        self.lives.iter().any(covers)
    }

    /// How often the power went away.
    pub fn power_offs(&self) -> usize {
        let off = |transition: &&Transition| transition.to == State::Off;
        self.transitions.iter().filter(off).count()
    }

    /// How often the power came.
    pub fn power_ons(&self) -> usize {
        let states = self.transitions.iter().map(|transition| &transition.to);
        let before = std::iter::once(&self.begun.1).chain(states.clone());
        let came = |(before, after): &(&State, &State)| !before.is_powered() && after.is_powered();
        before.zip(states).filter(came).count()
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Transition { at, to, cause } in &self.transitions {
            let word = match to {
                State::Off => "off",
                State::Booting { .. } => "booting",
                State::Running { .. } => "running",
                State::ShuttingDown { .. } => "shutting down",
            };
            writeln!(f, "{at} {word}, {cause}")?;
        }
        Ok(())
    }
}

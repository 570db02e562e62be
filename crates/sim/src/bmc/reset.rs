//! The kinds of reset that Redfish knows, and what they do.

use std::fmt;

/// `ResetType` of DMTF's DSP0268, as far as servers have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResetType {
    /// Power on.
    On,
    /// Power on, whatever the firmware thinks of it.
    ForceOn,
    /// Cut the power.
    ForceOff,
    /// Ask the operating system to stop.
    GracefulShutdown,
    /// Restart without asking.
    ForceRestart,
    /// Ask the operating system to restart.
    GracefulRestart,
    /// The power button, for a moment.
    PushPowerButton,
    /// Off, and on again.
    PowerCycle,
    /// An interrupt for a dump.
    Nmi,
}

/// What a command is meant to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Give power.
    On,
    /// Ask the operating system to stop.
    Soft,
    /// Take the power.
    Off,
    /// Restart what runs.
    Restart,
    /// Off, and on again.
    Cycle,
    /// Nothing that concerns the power.
    Nothing,
}

impl ResetType {
    /// All of them.
    pub const ALL: [ResetType; 9] = [
        ResetType::On,
        ResetType::ForceOn,
        ResetType::ForceOff,
        ResetType::GracefulShutdown,
        ResetType::ForceRestart,
        ResetType::GracefulRestart,
        ResetType::PushPowerButton,
        ResetType::PowerCycle,
        ResetType::Nmi,
    ];

    /// As Redfish spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            ResetType::On => "On",
            ResetType::ForceOn => "ForceOn",
            ResetType::ForceOff => "ForceOff",
            ResetType::GracefulShutdown => "GracefulShutdown",
            ResetType::ForceRestart => "ForceRestart",
            ResetType::GracefulRestart => "GracefulRestart",
            ResetType::PushPowerButton => "PushPowerButton",
            ResetType::PowerCycle => "PowerCycle",
            ResetType::Nmi => "Nmi",
        }
    }

    /// The reverse of [`Self::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// What it does to a host that is on, or is not; `None`: the host is there already, or there is
    /// nothing that it could be done to.
    pub(super) fn effect(self, is_on: bool) -> Option<Effect> {
        match (self, is_on) {
            (ResetType::On | ResetType::ForceOn | ResetType::PushPowerButton, false) => {
                Some(Effect::On)
            }
            (ResetType::ForceOff, true) => Some(Effect::Off),
            (ResetType::GracefulShutdown | ResetType::PushPowerButton, true) => Some(Effect::Soft),
            (ResetType::ForceRestart | ResetType::GracefulRestart, true) => Some(Effect::Restart),
            (ResetType::PowerCycle, true) => Some(Effect::Cycle),
            (ResetType::Nmi, true) => Some(Effect::Nothing),
            (ResetType::On | ResetType::ForceOn, true)
            | (
                ResetType::ForceOff
                | ResetType::GracefulShutdown
                | ResetType::ForceRestart
                | ResetType::GracefulRestart
                | ResetType::PowerCycle
                | ResetType::Nmi,
                false,
            ) => None,
        }
    }
}

impl fmt::Display for ResetType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

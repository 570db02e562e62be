//! Redfish's reset types and their effects.

use std::fmt;

/// `ResetType` of DMTF's DSP0268, without the values that servers do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResetType {
    On,
    /// Power on, even if the firmware objects.
    ForceOn,
    ForceOff,
    /// Ask the operating system to stop.
    GracefulShutdown,
    /// Restart without asking the operating system.
    ForceRestart,
    /// Ask the operating system to restart.
    GracefulRestart,
    PushPowerButton,
    PowerCycle,
    /// Send a non-maskable interrupt, for a crash dump.
    Nmi,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResetEffect {
    On,
    /// Ask the operating system to stop.
    Soft,
    Off,
    Restart,
    Cycle,
    /// Nothing that changes the power.
    Nothing,
}

impl ResetType {
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

    /// The name in Redfish.
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

    /// Returns the effect on a host that is on or off; `None`: the host is already in that state,
    /// or the command does not apply.
    pub(super) fn effect_on_host(self, is_on: bool) -> Option<ResetEffect> {
        match (self, is_on) {
            (ResetType::On | ResetType::ForceOn | ResetType::PushPowerButton, false) => {
                Some(ResetEffect::On)
            }
            (ResetType::ForceOff, true) => Some(ResetEffect::Off),
            (ResetType::GracefulShutdown | ResetType::PushPowerButton, true) => {
                Some(ResetEffect::Soft)
            }
            (ResetType::ForceRestart | ResetType::GracefulRestart, true) => {
                Some(ResetEffect::Restart)
            }
            (ResetType::PowerCycle, true) => Some(ResetEffect::Cycle),
            (ResetType::Nmi, true) => Some(ResetEffect::Nothing),
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

//! BMC commands, readings and faults: the types that drivers and decisions share.
//!
//! Source: specification §3.3; DMTF Redfish DSP0268 `PowerState` and `ResetType`; IPMI 2.0 §28.

pub use dogwatch_api::bare_metal_host::PowerCommand;

use super::PowerReason;

/// A BMC's power state. Only [`PowerReading::Off`] counts as off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PowerReading {
    /// On, or any state in which the machine still runs (Redfish's `Paused`).
    On,
    PoweringOn,
    PoweringOff,
    Off,
}

impl PowerReading {
    pub const ALL: [PowerReading; 4] = [
        PowerReading::On,
        PowerReading::PoweringOn,
        PowerReading::PoweringOff,
        PowerReading::Off,
    ];

    /// As decision logs and `dogwatch check` write it.
    pub fn as_str(self) -> &'static str {
        match self {
            PowerReading::On => "On",
            PowerReading::PoweringOn => "PoweringOn",
            PowerReading::PoweringOff => "PoweringOff",
            PowerReading::Off => "Off",
        }
    }
}

/// A reading, and the machine that it is of, as far as the same answer says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentifiedReading {
    pub power: PowerReading,
    /// The machine's system UUID. `None`: the answer has none that can be compared.
    pub system_uuid: Option<String>,
}

impl IdentifiedReading {
    /// A reading that does not say of which machine it is.
    pub fn without_uuid(power: PowerReading) -> Self {
        Self {
            power,
            system_uuid: None,
        }
    }
}

/// A BMC's answer to a command. It proves nothing about the power state: that is read afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandAnswer {
    /// Accepted (200, 204, or a task that succeeded).
    Accepted,
    /// Accepted, but nobody can tell when the BMC runs it (Redfish 202 that names no task, or a
    /// task that the BMC has forgotten). The BMC may still run it for `--power-settle`.
    AcceptedWithoutTask,
    /// Refused because the host is already in that state (Redfish 400 and 409, "Already OFF").
    AlreadyThere,
}

impl CommandAnswer {
    /// As decision logs write it.
    pub fn as_str(self) -> &'static str {
        match self {
            CommandAnswer::Accepted => "Accepted",
            CommandAnswer::AcceptedWithoutTask => "AcceptedWithoutTask",
            CommandAnswer::AlreadyThere => "AlreadyThere",
        }
    }
}

/// Why a BMC did not do what it was asked; each class needs a different response from a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultClass {
    /// Name, route or port.
    Unreachable,
    /// The BMC answers and refuses: 403, 503, a busy controller, a failed task.
    Refused,
    WrongCredentials,
    /// The certificate or the protocol version.
    Tls,
    /// The BMC answers and does not know this system.
    NoSuchSystem,
    /// The BMC knows the system and cannot run this command.
    Unsupported,
    /// No answer within Dogwatch's deadline.
    TimedOut,
    /// An impossible answer: half a document, an unknown state, two states at once.
    Contradiction,
}

impl FaultClass {
    pub const ALL: [FaultClass; 8] = [
        FaultClass::Unreachable,
        FaultClass::Refused,
        FaultClass::WrongCredentials,
        FaultClass::Tls,
        FaultClass::NoSuchSystem,
        FaultClass::Unsupported,
        FaultClass::TimedOut,
        FaultClass::Contradiction,
    ];

    /// The reason in conditions, Events and metrics.
    pub fn power_reason(self) -> PowerReason {
        match self {
            FaultClass::Unreachable => PowerReason::Unreachable,
            FaultClass::Refused => PowerReason::RefusedByBMC,
            FaultClass::WrongCredentials => PowerReason::WrongCredentials,
            FaultClass::Tls => PowerReason::TLSFailed,
            FaultClass::NoSuchSystem => PowerReason::NoSuchSystem,
            FaultClass::Unsupported => PowerReason::UnsupportedByBMC,
            FaultClass::TimedOut => PowerReason::BMCTimedOut,
            FaultClass::Contradiction => PowerReason::BMCContradictsItself,
        }
    }

    /// The sentence that tells a person what to do next.
    pub fn next_step(self) -> &'static str {
        self.power_reason().next_step().unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BmcFault {
    pub class: FaultClass,
    /// A sentence in lower case, without secrets.
    pub message: String,
    /// For a command: whether the BMC may have received it and may still run it. False only if the
    /// connection was never made; true for every failure after the first byte.
    pub may_have_run: bool,
}

impl BmcFault {
    /// A fault of a call that certainly changed nothing.
    pub fn without_effect(class: FaultClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            may_have_run: false,
        }
    }

    /// A fault of a call that the BMC may or may not have carried out.
    pub fn with_unknown_effect(class: FaultClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            may_have_run: true,
        }
    }
}

/// The result of a check of power control, which changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BmcInfo {
    /// The machine's system UUID, if the BMC reports it.
    pub system_uuid: Option<String>,
    /// The supported commands. Empty: the BMC does not report them, so every command may be tried.
    pub commands: Vec<PowerCommand>,
    /// Maker and model, as the BMC reports them.
    pub product: Option<String>,
}

impl BmcInfo {
    pub fn supports_command(&self, command: PowerCommand) -> bool {
        self.commands.is_empty() || self.commands.contains(&command)
    }
}

/// The cost of one call to a driver. It sets how often the state is read while a command is
/// pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallCost {
    /// One request on an open connection: a millisecond.
    Request,
    /// A child process: 60 to 400 ms of processor time. Source: `docs/numbers.md`.
    Process,
}

/// Combines the readings of all devices of one level: off only if every device is off.
///
/// # Errors
/// The fault of the first device that failed.
pub fn combine_readings(
    readings: impl IntoIterator<Item = Result<PowerReading, BmcFault>>,
) -> Result<PowerReading, BmcFault> {
    let mut readings = readings.into_iter().collect::<Result<Vec<_>, _>>()?;
    readings.sort();
    let silent = || BmcFault::without_effect(FaultClass::Unsupported, "the level has no device");
    readings.first().copied().ok_or_else(silent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_off_only_if_every_device_is() {
        use PowerReading::{Off, On, PoweringOff, PoweringOn};
        for (devices, level) in [
            (vec![Off], Off),
            (vec![Off, Off], Off),
            (vec![Off, On], On),
            (vec![Off, PoweringOff], PoweringOff),
            (vec![PoweringOff, PoweringOn], PoweringOn),
        ] {
            let said = combine_readings(devices.iter().copied().map(Ok));
            assert_eq!(said, Ok(level), "{devices:?}");
        }
        let fault = BmcFault::without_effect(FaultClass::TimedOut, "no answer");
        assert_eq!(combine_readings([Ok(Off), Err(fault.clone())]), Err(fault));
        assert!(combine_readings([]).is_err());
    }
}

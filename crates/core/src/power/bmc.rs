//! What a BMC can be asked, and what it can answer: the words that drivers and decisions share.
//!
//! Source: specification §3.3; DMTF Redfish DSP0268 `PowerState` and `ResetType`; IPMI 2.0 §28.

use std::fmt;

/// What is asked of a BMC. There is no "cycle": off must be seen and confirmed before on is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Command {
    /// Power on.
    On,
    /// Ask the operating system to shut down.
    SoftOff,
    /// Take the power away.
    Off,
}

impl Command {
    /// As it stands on the host, in Events and in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Command::On => "PowerOn",
            Command::SoftOff => "SoftPowerOff",
            Command::Off => "PowerOff",
        }
    }

    /// The reverse of [`Self::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        [Command::On, Command::SoftOff, Command::Off]
            .into_iter()
            .find(|command| command.as_str() == text)
    }

    /// Whether it is meant to take the power away.
    pub fn is_off(self) -> bool {
        matches!(self, Command::SoftOff | Command::Off)
    }
}

/// What a BMC says of the power. Only [`Reading::Off`] is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reading {
    /// On, or anything that still runs (Redfish's `Paused`).
    On,
    /// On its way to on.
    PoweringOn,
    /// On its way to off.
    PoweringOff,
    /// Off.
    Off,
}

/// A command was answered. The answer proves nothing of the state: that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Accepted (200, 204, or a task that ended well).
    Accepted,
    /// Accepted, and nobody can say when it is carried out (Redfish 202 that names no task, or one that is
    /// forgotten): the BMC may still run it for `--power-settle`.
    AcceptedWithoutTask,
    /// Refused because the host is in that state already (Redfish 400 and 409, "Already OFF").
    AlreadyThere,
}

/// Why a BMC did not do what it was asked, by what a person does about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// No way to it: name, route, port.
    Unreachable,
    /// It answers, and will not: 403, 503, a busy controller, a failed task.
    Refused,
    /// User or password.
    WrongCredentials,
    /// Certificate or protocol version.
    Tls,
    /// It answers, and does not know this system.
    NoSuchSystem,
    /// It knows the system and cannot do this.
    Unsupported,
    /// No answer within our deadline.
    TimedOut,
    /// It says what cannot be: half a document, a state nobody knows, two states at once.
    Contradiction,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 8] = [
        Class::Unreachable,
        Class::Refused,
        Class::WrongCredentials,
        Class::Tls,
        Class::NoSuchSystem,
        Class::Unsupported,
        Class::TimedOut,
        Class::Contradiction,
    ];

    /// The reason of conditions, Events and metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Class::Unreachable => "Unreachable",
            Class::Refused => "RefusedByBMC",
            Class::WrongCredentials => "WrongCredentials",
            Class::Tls => "TLSFailed",
            Class::NoSuchSystem => "NoSuchSystem",
            Class::Unsupported => "UnsupportedByBMC",
            Class::TimedOut => "BMCTimedOut",
            Class::Contradiction => "BMCContradictsItself",
        }
    }

    /// What a person does next.
    pub fn next_step(self) -> &'static str {
        match self {
            Class::Unreachable => "check the address, the network and whether the BMC has power",
            Class::Refused => "look at the BMC's own log; reset the BMC if it stays so",
            Class::WrongCredentials => "correct username and password in the host's Secret",
            Class::Tls => {
                "put the BMC's CA into the Secret as ca.crt, or set disableCertificateVerification"
            }
            Class::NoSuchSystem => "correct the system's path in spec.bmc.address",
            Class::Unsupported => "use another driver, or add a level (a PDU) to the host",
            Class::TimedOut => {
                "reset the BMC if it stays so; a second level (a PDU) covers a hung BMC"
            }
            Class::Contradiction => "update or reset the BMC; its word is not taken meanwhile",
        }
    }
}

/// A call to a BMC that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// What a person does about it.
    pub class: Class,
    /// A sentence without any secret; lower case.
    pub message: String,
    /// Of a command: it may have been received, so that the BMC may still run it. A connection that
    /// was never made has run nothing; everything after the first byte may have.
    pub may_have_run: bool,
}

impl Fault {
    /// A call that changed nothing, for certain.
    pub fn harmless(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            may_have_run: false,
        }
    }

    /// A call of which nobody knows how it ended.
    pub fn unknown_end(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            may_have_run: true,
        }
    }
}

/// What a check of power control finds out, without changing anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// The machine's system UUID, where the BMC tells it.
    pub system_uuid: Option<String>,
    /// What it can do. Empty: it does not say; every command may be tried.
    pub commands: Vec<Command>,
    /// Maker and model, as the BMC says them.
    pub product: Option<String>,
}

impl About {
    /// Whether the command may be tried.
    pub fn can(&self, command: Command) -> bool {
        self.commands.is_empty() || self.commands.contains(&command)
    }
}

/// How dear a call to a driver is; it sets how often the state is read while something is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// A request on an open connection: a millisecond.
    Request,
    /// A child process: 60 to 400 ms of processor time. Source: `docs/numbers.md`.
    Process,
}

/// What the devices of one level say together: off only if every one is, nothing if one is silent.
///
/// # Errors
/// The first device's fault.
pub fn together(
    readings: impl IntoIterator<Item = Result<Reading, Fault>>,
) -> Result<Reading, Fault> {
    let mut readings = readings.into_iter().collect::<Result<Vec<_>, _>>()?;
    readings.sort();
    let silent = || Fault::harmless(Class::Unsupported, "the level has no device");
    readings.first().copied().ok_or_else(silent)
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_off_only_if_every_device_is() {
        use Reading::{Off, On, PoweringOff, PoweringOn};
        for (devices, level) in [
            (vec![Off], Off),
            (vec![Off, Off], Off),
            (vec![Off, On], On),
            (vec![Off, PoweringOff], PoweringOff),
            (vec![PoweringOff, PoweringOn], PoweringOn),
        ] {
            let said = together(devices.iter().copied().map(Ok));
            assert_eq!(said, Ok(level), "{devices:?}");
        }
        let fault = Fault::harmless(Class::TimedOut, "no answer");
        assert_eq!(together([Ok(Off), Err(fault.clone())]), Err(fault));
        assert!(together([]).is_err());
    }
}

//! The result of checking one device.

use dogwatch_core::explain::scheme_and_host;
use dogwatch_core::power::{FaultClass, HostSnapshot, PowerReason};
use serde::Serialize;

use crate::exit::{CliExitCode, CommandFailure};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceCheck {
    /// `NAMESPACE/NAME`.
    pub host: String,
    /// Absent when the check is about the whole host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<usize>,
    /// Scheme and host name of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bmc: Option<String>,
    pub works: PowerControlWorks,
    pub reason: String,
    /// A sentence without secrets.
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_uuid: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PowerControlWorks {
    Yes,
    No,
    /// Nobody has checked, or the check was impossible.
    Unknown,
}

impl DeviceCheck {
    pub fn not_working(
        host: &HostSnapshot,
        level: Option<usize>,
        reason: PowerReason,
        message: impl Into<String>,
    ) -> Self {
        Self {
            next: reason.next_step().map(str::to_owned),
            ..Self::without_reading(host, level, reason.as_str(), message)
        }
    }

    /// A result with this reason of a condition, and nothing else that was read.
    pub fn without_reading(
        host: &HostSnapshot,
        level: Option<usize>,
        reason: &str,
        message: impl Into<String>,
    ) -> Self {
        let device = host.levels.get(level.unwrap_or(0));
        let device = device.and_then(|level| level.devices.first());
        let bmc = device.and_then(|device| device.address.as_ref().ok());
        Self {
            host: host.name.to_string(),
            level,
            bmc: bmc.map(scheme_and_host),
            works: PowerControlWorks::No,
            reason: reason.to_owned(),
            message: message.into(),
            next: None,
            power: None,
            product: None,
            system_uuid: None,
        }
    }
}

/// An unknown result counts as a failure.
pub fn power_control_verdict(checked: &[DeviceCheck], hosts: usize) -> Result<(), CommandFailure> {
    let count = |works: PowerControlWorks| {
        let mut names: Vec<&str> = checked
            .iter()
            .filter(|one| one.works == works)
            .map(|one| one.host.as_str())
            .collect();
        names.dedup();
        names.len()
    };
    let of = match hosts {
        1 => "1 host".to_owned(),
        many => format!("{many} hosts"),
    };
    if count(PowerControlWorks::No) > 0 {
        let text = format!(
            "power control does not work now for {} of {of}",
            count(PowerControlWorks::No)
        );
        return Err(CommandFailure::new(CliExitCode::Blocked, text));
    }
    if count(PowerControlWorks::Unknown) > 0 {
        let text = format!(
            "it is not known whether power control works for {} of {of}",
            count(PowerControlWorks::Unknown)
        );
        return Err(CommandFailure::new(CliExitCode::Failed, text)
            .with_next_step("see the lines marked unknown"));
    }
    Ok(())
}

/// The fault class's reason and next step. A check from this machine takes another network path
/// than the controller's.
pub fn next_step_of_class(class: FaultClass) -> String {
    match class {
        FaultClass::Unreachable | FaultClass::TimedOut => format!(
            "{}; the check ran on this machine: the controller may reach the BMC another way (--from-status shows the controller's result)",
            class.next_step()
        ),
        FaultClass::Refused
        | FaultClass::WrongCredentials
        | FaultClass::Tls
        | FaultClass::NoSuchSystem
        | FaultClass::Unsupported
        | FaultClass::Contradiction => class.next_step().to_owned(),
    }
}

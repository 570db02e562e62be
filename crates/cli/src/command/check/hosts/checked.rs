//! What a check of one device came to.

use dogwatch_core::explain::{next_step, place};
use dogwatch_core::power::{Class, Host};
use serde::Serialize;

use crate::exit::{Exit, Failure};

/// What one device came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    /// `NAMESPACE/NAME`.
    pub host: String,
    /// Which level; absent where it is about the whole host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<usize>,
    /// Scheme and host of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bmc: Option<String>,
    /// Whether it would work.
    pub works: Works,
    /// One word.
    pub reason: String,
    /// A sentence, without any secret.
    pub message: String,
    /// What a person does next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// What it said of the power.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<&'static str>,
    /// Maker and model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// The machine's UUID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_uuid: Option<String>,
}

/// Whether power control would work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Works {
    /// It would.
    Yes,
    /// It would not.
    No,
    /// Nobody has looked, or could.
    Unknown,
}

impl Checked {
    /// What does not work, and why.
    pub fn no(host: &Host, level: Option<usize>, reason: &str, message: impl Into<String>) -> Self {
        let device = host.levels.get(level.unwrap_or(0));
        let device = device.and_then(|level| level.devices.first());
        let bmc = device.and_then(|device| device.address.as_ref().ok());
        Self {
            host: host.name.to_string(),
            level,
            bmc: bmc.map(place),
            works: Works::No,
            reason: reason.to_owned(),
            message: message.into(),
            next: next_step(reason).map(str::to_owned),
            power: None,
            product: None,
            system_uuid: None,
        }
    }
}

/// What nobody knows is not well.
pub fn verdict(checked: &[Checked], hosts: usize) -> Result<(), Failure> {
    let count = |works: Works| {
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
    if count(Works::No) > 0 {
        let text = format!(
            "power control of {} of {of} would not work now",
            count(Works::No)
        );
        return Err(Failure::new(Exit::Blocked, text));
    }
    if count(Works::Unknown) > 0 {
        let text = format!(
            "whether power control of {} of {of} works is not known",
            count(Works::Unknown)
        );
        return Err(Failure::new(Exit::Failed, text).next("see what is marked unknown"));
    }
    Ok(())
}

/// The class's own reason and next step; what is asked from here goes another way than the controller's.
pub fn next_of(class: Class) -> String {
    match class {
        Class::Unreachable | Class::TimedOut => format!(
            "{}; from here: the controller may have another way (--from-status is its word)",
            class.next_step()
        ),
        Class::Refused
        | Class::WrongCredentials
        | Class::Tls
        | Class::NoSuchSystem
        | Class::Unsupported
        | Class::Contradiction => class.next_step().to_owned(),
    }
}

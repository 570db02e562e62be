//! What is asked of a host: `spec.online`, and the reboot annotations.

use serde_json::Value;

use crate::power::{self, Host, Request};

/// One reboot annotation, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The annotation.
    pub request: Request,
    /// Whether the power controller obeys it in the state that the host is in.
    pub is_obeyed: bool,
    /// Who wrote it and why, where its value says so.
    pub by: Option<String>,
}

/// Where the power is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// On.
    On,
    /// Off, because `spec.online` says so.
    Off,
    /// Off until keys are removed.
    HeldOff,
    /// Off, and then as `spec.online` says.
    Reboot,
}

impl Wanted {
    /// As it is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Wanted::On => "on",
            Wanted::Off => "off",
            Wanted::HeldOff => "held off",
            Wanted::Reboot => "reboot",
        }
    }
}

/// All reboot annotations of the host, by name.
pub fn asked(host: &Host) -> Vec<Asked> {
    let one = |request: Request| Asked {
        is_obeyed: power::is_obeyed(host, &request),
        by: host
            .annotations
            .get(&request.name)
            .and_then(|value| by(value)),
        request,
    };
    power::requests(host).into_iter().map(one).collect()
}

/// Where `spec.online` and the annotations that are obeyed want the power.
pub fn wanted(host: &Host) -> Wanted {
    let asked = asked(host);
    let mut obeyed = asked.iter().filter(|asked| asked.is_obeyed);
    let mut keys = obeyed.clone().filter(|asked| asked.request.key.is_some());
    let status = &host.status;
    let is_pending = status.pending_reboot_since > status.last_powered_on;
    if keys.next().is_some() {
        Wanted::HeldOff
    } else if is_pending || (obeyed.next().is_some() && status.powered_on != Some(false)) {
        Wanted::Reboot
    } else if host.online {
        Wanted::On
    } else {
        Wanted::Off
    }
}

/// `requester` and `reason`, as `dogwatch power` writes them beside the mode.
fn by(value: &str) -> Option<String> {
    let value: Value = serde_json::from_str(value).ok()?;
    let text = |field: &str| value.get(field)?.as_str().filter(|text| !text.is_empty());
    match (text("requester"), text("reason")) {
        (None, None) => None,
        (Some(by), None) => Some(format!("by {by}")),
        (None, Some(reason)) => Some(format!("\"{reason}\"")),
        (Some(by), Some(reason)) => Some(format!("by {by}: \"{reason}\"")),
    }
}

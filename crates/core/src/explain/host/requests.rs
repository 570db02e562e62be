//! What is requested of a host: `spec.online`, and the reboot annotations.

use serde_json::Value;

use crate::power::{self, HostRebootAnnotation, HostSnapshot};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedAnnotation {
    pub request: HostRebootAnnotation,
    /// Whether the power controller obeys it in the host's present state.
    pub is_obeyed: bool,
    /// Requester and reason, if the value names them.
    pub by: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedPower {
    On,
    /// Off, because of `spec.online`.
    Off,
    /// Off until keys are removed.
    HeldOff,
    /// Off, and then as `spec.online` says.
    Reboot,
}

impl WantedPower {
    pub fn as_str(self) -> &'static str {
        match self {
            WantedPower::On => "on",
            WantedPower::Off => "off",
            WantedPower::HeldOff => "held off",
            WantedPower::Reboot => "reboot",
        }
    }
}

/// All reboot annotations of the host, sorted by name.
pub fn explained_annotations(host: &HostSnapshot) -> Vec<ExplainedAnnotation> {
    let one = |request: HostRebootAnnotation| ExplainedAnnotation {
        is_obeyed: power::is_annotation_obeyed(host, &request),
        by: host
            .annotations
            .get(&request.name)
            .and_then(|value| describe_requester(value)),
        request,
    };
    power::reboot_annotations(host)
        .into_iter()
        .map(one)
        .collect()
}

/// The power that `spec.online` and the obeyed annotations request.
pub fn wanted_power(host: &HostSnapshot) -> WantedPower {
    let asked = explained_annotations(host);
    let mut obeyed = asked.iter().filter(|asked| asked.is_obeyed);
    let mut keys = obeyed.clone().filter(|asked| asked.request.key.is_some());
    let status = &host.status;
    let is_pending = status.pending_reboot_since > status.last_powered_on;
    if keys.next().is_some() {
        WantedPower::HeldOff
    } else if is_pending || (obeyed.next().is_some() && status.powered_on != Some(false)) {
        WantedPower::Reboot
    } else if host.online {
        WantedPower::On
    } else {
        WantedPower::Off
    }
}

/// `requester` and `reason`, which `dogwatch power` writes beside the mode.
fn describe_requester(value: &str) -> Option<String> {
    let value: Value = serde_json::from_str(value).ok()?;
    let text = |field: &str| value.get(field)?.as_str().filter(|text| !text.is_empty());
    match (text("requester"), text("reason")) {
        (None, None) => None,
        (Some(by), None) => Some(format!("by {by}")),
        (None, Some(reason)) => Some(format!("\"{reason}\"")),
        (Some(by), Some(reason)) => Some(format!("by {by}: \"{reason}\"")),
    }
}

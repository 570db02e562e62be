//! `status`, of metal3's controller and of Dogwatch's. Fields that metal3 requires of its own
//! controller are optional here. The comments are what `kubectl explain` shows.
//!
//! A status is written as a merge patch. A field of Dogwatch that is absent is written as null,
//! because an older value would stay otherwise. Times have microseconds: they order events.

use std::fmt;

#[cfg(test)]
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime};
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use crate::schema;

/// How many changes of power `status.power.history` keeps.
pub const MAX_POWER_HISTORY: usize = 10;
/// More keys than fit into the 256 KiB of a host's annotations: with a status that could not be
/// written, the host would stay as it is for ever.
pub const MAX_HOLDING_KEYS: usize = 16_384;

/// `status` of a host.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(extend("x-kubernetes-preserve-unknown-fields" = true)))]
#[serde(rename_all = "camelCase", default)]
pub struct BareMetalHostStatus {
    /// False only while the BMC reports off; true also while the power is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub powered_on: Option<bool>,
    /// The host's power, as Dogwatch reads and commands it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<HostPowerStatus>,
    /// The host's state in metal3's life cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning: Option<HostProvisioningStatus>,
    /// metal3's name for the health of the host.
    #[cfg_attr(test, schemars(extend("enum" = [
        "", "OK", "discovered", "error", "delayed", "detached", "servicing",
    ])))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operational_status: Option<String>,
    /// metal3's name for the most recent error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    /// The most recent error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// How often that error occurred in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_count: Option<u32>,
    /// PowerControlReady: whether power control would work now. PowerAsWanted: whether the power is
    /// where it should be. HeldOff: whether reboot annotations keep it off.
    #[cfg_attr(test, schemars(schema_with = "schema::condition_list"))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// `status.provisioning`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(extend("x-kubernetes-preserve-unknown-fields" = true)))]
#[serde(rename_all = "camelCase", default)]
pub struct HostProvisioningStatus {
    /// provisioned, externally provisioned, available, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// metal3's id of it.
    #[serde(rename = "ID", skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// When Dogwatch last powered the host on. Written before the command is sent: whatever ran
    /// before this time has stopped.
    #[cfg_attr(test, schemars(with = "Option<Timestamp>"))]
    pub last_powered_on: Option<MicroTime>,
    /// Since when a reboot is pending; it is done when lastPoweredOn is later.
    #[cfg_attr(test, schemars(with = "Option<Timestamp>"))]
    pub pending_reboot_since: Option<MicroTime>,
}

/// `status.power`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct HostPowerStatus {
    /// The last power state that was read.
    pub state: Option<PowerState>,
    /// When it was read.
    #[cfg_attr(test, schemars(with = "Option<Timestamp>"))]
    pub observed_at: Option<MicroTime>,
    /// When off was confirmed after Dogwatch's own command; absent when that may no longer hold.
    #[cfg_attr(test, schemars(with = "Option<Timestamp>"))]
    pub off_confirmed_at: Option<MicroTime>,
    /// The reboot annotations that the host had then, as KEY=DIGEST.
    #[cfg_attr(test, schemars(schema_with = "confirmed_for"))]
    pub confirmed_for: Option<Vec<String>>,
    /// The newest command, written here before it is sent.
    pub command: Option<HostPowerCommandStatus>,
    /// The provisioning state that was last acted upon.
    pub obeyed_in: Option<String>,
    /// The last value of spec.externallyProvisioned.
    pub externally_provisioned: Option<bool>,
    /// What Dogwatch did, the newest first.
    #[cfg_attr(test, schemars(length(max = MAX_POWER_HISTORY)))]
    pub history: Option<Vec<HostPowerChange>>,
}

/// `status.power.state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub enum PowerState {
    /// The newest reading says on.
    On,
    /// The two newest readings say off.
    Off,
    /// A power-on was sent, and no reading says on yet.
    PoweringOn,
    /// A power-off was sent, or the BMC reports "powering off"; the host is not off yet.
    PoweringOff,
    /// Never read, or the newest reading failed, or off was read once and Dogwatch did not cause
    /// it.
    Unknown,
}

impl PowerState {
    /// As written to the host's status.
    pub fn as_str(self) -> &'static str {
        match self {
            PowerState::On => "On",
            PowerState::Off => "Off",
            PowerState::PoweringOn => "PoweringOn",
            PowerState::PoweringOff => "PoweringOff",
            PowerState::Unknown => "Unknown",
        }
    }

    /// The state that is written like this.
    pub fn from_text(text: &str) -> Option<Self> {
        use PowerState::{Off, On, PoweringOff, PoweringOn, Unknown};
        [On, Off, PoweringOn, PoweringOff, Unknown]
            .into_iter()
            .find(|state| state.as_str() == text)
    }
}

/// There is no "cycle": off must be read and confirmed before a power-on is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub enum PowerCommand {
    /// Powers the host on.
    #[serde(rename = "PowerOn")]
    On,
    /// Asks the operating system to shut down.
    #[serde(rename = "SoftPowerOff")]
    SoftOff,
    /// Cuts the power.
    #[serde(rename = "PowerOff")]
    Off,
}

impl PowerCommand {
    /// As written to the host's status, Events and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            PowerCommand::On => "PowerOn",
            PowerCommand::SoftOff => "SoftPowerOff",
            PowerCommand::Off => "PowerOff",
        }
    }

    /// The command that is written like this.
    pub fn from_text(text: &str) -> Option<Self> {
        [PowerCommand::On, PowerCommand::SoftOff, PowerCommand::Off]
            .into_iter()
            .find(|command| command.as_str() == text)
    }

    /// Whether it is meant to switch the host off.
    pub fn is_power_off(self) -> bool {
        matches!(self, PowerCommand::SoftOff | PowerCommand::Off)
    }
}

impl fmt::Display for PowerCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// `status.power.command`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct HostPowerCommandStatus {
    /// PROCESS/NUMBER, never twice the same.
    pub id: Option<String>,
    /// What was sent.
    pub command: Option<PowerCommand>,
    /// On which level, from 0.
    pub level: Option<usize>,
    /// A digest of that level's devices: an answer of another BMC proves nothing.
    pub target: Option<String>,
    /// When the first command for this purpose was decided.
    #[cfg_attr(test, schemars(with = "Option<Timestamp>"))]
    pub since: Option<MicroTime>,
    /// When it was decided.
    #[cfg_attr(test, schemars(with = "Option<Timestamp>"))]
    pub at: Option<MicroTime>,
    /// The number of this try on its level, from 1.
    pub attempt: Option<u32>,
    /// How many commands for this purpose were sent before it.
    pub before: Option<u32>,
    /// Whether the BMC could still run an earlier command then.
    pub after_unknown: Option<bool>,
    /// The reason, in one word.
    pub why: Option<String>,
    /// The result: not recorded yet, answered, failed, or unknown.
    pub end: Option<HostPowerCommandEnd>,
    /// When.
    #[cfg_attr(test, schemars(with = "Option<Timestamp>"))]
    pub ended_at: Option<MicroTime>,
    /// What went wrong.
    pub message: Option<String>,
}

/// `status.power.command.end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[expect(missing_docs, reason = "the names say it")]
pub enum HostPowerCommandEnd {
    Open,
    Answered,
    Failed,
    Unknown,
}

/// One change of power.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct HostPowerChange {
    /// What was sent.
    pub what: Option<PowerCommand>,
    /// The reason, in one word.
    pub why: Option<String>,
    /// When it was decided.
    #[cfg_attr(test, schemars(with = "Option<Timestamp>"))]
    pub at: Option<MicroTime>,
    /// The result, in one word.
    pub outcome: Option<String>,
    /// How long that took, like 4.2s.
    pub took: Option<String>,
    /// How many commands it took.
    pub attempts: Option<u32>,
}

#[cfg(test)]
fn confirmed_for(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "maxItems": MAX_HOLDING_KEYS,
        "items": { "type": "string", "description": "One of them." },
    })
}

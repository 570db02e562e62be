//! The power-related fields of a `BareMetalHost`.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;

use super::address::{BadBmcAddress, BmcAddress};
use super::bmc::PowerCommand;
use crate::condition::CurrentCondition;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName {
    pub namespace: String,
    pub name: String,
}

impl HostName {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct HostSnapshot {
    pub name: HostName,
    pub uid: String,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// The precondition of every write.
    pub resource_version: String,
    pub deleting: bool,
    /// The annotations that concern power: `reboot.metal3.io…`, metal3's `paused` and `detached`,
    /// and `dogwatch.dev/…`. Others can be large and are not kept.
    pub annotations: BTreeMap<String, String>,
    /// `spec.online`.
    pub online: bool,
    /// `spec.externallyProvisioned`; absent is `None`.
    pub externally_provisioned: Option<bool>,
    /// `spec.disablePowerOff`: set for hosts whose BMC loses power together with the host.
    pub disable_power_off: bool,
    /// `spec.consumerRef`: who uses the host. An unreadable value has empty fields, so that it
    /// equals no consumer.
    pub consumer: Option<HostConsumer>,
    /// `spec.bmc`, then `spec.power.levels`. Empty: the host has no BMC.
    pub levels: Vec<PowerLevel>,
    pub status: HostStatus,
}

/// `spec.consumerRef`. An absent field is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostConsumer {
    /// The part of `apiVersion` before the slash; empty: the core group.
    pub group: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

/// Devices that together cut a host's power: all of them must succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerLevel {
    /// At least one.
    pub devices: Vec<PowerDevice>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerDevice {
    /// The address, or what is wrong with it.
    pub address: Result<BmcAddress, BadBmcAddress>,
    /// The Secret's name, in the host's namespace; empty: no Secret is named.
    pub credentials: String,
    /// Whether the device's TLS certificate is verified.
    pub verify: bool,
}

/// The status fields that power decisions read or write.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HostStatus {
    /// `status.poweredOn`.
    pub powered_on: Option<bool>,
    /// `status.operationalStatus`, which a baremetal-operator writes; empty is `None`.
    pub operational: Option<String>,
    /// `status.provisioning.state`; empty is `None`.
    pub provisioning: Option<String>,
    /// `status.provisioning.lastPoweredOn`: whatever ran before this time is dead.
    pub last_powered_on: Option<Timestamp>,
    /// `status.provisioning.pendingRebootSince`.
    pub pending_reboot_since: Option<Timestamp>,
    /// `status.power`.
    pub power: PowerStatus,
    /// `status.conditions`. Conditions of other writers are included and stay unchanged.
    pub conditions: Vec<CurrentCondition>,
}

impl HostStatus {
    /// A reboot was requested and has not happened: the host goes off and on again, whatever
    /// happens to the annotation. Source: specification §3.2.
    pub fn is_reboot_pending(&self) -> bool {
        self.pending_reboot_since.is_some_and(|pending| {
            self.last_powered_on
                .is_none_or(|powered_on| pending > powered_on)
        })
    }
}

/// `status.power`, which Dogwatch owns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PowerStatus {
    pub state: Option<PowerState>,
    /// When the newest reading was answered.
    pub observed_at: Option<Timestamp>,
    /// When off was confirmed. Cleared by a power-on, by a reading that is not off, and when
    /// somebody needs a proof of its own. A failed reading does not clear it.
    pub off_confirmed_at: Option<Timestamp>,
    /// The reboot annotations for which off is proved: `NAME=DIGEST` of each annotation present
    /// when the newest power-off was decided, so that the proof is later than the request.
    pub confirmed_for: Vec<String>,
    /// The newest command, written before it is sent (S5). `None`: nothing is under way, and
    /// Dogwatch does not hold the host off.
    pub command: Option<PendingCommand>,
    /// The provisioning state that was last acted upon.
    pub obeyed_in: Option<String>,
    /// The last value of `spec.externallyProvisioned` that was present.
    pub externally_provisioned: Option<bool>,
    /// Newest first, at most [`MAX_POWER_HISTORY`].
    pub history: Vec<PowerHistoryEntry>,
}

pub use dogwatch_api::bare_metal_host::{MAX_POWER_HISTORY, PowerState};

/// `status.power.command`: a decided command. It is written to the host before it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingCommand {
    /// `PROCESS/N`: unique among all commands.
    pub id: String,
    pub command: PowerCommand,
    /// The level, counted from 0.
    pub level: usize,
    /// The digest of that level's devices at the decision: the answer of another BMC proves
    /// nothing.
    pub target: String,
    /// When the first command of this need was decided; the soft power-off deadline counts from
    /// here.
    pub since: Timestamp,
    pub at: Timestamp,
    /// The number of this attempt among the commands of this kind on this level, from 1.
    pub attempt: u32,
    /// How many commands of this need came before it.
    pub before: u32,
    /// At the decision, the BMC could still run an earlier command of unknown end; or this command
    /// was answered and the BMC may still run it.
    pub after_unknown: bool,
    /// The text of a [`super::PowerReason`].
    pub why: String,
    /// How the command ended, as far as that was recorded.
    pub end: PendingCommandEnd,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PendingCommandEnd {
    /// Not recorded: the command may be under way, or its process died.
    Open,
    Answered {
        at: Timestamp,
    },
    /// The command failed, and the BMC will not run it.
    Failed {
        at: Timestamp,
        /// Why, without a secret.
        message: String,
    },
    /// Nobody knows whether the BMC received it: the BMC may still run it.
    Unknown {
        /// When Dogwatch stopped waiting.
        at: Timestamp,
        /// Why, without a secret.
        message: String,
    },
}

/// One entry of `status.power.history[]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerHistoryEntry {
    /// `PowerOn`, `SoftPowerOff` or `PowerOff`.
    pub what: PowerCommand,
    /// The text of a [`super::PowerReason`].
    pub why: String,
    /// When the command was decided.
    pub at: Timestamp,
    /// The result, e.g. `PoweredOff`, `AlreadyOff`, `Ignored`, `SoftPowerOffTimedOut`, `GaveUp`.
    pub outcome: String,
    /// From the decision until the host reached the state, or until Dogwatch gave up.
    pub took: std::time::Duration,
    /// How often the command was sent.
    pub attempts: u32,
}

//! A BareMetalHost, as far as its power goes.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;

use super::address::{Address, BadAddress};
use super::bmc::Command;
use crate::condition::Condition;

/// Namespace and name of a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl HostName {
    /// Both parts.
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

/// One `BareMetalHost` as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// Where it is.
    pub name: HostName,
    /// Its UID.
    pub uid: String,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// What a write to it relies on.
    pub resource_version: String,
    /// It is being deleted.
    pub deleting: bool,
    /// Those of its annotations that power is about: `reboot.metal3.io…`, metal3's `paused` and
    /// `detached`, and `dogwatch.dev/…`. Others can be large, and are not kept.
    pub annotations: BTreeMap<String, String>,
    /// `spec.online`.
    pub online: bool,
    /// `spec.externallyProvisioned`; absent is `None`.
    pub externally_provisioned: Option<bool>,
    /// `spec.disablePowerOff`: metal3's hosts whose BMC loses power with the host.
    pub disable_power_off: bool,
    /// `spec.consumerRef`: whose it is. What stands there and cannot be read has empty fields, so that it
    /// is nobody's whom it could be compared with.
    pub consumer: Option<Consumer>,
    /// What its power hangs on: `spec.bmc`, then `spec.power.levels`. Empty: it has no BMC.
    pub levels: Vec<Level>,
    /// Its status.
    pub status: HostStatus,
}

/// Who uses a host: `spec.consumerRef`. A field that is absent is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Consumer {
    /// Of `apiVersion`, what stands before the slash; empty: the core group.
    pub group: String,
    /// `kind`.
    pub kind: String,
    /// `namespace`.
    pub namespace: String,
    /// `name`.
    pub name: String,
}

/// Devices that together cut a host's power: all of them must succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// At least one.
    pub devices: Vec<Device>,
}

/// One BMC or PDU outlet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its address, or what is wrong with it.
    pub address: Result<Address, BadAddress>,
    /// The Secret in the host's namespace; empty: none is named.
    pub credentials: String,
    /// Whether its certificate is verified.
    pub verify: bool,
}

/// What the host's status says that power decisions read or write.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HostStatus {
    /// `status.poweredOn`.
    pub powered_on: Option<bool>,
    /// `status.operationalStatus`, which a baremetal-operator keeps; empty is `None`.
    pub operational: Option<String>,
    /// `status.provisioning.state`; empty is `None`.
    pub provisioning: Option<String>,
    /// `status.provisioning.lastPoweredOn`: whatever ran before it is dead.
    pub last_powered_on: Option<Timestamp>,
    /// `status.provisioning.pendingRebootSince`.
    pub pending_reboot_since: Option<Timestamp>,
    /// `status.power`.
    pub power: PowerStatus,
    /// `status.conditions`. Other people's are among them and stay as they are.
    pub conditions: Vec<Condition>,
}

impl HostStatus {
    /// A reboot was asked for and has not come about: the host goes off, and on again, whatever becomes of
    /// the annotation. Source: specification §3.2.
    pub fn is_reboot_pending(&self) -> bool {
        self.pending_reboot_since.is_some_and(|pending| {
            self.last_powered_on
                .is_none_or(|powered_on| pending > powered_on)
        })
    }
}

/// `status.power`: what is ours.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PowerStatus {
    /// What was last said of the power.
    pub state: Option<State>,
    /// When the newest reading was answered.
    pub observed_at: Option<Timestamp>,
    /// When off was confirmed; cleared by a power-on, by a reading that is not off, and when somebody
    /// needs a proof of its own. A reading that failed says nothing: it leaves it.
    pub off_confirmed_at: Option<Timestamp>,
    /// For which reboot annotations off is proved: `NAME=DIGEST` of each that stood there when the
    /// newest off command was decided, so that the proof is later than the request.
    pub confirmed_for: Vec<String>,
    /// The newest command: written before it is sent (S5). None: nothing is under way, and we do not
    /// hold the host off.
    pub command: Option<Intention>,
    /// The provisioning state that was last acted upon.
    pub obeyed_in: Option<String>,
    /// The last thing that `spec.externallyProvisioned` said, if it ever said something.
    pub externally_provisioned: Option<bool>,
    /// Newest first, at most [`HISTORY`].
    pub history: Vec<Done>,
}

/// How many past actions a host remembers.
pub const HISTORY: usize = 10;

/// `status.power.state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Seen on.
    On,
    /// The two newest readings say off.
    Off,
    /// Power-on was sent, and it is not seen on yet.
    PoweringOn,
    /// An off was sent, or the BMC says so, and it is not off yet.
    PoweringOff,
    /// Never read, or the newest reading failed, or off was said once and not by our doing.
    Unknown,
}

impl State {
    /// As it stands on the host.
    pub fn as_str(self) -> &'static str {
        match self {
            State::On => "On",
            State::Off => "Off",
            State::PoweringOn => "PoweringOn",
            State::PoweringOff => "PoweringOff",
            State::Unknown => "Unknown",
        }
    }

    /// The reverse of [`Self::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        use State::{Off, On, PoweringOff, PoweringOn, Unknown};
        [On, Off, PoweringOn, PoweringOff, Unknown]
            .into_iter()
            .find(|state| state.as_str() == text)
    }
}

/// A command that was decided: `status.power.command`. It stands on the host before it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intention {
    /// `PROCESS/N`: no other command ever had it.
    pub id: String,
    /// What.
    pub command: Command,
    /// On which level, counted from 0.
    pub level: usize,
    /// The device digest of that level when it was decided: an answer of another BMC proves nothing.
    pub target: String,
    /// When the first command of this need was decided; soft power-off has one deadline from here.
    pub since: Timestamp,
    /// When this one was decided.
    pub at: Timestamp,
    /// The how-manieth of its kind on its level, from 1.
    pub attempt: u32,
    /// How many commands of this need went before it.
    pub before: u32,
    /// When it was decided, an earlier command of unknown end could still be run by the BMC; or this one was
    /// answered, and may still be run.
    pub after_unknown: bool,
    /// Why, in one word: a reason of [`super::reason`].
    pub why: String,
    /// How it ended, as far as it was written down.
    pub end: End,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Not written down: it may be under way, or its process died.
    Open,
    /// The BMC answered it.
    Answered {
        /// When.
        at: Timestamp,
    },
    /// It failed, and nothing of it is on its way.
    Failed {
        /// When.
        at: Timestamp,
        /// Why, without a secret.
        message: String,
    },
    /// Nobody knows whether it was received: the BMC may still run it.
    Unknown {
        /// When we stopped waiting.
        at: Timestamp,
        /// Why, without a secret.
        message: String,
    },
}

/// One line of the history: `status.power.history[]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// What: `PowerOn`, `SoftPowerOff` or `PowerOff`.
    pub what: Command,
    /// Why: a reason of [`super::reason`].
    pub why: String,
    /// When it was decided.
    pub at: Timestamp,
    /// How it ended, e.g. `PoweredOff`, `AlreadyOff`, `Ignored`, `SoftPowerOffTimedOut`, `GaveUp`.
    pub outcome: String,
    /// From the decision until the state was there, or until it was given up.
    pub took: std::time::Duration,
    /// How many times the command was sent.
    pub attempts: u32,
}

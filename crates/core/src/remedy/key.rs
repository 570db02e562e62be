//! The keys that hold a host off for us.

use serde::{Deserialize, Serialize};

/// The key of Machines and Nodes that are marked.
pub const MACHINE_KEY: &str = "reboot.metal3.io/machine-remediation";

/// What the key of a request begins with; its UID follows.
pub const REQUEST_PREFIX: &str = "reboot.metal3.io/power-remediation-";

/// For whom a key of ours stands on a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyOwner {
    /// A marked Machine, by its UID.
    Machine(String),
    /// A marked Node, by its UID.
    Node(String),
    /// A request, by its UID.
    Request(String),
    /// It has our name, and not our value: somebody else wrote it. The table looks at the key only, for
    /// the Machine that the host is linked to; without one it stays (S3).
    Unnamed,
}

/// A key of ours, as it stands on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The annotation's name.
    pub name: String,
    /// For whom.
    pub owner: KeyOwner,
}

/// What stands in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Value {
    mode: String,
    #[serde(
        rename = "machineUID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    machine_uid: Option<String>,
    #[serde(rename = "nodeUID", default, skip_serializing_if = "Option::is_none")]
    node_uid: Option<String>,
}

impl KeyOwner {
    /// The annotation's name.
    pub fn key(&self) -> String {
        match self {
            KeyOwner::Machine(_) | KeyOwner::Node(_) | KeyOwner::Unnamed => MACHINE_KEY.to_owned(),
            KeyOwner::Request(uid) => format!("{REQUEST_PREFIX}{uid}"),
        }
    }

    /// The UID of whom it is for.
    pub fn uid(&self) -> Option<&str> {
        match self {
            KeyOwner::Machine(uid) | KeyOwner::Node(uid) | KeyOwner::Request(uid) => Some(uid),
            KeyOwner::Unnamed => None,
        }
    }

    /// The annotation's value: hard, for whoever is fenced does not answer any more.
    pub fn value(&self) -> String {
        let (machine_uid, node_uid) = match self {
            KeyOwner::Machine(uid) => (Some(uid.clone()), None),
            KeyOwner::Node(uid) => (None, Some(uid.clone())),
            KeyOwner::Request(_) | KeyOwner::Unnamed => (None, None),
        };
        let value = Value {
            mode: "hard".to_owned(),
            machine_uid,
            node_uid,
        };
        serde_json::to_string(&value).expect("text fields only")
    }
}

impl KeyOwner {
    /// The annotation on the host that is this one's key.
    pub fn is_on(&self, host: &crate::power::Host) -> bool {
        Key::of(host).any(|key| key.owner == *self)
    }

    /// The host as it will stand with this key.
    #[must_use]
    pub fn put_on(&self, host: &crate::power::Host) -> crate::power::Host {
        let mut keyed = host.clone();
        keyed.annotations.insert(self.key(), self.value());
        keyed
    }
}

impl Key {
    /// This annotation, if it is a key of ours.
    pub fn read(name: &str, value: &str) -> Option<Self> {
        let owner = match name.strip_prefix(REQUEST_PREFIX) {
            Some("") => return None,
            Some(uid) => KeyOwner::Request(uid.to_owned()),
            None if name == MACHINE_KEY => named(value),
            None => return None,
        };
        let name = name.to_owned();
        Some(Self { name, owner })
    }

    /// Those of a host.
    pub fn of(host: &crate::power::Host) -> impl Iterator<Item = Key> + '_ {
        let annotations = host.annotations.iter();
        annotations.filter_map(|(name, value)| Key::read(name, value))
    }
}

fn named(value: &str) -> KeyOwner {
    let value = serde_json::from_str::<Value>(value).ok();
    let uids = value.map(|value| (value.machine_uid, value.node_uid));
    match uids {
        Some((Some(uid), None)) => KeyOwner::Machine(uid),
        Some((None, Some(uid))) => KeyOwner::Node(uid),
        Some((Some(_), Some(_)) | (None, None)) | None => KeyOwner::Unnamed,
    }
}

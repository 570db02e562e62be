//! The annotations (keys) that hold a host off for a remediation.

pub use dogwatch_api::annotation::{
    MACHINE_REMEDIATION_KEY as MACHINE_KEY, POWER_REMEDIATION_PREFIX as REQUEST_PREFIX,
};
use serde::{Deserialize, Serialize};

/// Whom a key of ours on a host is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyOwner {
    /// UID of a marked Machine.
    Machine(String),
    /// UID of a marked Node.
    Node(String),
    /// UID of a request.
    Request(String),
    /// The key has our name but not our value: somebody else wrote it. The truth table counts it as
    /// the key of the Machine that is linked to the host. Without such a Machine it stays (S3).
    Foreign,
}

/// A key of ours on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemediationKey {
    /// Name of the annotation.
    pub name: String,
    pub owner: KeyOwner,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeyAnnotationValue {
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
    pub fn annotation_name(&self) -> String {
        match self {
            KeyOwner::Machine(_) | KeyOwner::Node(_) | KeyOwner::Foreign => MACHINE_KEY.to_owned(),
            KeyOwner::Request(uid) => format!("{REQUEST_PREFIX}{uid}"),
        }
    }

    pub fn uid(&self) -> Option<&str> {
        match self {
            KeyOwner::Machine(uid) | KeyOwner::Node(uid) | KeyOwner::Request(uid) => Some(uid),
            KeyOwner::Foreign => None,
        }
    }

    /// The annotation's value. It asks for a hard power-off, because a failed machine does not
    /// respond to a soft one.
    pub fn annotation_value(&self) -> String {
        let (machine_uid, node_uid) = match self {
            KeyOwner::Machine(uid) => (Some(uid.clone()), None),
            KeyOwner::Node(uid) => (None, Some(uid.clone())),
            KeyOwner::Request(_) | KeyOwner::Foreign => (None, None),
        };
        let value = KeyAnnotationValue {
            mode: "hard".to_owned(),
            machine_uid,
            node_uid,
        };
        serde_json::to_string(&value).expect("text fields only")
    }
}

impl KeyOwner {
    /// Whether the host carries this key, with our value.
    pub fn is_on_host(&self, host: &crate::power::HostSnapshot) -> bool {
        RemediationKey::keys_on_host(host).any(|key| key.owner == *self)
    }

    /// A copy of the host with this key on it.
    #[must_use]
    pub fn with_key_on(&self, host: &crate::power::HostSnapshot) -> crate::power::HostSnapshot {
        let mut keyed = host.clone();
        keyed
            .annotations
            .insert(self.annotation_name(), self.annotation_value());
        keyed
    }
}

impl RemediationKey {
    pub fn parse_annotation(name: &str, value: &str) -> Option<Self> {
        let owner = match name.strip_prefix(REQUEST_PREFIX) {
            Some("") => return None,
            Some(uid) => KeyOwner::Request(uid.to_owned()),
            None if name == MACHINE_KEY => parse_key_owner(value),
            None => return None,
        };
        let name = name.to_owned();
        Some(Self { name, owner })
    }

    pub fn keys_on_host(
        host: &crate::power::HostSnapshot,
    ) -> impl Iterator<Item = RemediationKey> + '_ {
        let annotations = host.annotations.iter();
        annotations.filter_map(|(name, value)| RemediationKey::parse_annotation(name, value))
    }
}

fn parse_key_owner(value: &str) -> KeyOwner {
    let value = serde_json::from_str::<KeyAnnotationValue>(value).ok();
    let uids = value.map(|value| (value.machine_uid, value.node_uid));
    match uids {
        Some((Some(uid), None)) => KeyOwner::Machine(uid),
        Some((None, Some(uid))) => KeyOwner::Node(uid),
        Some((Some(_), Some(_)) | (None, None)) | None => KeyOwner::Foreign,
    }
}

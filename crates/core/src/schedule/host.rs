//! Which hosts a schedule may switch off, and which host's word counts.

use jiff::Timestamp;

use crate::power::{Host, HostName, is_obeyed, requests};

/// Why a host that names no Node is not switched off for a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotByPower {
    /// The annotation would not be obeyed now, but when the host is provisioned some day: then it would
    /// cut the power of a machine that has just come into use.
    NotProvisioned {
        /// `status.provisioning.state`.
        state: String,
    },
    /// Its `spec.consumerRef` says that somebody uses it: pods of a Node may run there, and nobody
    /// would drain them.
    InUse {
        /// Whom it names.
        by: String,
    },
}

impl NotByPower {
    /// Why this host is not switched off, if there is a reason.
    pub fn of(host: &Host) -> Option<Self> {
        if !would_be_obeyed(host) {
            let state = host.status.provisioning.as_deref().unwrap_or("unknown");
            let state = state.to_owned();
            return Some(Self::NotProvisioned { state });
        }
        let by = host.consumer.as_ref()?;
        let by = format!("{} {}/{}", by.kind, by.namespace, by.name);
        Some(Self::InUse { by })
    }

    /// In words, with what to do.
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::NotProvisioned { state } => format!(
                "it is not provisioned (provisioning state {state}), and would be rebooted when it is"
            ),
            Self::InUse { by } => format!(
                "spec.consumerRef says that {by} uses it, so that its power is not cut without a drain: \
                 choose the node, or name the node in annotation dogwatch.dev/node of the host"
            ),
        }
    }
}

/// Whether the power controller obeys a reboot annotation on this host as it stands.
fn would_be_obeyed(host: &Host) -> bool {
    let mut asked = host.clone();
    asked.annotations = [(super::stand::HOST_REQUEST.to_owned(), String::new())].into();
    requests(&asked)
        .iter()
        .all(|request| is_obeyed(&asked, request))
}

/// A host that names a Node, and how old it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// When the host was created.
    pub created: Timestamp,
    /// Its UID: it decides between two of one second.
    pub uid: String,
    /// Where it is.
    pub host: HostName,
    /// The Node that it names.
    pub node: String,
}

impl Claim {
    /// The oldest of these hosts that names the same Node, where that is another one.
    pub fn older<'a>(&self, all: &'a [Claim]) -> Option<&'a HostName> {
        let same = all.iter().filter(|other| other.node == self.node);
        let oldest = same.min_by_key(|claim| (claim.created, &claim.uid))?;
        let is_older = (oldest.created, &oldest.uid) < (self.created, &self.uid);
        is_older.then_some(&oldest.host)
    }
}

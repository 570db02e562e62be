//! Which hosts a schedule may switch off, and which host's claim to a Node counts.

use jiff::Timestamp;

use crate::power::{HostName, HostSnapshot, is_annotation_obeyed, reboot_annotations};

/// Why a host that names no Node is not switched off for a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PowerRebootRefusal {
    /// The power controller would ignore the annotation now and obey it once the host is
    /// provisioned: that would cut the power of a machine that has just come into use.
    NotProvisioned {
        /// `status.provisioning.state`.
        state: String,
    },
    /// Its `spec.consumerRef` says that somebody uses the host: pods of a Node may run there, and
    /// nobody would drain them.
    InUse {
        /// The consumer's name.
        by: String,
    },
}

impl PowerRebootRefusal {
    /// `None` if the host may be switched off.
    pub fn from_host(host: &HostSnapshot) -> Option<Self> {
        if !is_reboot_request_obeyed(host) {
            let state = host.status.provisioning.as_deref().unwrap_or("unknown");
            let state = state.to_owned();
            return Some(Self::NotProvisioned { state });
        }
        let by = host.consumer.as_ref()?;
        let by = format!("{} {}/{}", by.kind, by.namespace, by.name);
        Some(Self::InUse { by })
    }

    /// Says what to do, too.
    pub(super) fn describe_refusal(&self) -> String {
        match self {
            Self::NotProvisioned { state } => format!(
                "it is not provisioned (provisioning state {state}): Dogwatch would reboot it only when it is"
            ),
            Self::InUse { by } => format!(
                "{by} uses it (spec.consumerRef), so Dogwatch does not cut its power without a drain: choose the node, \
                 or name the node in annotation dogwatch.dev/node of the host"
            ),
        }
    }
}

/// Whether the power controller would obey a reboot annotation on this host in its current state.
fn is_reboot_request_obeyed(host: &HostSnapshot) -> bool {
    let mut asked = host.clone();
    asked.annotations = [(
        super::target_state::HOST_REQUEST_ANNOTATION.to_owned(),
        String::new(),
    )]
    .into();
    reboot_annotations(&asked)
        .iter()
        .all(|request| is_annotation_obeyed(&asked, request))
}

/// A host that names a Node, and how old the host is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostNodeClaim {
    /// When the host was created.
    pub created: Timestamp,
    /// The host's UID. It decides between two hosts created in the same second.
    pub uid: String,
    pub host: HostName,
    pub node: String,
}

impl HostNodeClaim {
    /// The oldest host in `all` that names the same Node, unless that is this host.
    pub fn find_older_claim<'a>(&self, all: &'a [HostNodeClaim]) -> Option<&'a HostName> {
        let same = all.iter().filter(|other| other.node == self.node);
        let oldest = same.min_by_key(|claim| (claim.created, &claim.uid))?;
        let is_older = (oldest.created, &oldest.uid) < (self.created, &self.uid);
        is_older.then_some(&oldest.host)
    }
}

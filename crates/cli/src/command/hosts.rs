//! Reads the hosts that a command names, and says why one is not changed.

use std::collections::BTreeMap;

use dogwatch_core::power::{HostName, HostSeniority, HostSnapshot, OwnerRules, SharedBmcs};
use dogwatch_k8s::fleet::HostFound;

use crate::cluster::ConnectedCluster;
use crate::exit::CommandFailure;
use crate::resource::{ObjectKind, kind_missing, object_not_found};

/// Why a command writes nothing to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostUnchanged {
    /// The host is in that state already. The text follows the host's name.
    AlreadySet(String),
    Refused {
        /// The reason; the text follows the host's name.
        text: String,
        /// The next step for the person.
        next: String,
    },
}

impl HostUnchanged {
    /// `text` follows the host's name; `next` is the next step for the person.
    pub fn refuse_change(text: impl Into<String>, next: impl Into<String>) -> Self {
        HostUnchanged::Refused {
            text: text.into(),
            next: next.into(),
        }
    }

    /// A host that is being deleted accepts no change.
    pub fn host_is_deleting() -> Self {
        Self::refuse_change(
            "is being deleted",
            "its metadata.finalizers name the programs that delay the deletion",
        )
    }
}

/// Says that the host does not exist and suggests similar names.
pub async fn no_such_host(connected: &ConnectedCluster, name: &HostName) -> CommandFailure {
    object_not_found(connected, ObjectKind::Host, &name.to_string()).await
}

pub async fn read_host(
    connected: &ConnectedCluster,
    name: &HostName,
) -> Result<HostSnapshot, CommandFailure> {
    let found = connected.fleet.read_host(name).await;
    match found.map_err(|error| connected.api_failure(&format!("read host {name}"), &error))? {
        HostFound::There(host) => Ok(*host),
        HostFound::NoHost => Err(no_such_host(connected, name).await),
        HostFound::NoKind => Err(kind_missing(ObjectKind::Host)),
    }
}

/// For each host that names the BMC of another host: those other hosts.
pub fn find_shared_bmcs(hosts: &[HostSnapshot]) -> BTreeMap<HostName, Vec<HostName>> {
    let mut sharing = SharedBmcs::default();
    for host in hosts {
        let seniority = HostSeniority::of_host(host, &OwnerRules::default());
        sharing.put_host(&host.name, seniority, &host.levels);
    }
    let before = hosts
        .iter()
        .map(|host| (host.name.clone(), sharing.senior_hosts(&host.name)));
    before.filter(|(_, others)| !others.is_empty()).collect()
}

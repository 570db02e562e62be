//! What is kept of a deleted Node, for which host, and whether it comes back. Source: specification §4.1.

use std::sync::Arc;

use super::cases::Found;
use super::link::{Index, node_named};
use super::provider::contradict;
use super::record::Backup;
use super::silence::compared;
use crate::power::{Consumer, Host, HostName, Identity};
use crate::reboot::NodeSeen;

/// ConfigMap `node-backup-HOSTUID` in Dogwatch's namespace: what others had put on a host's Node. Nobody but
/// the controller writes there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptBackup {
    /// The host, as it was called.
    pub host: HostName,
    /// Its UID.
    pub host_uid: String,
    /// Who used the host then.
    pub consumer: Option<Consumer>,
    /// What.
    pub backup: Backup,
    /// The `ConfigMap`'s UID.
    pub uid: String,
    /// What a write to it relies on.
    pub resource_version: String,
}

/// What a host keeps for a Node.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// What, as it stands.
    pub stored: Arc<KeptBackup>,
    /// What becomes of it now.
    pub fate: Fate,
}

impl Kept {
    /// What is kept.
    pub fn backup(&self) -> &Backup {
        &self.stored.backup
    }
}

/// What becomes of what is kept.
#[derive(Debug, Clone, PartialEq)]
pub enum Fate {
    /// There is no Node of that name: it will come back.
    Waits,
    /// The Node was not deleted in the end.
    NotDeleted,
    /// It comes back on this Node.
    Due {
        /// The new one.
        node: Arc<NodeSeen>,
        /// Its system UUID is the old one's. Else only the link to the host says that it is the same machine.
        is_proved: bool,
    },
    /// A Node has that name, and nothing goes on it: why.
    NotIts(String),
    /// It is not wanted any more: why.
    Stale(String),
}

/// What is kept for this host.
pub(super) fn kept(index: &Index<'_>, host: &Host) -> Option<Kept> {
    let stored = index.world.backups.get(&host.uid)?;
    let stored = Arc::clone(stored);
    let fate = fate(index, host, &stored);
    Some(Kept { stored, fate })
}

fn fate(index: &Index<'_>, host: &Host, stored: &KeptBackup) -> Fate {
    let backup = &stored.backup;
    let node = node_named(index.world, &backup.node);
    if node.is_some_and(|node| node.uid == backup.uid) {
        return Fate::NotDeleted;
    }
    if let Some(why) = given_away(host, stored) {
        return Fate::Stale(why);
    }
    let fate = node.map_or(Fate::Waits, |node| on(index, host, backup, node));
    let is_back = matches!(fate, Fate::Due { .. });
    match renamed(index, host, backup).filter(|_| !is_back) {
        Some(why) => Fate::Stale(why),
        None => fate,
    }
}

/// The host is another's now, or nobody's.
fn given_away(host: &Host, stored: &KeptBackup) -> Option<String> {
    let state = host.status.provisioning.as_deref();
    if state.is_some_and(|state| !["provisioned", "externally provisioned"].contains(&state)) {
        return Some(format!("host {} was deprovisioned", host.name));
    }
    (host.consumer != stored.consumer)
        .then(|| format!("host {} has another spec.consumerRef now", host.name))
}

/// Whether a Node of that name is this host's machine.
fn on(index: &Index<'_>, host: &Host, backup: &Backup, node: &Arc<NodeSeen>) -> Fate {
    let name = &node.name;
    let linked = index.host_linked_to(name.as_str());
    if let Some(other) = linked.as_ref().filter(|it| it.uid != host.uid) {
        let text = format!("node {name} is on host {} now", other.name);
        return Fate::NotIts(text);
    }
    let (old, new) = (backup.system_uuid.as_deref(), node.system_uuid.as_deref());
    let same = compared(old, new);
    let ids = backup.provider_id.as_ref().zip(node.provider_id.as_ref());
    let differs = same == Identity::Different || ids.is_some_and(|(old, new)| contradict(old, new));
    if differs {
        let text =
            format!("node {name} is another machine now, by its system UUID or spec.providerID");
        return Fate::NotIts(text);
    }
    let is_proved = same == Identity::Same;
    if is_proved || linked.is_some() {
        let node = Arc::clone(node);
        return Fate::Due { node, is_proved };
    }
    Fate::NotIts(format!(
        "nothing shows whether node {name} is the machine of host {}: no system UUIDs that can be compared, and no link; set annotation dogwatch.dev/node of the host, or its Machine's status.nodeRef",
        host.name
    ))
}

/// The host's machine is there under another name.
fn renamed(index: &Index<'_>, host: &Host, backup: &Backup) -> Option<String> {
    let linked = index
        .nodes_linked_to(host)
        .find(|it| it.name.as_str() != backup.node);
    let mut same = index.world.nodes.values().filter(|node| {
        let ids = (backup.system_uuid.as_deref(), node.system_uuid.as_deref());
        let other = index.host_linked_to(node.name.as_str());
        node.name.as_str() != backup.node
            && compared(ids.0, ids.1) == Identity::Same
            && other.is_none_or(|other| other.uid == host.uid)
    });
    let node = linked.or_else(|| {
        // Several that tell one UUID tell nothing.
        let first = same.next();
        first.filter(|_| same.next().is_none())
    })?;
    Some(format!("host {} is node {} now", host.name, node.name))
}

impl Found<'_> {
    /// What is kept for hosts that are gone.
    pub(super) fn backups_left(&mut self) {
        let world = self.index.world;
        let uids = world.hosts.values().map(|host| host.uid.as_str());
        let there: std::collections::BTreeSet<&str> = uids.collect();
        let left = world.backups.values();
        let left: Vec<_> = left
            .filter(|it| !there.contains(it.host_uid.as_str()))
            .collect();
        for stored in left {
            self.host_gone(stored);
        }
    }
}

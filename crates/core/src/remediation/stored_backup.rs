//! The stored backups of Nodes, and what becomes of each. Source: specification §4.1.

use std::sync::Arc;

use super::discovery::RemediationDiscovery;
use super::host_link::{LinkIndex, node_by_name};
use super::node_cluster::NodeCluster;
use super::node_silence::compare_system_ids;
use super::provider_id::ids_contradict;
use super::record::NodeBackup;
use crate::power::{HostConsumer, HostName, HostSnapshot, SystemMatch};
use crate::reboot::ObservedNode;

/// ConfigMap `node-backup-HOSTUID` in Dogwatch's namespace: the backup of a host's Node. Only the
/// controller may write there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBackup {
    /// The host's name when the backup was made.
    pub host: HostName,
    pub host_uid: String,
    /// The host's consumer when the backup was made.
    pub consumer: Option<HostConsumer>,
    pub backup: NodeBackup,
    pub uid: String,
    pub resource_version: String,
}

/// One version of a stored backup; a deletion names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupVersion {
    pub uid: String,
    pub resource_version: String,
}

impl StoredBackup {
    pub fn backup_version(&self) -> BackupVersion {
        BackupVersion {
            uid: self.uid.clone(),
            resource_version: self.resource_version.clone(),
        }
    }
}

/// A backup of a host's Node, and what becomes of it.
#[derive(Debug, Clone, PartialEq)]
pub struct HostBackup {
    pub stored: Arc<StoredBackup>,
    pub disposition: BackupDisposition,
}

impl HostBackup {
    pub fn node_backup(&self) -> &NodeBackup {
        &self.stored.backup
    }
}

/// What becomes of a backup.
#[derive(Debug, Clone, PartialEq)]
pub enum BackupDisposition {
    /// No Node of that name exists: it will come back.
    WaitsForNode,
    /// The Node was not deleted in the end.
    NotDeleted,
    /// The backup is restored on this Node.
    Due {
        node: Arc<ObservedNode>,
        /// Whether the Node's system UUID is the old one's. If not, only the link to the host says
        /// that it is the same machine.
        is_proved: bool,
    },
    /// A Node has that name, and nothing is restored on it for this reason.
    NotSameMachine(String),
    /// The backup is no longer needed for this reason.
    Stale(String),
}

pub(super) fn backup_of_host(index: &LinkIndex<'_>, host: &HostSnapshot) -> Option<HostBackup> {
    let stored = index.world.backups.get(&host.uid)?;
    let stored = Arc::clone(stored);
    let fate = backup_disposition(index, host, &stored);
    Some(HostBackup {
        stored,
        disposition: fate,
    })
}

fn backup_disposition(
    index: &LinkIndex<'_>,
    host: &HostSnapshot,
    stored: &StoredBackup,
) -> BackupDisposition {
    let backup = &stored.backup;
    let cluster = index.world.cluster_by_record(backup.cluster.as_deref());
    // In a cluster that is not confirmed a Node of that name may be another machine.
    let node = node_by_name(index.world, &cluster, &backup.node)
        .filter(|_| index.is_cluster_confirmed(&cluster));
    if node.is_some_and(|node| node.uid == backup.uid) {
        return BackupDisposition::NotDeleted;
    }
    if let Some(why) = host_given_away(host, stored) {
        return BackupDisposition::Stale(why);
    }
    let fate = node.map_or(BackupDisposition::WaitsForNode, |node| {
        match_node(index, (host, &cluster), backup, node)
    });
    let is_back = matches!(fate, BackupDisposition::Due { .. });
    match renamed_node(index, (host, &cluster), backup).filter(|_| !is_back) {
        Some(why) => BackupDisposition::Stale(why),
        None => fate,
    }
}

/// Why the host no longer belongs to its consumer of the time of the backup.
fn host_given_away(host: &HostSnapshot, stored: &StoredBackup) -> Option<String> {
    let state = host.status.provisioning.as_deref();
    if state.is_some_and(|state| !["provisioned", "externally provisioned"].contains(&state)) {
        return Some(format!("host {} was deprovisioned", host.name));
    }
    (host.consumer != stored.consumer)
        .then(|| format!("host {} has another spec.consumerRef now", host.name))
}

/// Finds out whether a Node of that name is this host's machine.
fn match_node(
    index: &LinkIndex<'_>,
    (host, cluster): (&HostSnapshot, &NodeCluster),
    backup: &NodeBackup,
    node: &Arc<ObservedNode>,
) -> BackupDisposition {
    let name = &node.name;
    let linked = index.host_linked_to(cluster, name.as_str());
    if let Some(other) = linked.as_ref().filter(|it| it.uid != host.uid) {
        let text = format!("node {name} is on host {} now", other.name);
        return BackupDisposition::NotSameMachine(text);
    }
    let (old, new) = (backup.system_uuid.as_deref(), node.system_uuid.as_deref());
    let same = compare_system_ids(old, new);
    let ids = backup.provider_id.as_ref().zip(node.provider_id.as_ref());
    let differs =
        same == SystemMatch::Different || ids.is_some_and(|(old, new)| ids_contradict(old, new));
    if differs {
        let text =
            format!("node {name} is another machine now, by its system UUID or spec.providerID");
        return BackupDisposition::NotSameMachine(text);
    }
    let is_proved = same == SystemMatch::Same;
    if is_proved || linked.is_some() {
        let node = Arc::clone(node);
        return BackupDisposition::Due { node, is_proved };
    }
    BackupDisposition::NotSameMachine(format!(
        "Dogwatch cannot tell whether node {name} is the machine of host {}: there are no system UUIDs to compare, and \
         no link; set annotation dogwatch.dev/node of the host, or its Machine's status.nodeRef",
        host.name
    ))
}

/// Finds the host's machine under another Node name.
fn renamed_node(
    index: &LinkIndex<'_>,
    (host, cluster): (&HostSnapshot, &NodeCluster),
    backup: &NodeBackup,
) -> Option<String> {
    let linked = index
        .nodes_linked_to(host)
        .find(|it| it.name.as_str() != backup.node);
    let nodes = index.world.nodes_of_cluster(cluster);
    let nodes = nodes.filter(|_| index.is_cluster_confirmed(cluster));
    let mut same = nodes
        .into_iter()
        .flat_map(|nodes| nodes.values())
        .filter(|node| {
            let ids = (backup.system_uuid.as_deref(), node.system_uuid.as_deref());
            let other = index.host_linked_to(cluster, node.name.as_str());
            node.name.as_str() != backup.node
                && compare_system_ids(ids.0, ids.1) == SystemMatch::Same
                && other.is_none_or(|other| other.uid == host.uid)
        });
    let node = linked.or_else(|| {
        // A UUID that several Nodes report identifies none of them.
        let first = same.next();
        first.filter(|_| same.next().is_none())
    })?;
    Some(format!("host {} is node {} now", host.name, node.name))
}

impl RemediationDiscovery<'_> {
    /// Adds the backups of hosts that no longer exist.
    pub(super) fn add_leftover_backups(&mut self) {
        let world = self.index.world;
        let uids = world.hosts.values().map(|host| host.uid.as_str());
        let there: std::collections::BTreeSet<&str> = uids.collect();
        let left = world.backups.values();
        let left: Vec<_> = left
            .filter(|it| !there.contains(it.host_uid.as_str()))
            .collect();
        for stored in left {
            self.add_gone_host(stored);
        }
    }
}

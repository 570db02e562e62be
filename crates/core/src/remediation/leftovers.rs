//! Finds keys, fencing annotations and Leases of remediations that no longer have an owner. Source:
//! specification §4.1: after a crash every host that carries our key is found and its remediation
//! continued.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::RemediationReason;
use super::discovery::RemediationDiscovery;
use super::host_link::{HostRemediationState, RemediationProblem, node_by_name};
use super::key::KeyOwner;
use super::node_cluster::{NodeCluster, RemediationCluster, WorkloadClusterState};
use super::record::RemediationRecord;
use super::stored_backup::{BackupDisposition, HostBackup, StoredBackup};
use super::types::{Remediation, RemediationSubject};
use crate::name::NodeName;
use crate::policy::is_control_plane;
use crate::power::HostName;

impl RemediationDiscovery<'_> {
    /// Adds hosts with a key or an open record that no remediation handles.
    pub(super) fn add_leftover_hosts(&mut self) {
        let mut left = Vec::new();
        for affairs in self.index.host_states.values() {
            let host = &affairs.host.name;
            let mut keys = affairs.keys.iter();
            let orphan = keys
                .find(|key| {
                    !self
                        .handled_keys
                        .contains(&(host.clone(), key.owner.clone()))
                })
                .map(|key| key.owner.clone());
            let has_case = self.hosts.contains(host);
            let is_open = affairs.open_record().is_some() || affairs.has_backup();
            if orphan.is_some() || (is_open && !has_case) {
                left.push((host.clone(), orphan));
            }
        }
        for (host, orphan) in left {
            self.add_leftover_host(&host, orphan);
        }
    }

    fn add_leftover_host(&mut self, name: &HostName, orphan: Option<KeyOwner>) {
        let affairs = &self.index.host_states[name];
        let claimed = |record: &RemediationRecord| {
            let mut cases = self.cases.iter().filter(|case| case.record.is_some());
            cases.any(|case| case.record.as_ref() == Some(record))
        };
        let record = affairs.record.clone().filter(|record| !claimed(record));
        let named = record.as_ref().and_then(|record| record.node.clone());
        let kept = affairs.kept.map(|kept| kept.backup.node.clone());
        let cluster = self.cluster_of_leftover(affairs, record.as_ref());
        let annotated = affairs.annotated_node().cloned();
        let annotated = annotated.filter(|_| cluster.name == NodeCluster::Management);
        let node_name = kept.or(named).or(annotated);
        let node_name = node_name.and_then(|name| NodeName::new(name).ok());
        let node = node_name
            .as_ref()
            .filter(|_| cluster.problem.is_none())
            .and_then(|name| node_by_name(self.index.world, &cluster.name, name.as_str()))
            .cloned();
        let nobody_waits = record
            .as_ref()
            .and_then(|record| self.requester_gone(affairs, record));
        let foreign = (orphan == Some(KeyOwner::Foreign)).then(|| {
            let text = format!(
                "Dogwatch did not write annotation {} on host {name}, and no Machine is linked to \
                 this host; its writer must remove it",
                KeyOwner::Foreign.annotation_name()
            );
            (RemediationReason::ForeignKey, text)
        });
        let trouble = foreign.or(nobody_waits);
        let case = Remediation {
            subject: RemediationSubject::Host(name.clone()),
            cluster,
            key: orphan.unwrap_or(KeyOwner::Foreign),
            needs_remediation: false,
            host: Ok(Arc::clone(affairs.host)),
            problem: trouble,
            control_plane: node
                .as_ref()
                .is_some_and(|node| is_control_plane(&node.labels)),
            node_name,
            node,
            held_lease: None,
            record,
            stored_backup: None,
            host_backup: None,
            legacy_backup: None,
            machine: None,
            request: None,
        };
        self.add_remediation(case);
    }

    /// The cluster of the Node of which the backup or the record of a host tells.
    fn cluster_of_leftover(
        &self,
        affairs: &HostRemediationState<'_>,
        record: Option<&RemediationRecord>,
    ) -> RemediationCluster {
        let kept = affairs.kept.map(|kept| &kept.backup.cluster);
        let named = kept.or(record.map(|record| &record.cluster));
        let named = named.and_then(|name| name.as_deref());
        let cluster = self.index.world.cluster_by_record(named);
        let problem = self.unlinked_cluster_problem(&cluster, record);
        self.index.world.remediation_cluster(cluster, problem)
    }

    /// Adds the backup of a host that no longer exists, so that it is deleted.
    pub(super) fn add_gone_host(&mut self, stored: &Arc<StoredBackup>) {
        let name = &stored.host;
        let subject = RemediationSubject::Host(name.clone());
        if self.cases.iter().any(|case| case.subject == subject) {
            return;
        }
        let gone = format!("host {name} no longer exists");
        let kept = HostBackup {
            stored: Arc::clone(stored),
            disposition: BackupDisposition::Stale(gone.clone()),
        };
        let case = Remediation {
            subject,
            cluster: RemediationCluster::management(),
            key: KeyOwner::Foreign,
            needs_remediation: false,
            host: Err((RemediationReason::NotNeeded, gone)),
            problem: None,
            node_name: None,
            node: None,
            held_lease: None,
            record: None,
            stored_backup: Some(Arc::clone(stored)),
            host_backup: Some(kept),
            legacy_backup: None,
            control_plane: false,
            machine: None,
            request: None,
        };
        self.add_remediation(case);
    }

    /// Whether the Machine, Node or request of an open record is gone for good. Nobody could then
    /// report that its Node is back, and a Node that never returns would count as unavailable for
    /// ever. A link that is broken only for now proves nothing.
    fn requester_gone(
        &self,
        affairs: &HostRemediationState<'_>,
        record: &RemediationRecord,
    ) -> Option<RemediationProblem> {
        let (kind, name) = record.subject.split_once('/')?;
        let world = self.index.world;
        let is_gone = match kind {
            "machine" => self.index.machine_by_uid(&record.uid).is_none(),
            "powerremediation" => !world.requests.values().any(|it| it.uid == record.uid),
            "node" => affairs.annotated_node().map(String::as_str) != Some(name),
            _ => false,
        };
        let text = || {
            format!(
                "{} no longer exists, and no remediation waits for its Node",
                record.subject
            )
        };
        is_gone.then(|| (RemediationReason::Withdrawn, text()))
    }

    /// Adds Nodes with a fencing annotation or a Lease that no remediation handles.
    pub(super) fn add_leftover_nodes(&mut self) {
        self.add_leftover_nodes_of(&NodeCluster::Management);
        for (name, state) in self.index.world.workload.iter().flatten() {
            let cluster = NodeCluster::Workload(name.clone());
            let is_readable = matches!(state, WorkloadClusterState::Readable(_));
            // What another cluster's remediator wrote must stay.
            if is_readable && self.index.is_cluster_confirmed(&cluster) {
                self.add_leftover_nodes_of(&cluster);
            }
        }
    }

    fn add_leftover_nodes_of(&mut self, cluster: &NodeCluster) {
        let world = self.index.world;
        let (Some(nodes), Some(leases)) = (
            world.nodes_of_cluster(cluster),
            world.leases_of_cluster(cluster),
        ) else {
            return;
        };
        let fenced = nodes.values().filter(|node| node.being_fenced);
        let names = fenced.map(|node| &node.name).chain(leases.keys());
        let left: BTreeSet<NodeName> = names
            .filter(|name| !self.nodes.contains(&(cluster.clone(), (*name).clone())))
            .cloned()
            .collect();
        for name in left {
            let case = Remediation {
                subject: match cluster {
                    NodeCluster::Management => RemediationSubject::Node(name.clone()),
                    NodeCluster::Workload(cluster) => {
                        RemediationSubject::WorkloadNode(cluster.clone(), name.clone())
                    }
                },
                cluster: world.remediation_cluster(cluster.clone(), None),
                key: KeyOwner::Node(String::new()),
                needs_remediation: false,
                host: Err((
                    RemediationReason::NotNeeded,
                    "nothing is requested".to_owned(),
                )),
                problem: None,
                node: nodes.get(&name).cloned(),
                node_name: Some(name),
                held_lease: None,
                record: None,
                stored_backup: None,
                host_backup: None,
                legacy_backup: None,
                control_plane: false,
                machine: None,
                request: None,
            };
            self.add_remediation(case);
        }
    }
}

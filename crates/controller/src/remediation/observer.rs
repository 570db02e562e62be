//! Builds the remediation's snapshot from the watches, the power controller and the answers to its
//! own calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::answer_overlay::AnswerOverlay;
use dogwatch_core::name::NodeName;
use dogwatch_core::power::{HostName, HostSnapshot};
use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::remediation::{
    HeldRemediationLease, MachineName, NodeCluster, ObjectName, ObservedMachine, PowerRequest,
    ReadableCluster, RemediationAction, RemediationSnapshot, StoredBackup, WorkloadClusterState,
    WorkloadClusters,
};
use dogwatch_core::resource_version::is_older_version;
use dogwatch_k8s::cluster::ClusterView;
use dogwatch_k8s::lock::RemediationLeaseHold;
use dogwatch_k8s::remediation::RemediationWatchView;

use super::node_cluster_calls::remediation_lease_of;
use super::remediation_ops::RemediationAnswer;
use super::workload_clusters::ObservedWorkloadCluster;

/// How long the answer to our own write of a Lease or a backup goes before the watch: the watch may
/// lag, and may never show an object that was freed again.
const ANSWER_PRECEDENCE: Duration = Duration::from_secs(5);

/// The snapshot, and answers that the watches do not show yet.
#[derive(Debug, Default)]
pub(super) struct RemediationObserver {
    pub(super) world: RemediationSnapshot,
    machines: AnswerOverlay<MachineName, Arc<ObservedMachine>>,
    hosts: AnswerOverlay<HostName, Arc<HostSnapshot>>,
    nodes: NodeAnswers,
    /// By Cluster.
    workload: BTreeMap<ObjectName, NodeAnswers>,
    requests: AnswerOverlay<ObjectName, Arc<PowerRequest>>,
    /// By the UID of the host.
    backups: BTreeMap<String, (BackupAnswer, Duration)>,
    /// Whether the first lists have arrived: Machines and requests; Nodes and Leases; hosts.
    synced: [bool; 3],
}

/// Answers about the Nodes and Leases of one cluster.
#[derive(Debug, Default)]
struct NodeAnswers {
    nodes: AnswerOverlay<NodeName, Arc<ObservedNode>>,
    leases: BTreeMap<NodeName, (Option<HeldRemediationLease>, Duration)>,
    /// The versions of Leases that a call may still free: this process has sent it, or an earlier
    /// leader may have. Of an answered call no held Lease has this version.
    doubtful_versions: BTreeMap<NodeName, String>,
    /// Whether all Leases have been seen once.
    is_synced: bool,
}

impl NodeAnswers {
    /// The Nodes and Leases of a view, with the answers that it does not show yet.
    fn observe_view(&mut self, view: &ClusterView, now: Duration) -> (NodeMap, LeaseMap) {
        let mut nodes = view.nodes.clone();
        self.nodes.apply_overlay(&mut nodes);
        let held = view
            .leases
            .values()
            .filter_map(|it| RemediationLeaseHold::from_lease(it));
        let mut leases: LeaseMap = held
            .map(|held| (held.node.clone(), remediation_lease_of(&held)))
            .collect();
        self.leases.retain(|_, (_, until)| *until > now);
        for (node, (lease, _)) in &self.leases {
            apply_lease(&mut leases, node, lease.as_ref());
        }
        if !self.is_synced {
            let versions = leases.iter();
            let versions = versions.map(|(node, it)| (node.clone(), it.resource_version.clone()));
            self.doubtful_versions.extend(versions);
            self.is_synced = view.synced;
        }
        for (node, lease) in &mut leases {
            lease.may_be_freed = self.doubtful_versions.get(node) == Some(&lease.resource_version);
        }
        (nodes, leases)
    }

    fn record_free(&mut self, node: &NodeName, resource_version: &str, leases: &mut LeaseMap) {
        self.doubtful_versions
            .insert(node.clone(), resource_version.to_owned());
        let lease = leases.get_mut(node);
        if let Some(lease) = lease.filter(|lease| lease.resource_version == resource_version) {
            lease.may_be_freed = true;
        }
    }

    fn apply_answer(
        &mut self,
        answer: NodeAnswer,
        (nodes, leases): (&mut NodeMap, &mut LeaseMap),
        now: Duration,
    ) {
        match answer {
            NodeAnswer::Node(node) => {
                self.nodes
                    .record_object(node.name.clone(), Arc::new(*node), nodes);
            }
            NodeAnswer::Gone { name, uid } => self.nodes.record_deleted(name, uid, nodes),
            NodeAnswer::Lease { node, lease } => {
                apply_lease(leases, &node, lease.as_ref());
                self.leases.insert(node, (lease, now + ANSWER_PRECEDENCE));
            }
        }
    }
}

type NodeMap = BTreeMap<NodeName, Arc<ObservedNode>>;
type LeaseMap = BTreeMap<NodeName, HeldRemediationLease>;

/// The answer to a write in the cluster of a Node.
enum NodeAnswer {
    Node(Box<ObservedNode>),
    Gone {
        name: NodeName,
        uid: String,
    },
    Lease {
        node: NodeName,
        lease: Option<HeldRemediationLease>,
    },
}

impl RemediationObserver {
    /// Applies Machines and requests.
    pub(super) fn observe_objects(&mut self, view: &RemediationWatchView, now: Duration) {
        self.world.machines = view.machines.clone();
        self.world.infra = view.infra.clone();
        self.world.requests = view.requests.clone();
        self.world.paused_clusters.clone_from(&view.paused_clusters);
        self.world.backups = view.backups.clone();
        self.machines.apply_overlay(&mut self.world.machines);
        self.requests.apply_overlay(&mut self.world.requests);
        self.backups.retain(|_, (_, until)| *until > now);
        for (host, (kept, _)) in &self.backups {
            kept.apply_to(&mut self.world.backups, host);
        }
        self.synced[0] = view.synced;
        self.update_synced();
    }

    /// Applies Nodes and Leases.
    pub(super) fn observe_cluster(&mut self, view: &ClusterView, now: Duration) {
        (self.world.nodes, self.world.leases) = self.nodes.observe_view(view, now);
        self.synced[1] = view.synced;
        self.update_synced();
    }

    /// Applies what the workload clusters show. One that cannot be read delays nothing.
    pub(super) fn observe_workload(
        &mut self,
        clusters: BTreeMap<ObjectName, ObservedWorkloadCluster>,
        now: Duration,
    ) {
        self.workload.retain(|name, _| clusters.contains_key(name));
        let mut states = WorkloadClusters::new();
        for (name, seen) in clusters {
            let state = match seen {
                ObservedWorkloadCluster::IsManagement => WorkloadClusterState::IsManagement,
                ObservedWorkloadCluster::Unreadable(reason, text) => {
                    WorkloadClusterState::Unreadable((reason, text))
                }
                ObservedWorkloadCluster::Readable(access) => {
                    let answers = self.workload.entry(name.clone()).or_default();
                    let (nodes, leases) = answers.observe_view(&access.view, now);
                    WorkloadClusterState::Readable(ReadableCluster {
                        uid: access.uid,
                        has_dogwatch: access.has_dogwatch,
                        nodes,
                        leases,
                    })
                }
            };
            states.insert(name, state);
        }
        self.world.workload = Some(states);
    }

    fn apply_node_answer(&mut self, cluster: &NodeCluster, answer: NodeAnswer, now: Duration) {
        let world = &mut self.world;
        match cluster {
            NodeCluster::Management => {
                let shown = (&mut world.nodes, &mut world.leases);
                self.nodes.apply_answer(answer, shown, now);
            }
            NodeCluster::Workload(name) => {
                let states = world.workload.as_mut();
                // What a cluster shows that was not readable for a while is newer than the answer.
                if let Some(WorkloadClusterState::Readable(shown)) =
                    states.and_then(|states| states.get_mut(name))
                {
                    let answers = self.workload.entry(name.clone()).or_default();
                    let shown = (&mut shown.nodes, &mut shown.leases);
                    answers.apply_answer(answer, shown, now);
                }
            }
        }
    }

    /// Records that these actions are about to be sent.
    pub(super) fn record_sent_actions(
        &mut self,
        cluster: &NodeCluster,
        actions: &[RemediationAction],
    ) {
        for action in actions {
            if let RemediationAction::FreeLease { node, version } = action {
                self.record_sent_free(cluster, node, version);
            }
        }
    }

    fn record_sent_free(&mut self, cluster: &NodeCluster, node: &NodeName, version: &str) {
        let world = &mut self.world;
        match cluster {
            NodeCluster::Management => self.nodes.record_free(node, version, &mut world.leases),
            NodeCluster::Workload(name) => {
                let states = world.workload.as_mut();
                if let Some(WorkloadClusterState::Readable(shown)) =
                    states.and_then(|states| states.get_mut(name))
                {
                    let answers = self.workload.entry(name.clone()).or_default();
                    answers.record_free(node, version, &mut shown.leases);
                }
            }
        }
    }

    /// Applies the hosts as the power controller sees them.
    pub(super) fn observe_hosts(&mut self, hosts: Vec<Arc<HostSnapshot>>, synced: bool) {
        let hosts = hosts.into_iter().map(|host| (host.name.clone(), host));
        self.world.hosts = hosts.collect();
        self.hosts.apply_overlay(&mut self.world.hosts);
        self.synced[2] = synced;
        self.update_synced();
    }

    fn update_synced(&mut self) {
        self.world.synced = self.synced.iter().all(|synced| *synced);
    }

    fn record_backup(&mut self, host: String, kept: BackupAnswer, now: Duration) {
        kept.apply_to(&mut self.world.backups, &host);
        self.backups.insert(host, (kept, now + ANSWER_PRECEDENCE));
    }

    /// Applies the answer to a write of a remediation whose Node is in this cluster.
    pub(super) fn apply_answer(
        &mut self,
        cluster: &NodeCluster,
        answer: RemediationAnswer,
        now: Duration,
    ) {
        let world = &mut self.world;
        match answer {
            RemediationAnswer::Host(host) => {
                let name = host.name.clone();
                self.hosts
                    .record_object(name, Arc::new(*host), &mut world.hosts);
            }
            RemediationAnswer::Node(node) => {
                self.apply_node_answer(cluster, NodeAnswer::Node(node), now);
            }
            RemediationAnswer::NodeGone { name, uid } => {
                self.apply_node_answer(cluster, NodeAnswer::Gone { name, uid }, now);
            }
            RemediationAnswer::Machine(machine) => {
                let name = machine.name.clone();
                self.machines
                    .record_object(name, Arc::new(*machine), &mut world.machines);
            }
            RemediationAnswer::Request(request) => {
                let name = request.name.clone();
                self.requests
                    .record_object(name, Arc::new(*request), &mut world.requests);
            }
            RemediationAnswer::RequestGone { name, uid } => {
                self.requests.record_deleted(name, uid, &mut world.requests);
            }
            RemediationAnswer::Backup(kept) => {
                let host = kept.host_uid.clone();
                self.record_backup(host, BackupAnswer::Is(Arc::new(*kept)), now);
            }
            RemediationAnswer::BackupGone { host, uid } => {
                self.record_backup(host, BackupAnswer::Gone(uid), now);
            }
            RemediationAnswer::Lease { node, lease } => {
                self.apply_node_answer(cluster, NodeAnswer::Lease { node, lease }, now);
            }
            RemediationAnswer::Nothing => {}
        }
    }
}

/// The answer to a write of a backup. A backup that was just created is in no watch yet.
#[derive(Debug)]
enum BackupAnswer {
    Is(Arc<StoredBackup>),
    /// The object of this UID was deleted.
    Gone(String),
}

impl BackupAnswer {
    fn apply_to(&self, shown: &mut BTreeMap<String, Arc<StoredBackup>>, host: &str) {
        let there = shown.get(host);
        match self {
            BackupAnswer::Is(kept) => {
                let is_behind = |there: &Arc<StoredBackup>| {
                    is_older_version(&there.resource_version, &kept.resource_version)
                };
                if there.is_none_or(is_behind) {
                    shown.insert(host.to_owned(), Arc::clone(kept));
                }
            }
            BackupAnswer::Gone(uid) => {
                if there.is_some_and(|there| there.uid == *uid) {
                    shown.remove(host);
                }
            }
        }
    }
}

fn apply_lease(
    leases: &mut BTreeMap<NodeName, HeldRemediationLease>,
    node: &NodeName,
    lease: Option<&HeldRemediationLease>,
) {
    let Some(lease) = lease else {
        leases.remove(node);
        return;
    };
    let is_behind = |there: &HeldRemediationLease| {
        is_older_version(&there.resource_version, &lease.resource_version)
    };
    if leases.get(node).is_none_or(is_behind) {
        leases.insert(node.clone(), lease.clone());
    }
}

#[cfg(test)]
mod tests;

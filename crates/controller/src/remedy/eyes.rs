//! From the watches, the power side and what our own calls answered, to what remediation decides from.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::name::NodeName;
use dogwatch_core::power::{Host, HostName};
use dogwatch_core::reboot::NodeSeen;
use dogwatch_core::remedy::{
    KeptBackup, Machine, MachineName, ObjectName, PowerRequest, RemedyLease, World,
};
use dogwatch_k8s::cluster::ClusterView;
use dogwatch_k8s::lock::RemedyHeld;
use dogwatch_k8s::remedy::RemedyView;

use super::answers::Answers;
use super::calls::lease;
use super::hands::Answer;
use crate::healer::eyes::older;

/// How long our word on a Lease or a backup goes before what the watch shows, which may lag or never show one that
/// was made free again.
const LEASE_LAG: Duration = Duration::from_secs(5);

/// What is seen, and what answers have shown that the watches have not yet.
#[derive(Debug, Default)]
pub(super) struct Eyes {
    pub(super) world: World,
    machines: Answers<MachineName, Machine>,
    hosts: Answers<HostName, Host>,
    nodes: Answers<NodeName, NodeSeen>,
    requests: Answers<ObjectName, PowerRequest>,
    /// By the UID of the host.
    backups: BTreeMap<String, (Kept, Duration)>,
    leases: BTreeMap<NodeName, (Option<RemedyLease>, Duration)>,
    /// Whether the lists of Machines and requests, of Nodes and Leases, and of hosts have come.
    synced: [bool; 3],
}

impl Eyes {
    /// Takes in Machines and requests.
    pub(super) fn see_objects(&mut self, view: &RemedyView, now: Duration) {
        self.world.machines = view.machines.clone();
        self.world.infra = view.infra.clone();
        self.world.requests = view.requests.clone();
        self.world.backups = view.backups.clone();
        self.machines.lay(&mut self.world.machines);
        self.requests.lay(&mut self.world.requests);
        self.backups.retain(|_, (_, until)| *until > now);
        for (host, (kept, _)) in &self.backups {
            kept.lay(&mut self.world.backups, host);
        }
        self.synced[0] = view.synced;
        self.settle();
    }

    /// Takes in Nodes and Leases.
    pub(super) fn see_cluster(&mut self, view: &ClusterView, now: Duration) {
        self.world.nodes = view.nodes.clone();
        self.nodes.lay(&mut self.world.nodes);
        let held = view.leases.values().filter_map(|it| RemedyHeld::of(it));
        self.world.leases = held.map(|held| (held.node.clone(), lease(&held))).collect();
        self.leases.retain(|_, (_, until)| *until > now);
        for (node, (lease, _)) in &self.leases {
            lay_lease(&mut self.world.leases, node, lease.as_ref());
        }
        self.synced[1] = view.synced;
        self.settle();
    }

    /// Takes in the hosts, as the power side has them.
    pub(super) fn see_hosts(&mut self, hosts: Vec<Arc<Host>>, synced: bool) {
        let hosts = hosts.into_iter().map(|host| (host.name.clone(), host));
        self.world.hosts = hosts.collect();
        self.hosts.lay(&mut self.world.hosts);
        self.synced[2] = synced;
        self.settle();
    }

    fn settle(&mut self) {
        self.world.synced = self.synced.iter().all(|synced| *synced);
    }

    fn keep(&mut self, host: String, kept: Kept, now: Duration) {
        kept.lay(&mut self.world.backups, &host);
        self.backups.insert(host, (kept, now + LEASE_LAG));
    }

    /// Takes the answer to a write.
    pub(super) fn take(&mut self, answer: Answer, now: Duration) {
        let world = &mut self.world;
        match answer {
            Answer::Host(host) => {
                let name = host.name.clone();
                self.hosts.is(name, *host, &mut world.hosts);
            }
            Answer::Node(node) => {
                let name = node.name.clone();
                self.nodes.is(name, *node, &mut world.nodes);
            }
            Answer::NodeGone { name, uid } => self.nodes.gone(name, uid, &mut world.nodes),
            Answer::Machine(machine) => {
                let name = machine.name.clone();
                self.machines.is(name, *machine, &mut world.machines);
            }
            Answer::Request(request) => {
                let name = request.name.clone();
                self.requests.is(name, *request, &mut world.requests);
            }
            Answer::RequestGone { name, uid } => {
                self.requests.gone(name, uid, &mut world.requests);
            }
            Answer::Backup(kept) => {
                let host = kept.host_uid.clone();
                self.keep(host, Kept::Is(Arc::new(*kept)), now);
            }
            Answer::BackupGone { host, uid } => {
                self.keep(host, Kept::Gone(uid), now);
            }
            Answer::Lease { node, lease } => {
                lay_lease(&mut world.leases, &node, lease.as_ref());
                self.leases.insert(node, (lease, now + LEASE_LAG));
            }
            Answer::Nothing => {}
        }
    }
}

/// What was answered of a backup. One that was just made stands in no watch.
#[derive(Debug)]
enum Kept {
    Is(Arc<KeptBackup>),
    /// The object of this UID is gone.
    Gone(String),
}

impl Kept {
    fn lay(&self, shown: &mut BTreeMap<String, Arc<KeptBackup>>, host: &str) {
        let there = shown.get(host);
        match self {
            Kept::Is(kept) => {
                let is_behind = |there: &Arc<KeptBackup>| {
                    older(&there.resource_version, &kept.resource_version)
                };
                if there.is_none_or(is_behind) {
                    shown.insert(host.to_owned(), Arc::clone(kept));
                }
            }
            Kept::Gone(uid) => {
                if there.is_some_and(|there| there.uid == *uid) {
                    shown.remove(host);
                }
            }
        }
    }
}

fn lay_lease(
    leases: &mut BTreeMap<NodeName, RemedyLease>,
    node: &NodeName,
    lease: Option<&RemedyLease>,
) {
    match lease {
        Some(lease) => leases.insert(node.clone(), lease.clone()),
        None => leases.remove(node),
    };
}

//! From the cluster's view, and from what our own calls answered, to what the healer decides from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dogwatch_api::lease as lease_name;
use dogwatch_core::Now;
use dogwatch_core::heal::{Case, NodeRead, PresenceSeen, Seen, Subject, concerns};
use dogwatch_core::lock::{HolderId, LeaseSeen, holder_node_name};
use dogwatch_core::name::NodeName;
use dogwatch_core::policy;
use dogwatch_core::reboot::{NodeSeen, Parsed};
use dogwatch_k8s::cluster::{ClusterView, LeaseObject};
use dogwatch_k8s::heal::About;

use super::work::Fact;

/// What is seen, and what answers have shown that the watches have not yet.
#[derive(Debug, Default)]
pub(super) struct Eyes {
    pub(super) seen: Seen,
    /// Answers to our own writes, until the watch has them.
    nodes: BTreeMap<NodeName, NodeSeen>,
    leases: BTreeMap<String, LeaseSeen>,
}

impl Eyes {
    /// Takes the view in, and remembers since when it is so.
    pub(super) fn see(&mut self, view: &ClusterView, now: Now) {
        self.seen.policies = view.policies.clone();
        self.seen.presences = presences(view);
        self.see_leases(view);
        self.see_nodes(view);
        let seen = &mut self.seen;
        seen.memory.saw(
            seen.nodes.values(),
            seen.leases.values(),
            seen.presences.values(),
            now,
        );
        self.forget();
    }

    fn see_leases(&mut self, view: &ClusterView) {
        let slots = view.leases.values().filter_map(|lease| lease.slot.as_ref());
        let mut leases: BTreeMap<String, LeaseSeen> = slots
            .map(|row| (row.lease.name.clone(), row.lease.clone()))
            .collect();
        self.leases.retain(|name, answer| {
            let shown = leases.get_mut(name).filter(|shown| shown.uid == answer.uid);
            let Some(shown) =
                shown.filter(|shown| older(&shown.resource_version, &answer.resource_version))
            else {
                return false;
            };
            shown.clone_from(answer);
            true
        });
        self.seen.leases = leases;
    }

    fn see_nodes(&mut self, view: &ClusterView) {
        let holders = self.seen.leases.values().filter_map(holder_node_name);
        let holders: BTreeSet<NodeName> = holders.collect();
        let memory = &self.seen.memory;
        let concern = |node: &&Arc<NodeSeen>| {
            concerns(node) || holders.contains(&node.name) || memory.is_ours(&node.name)
        };
        let mut nodes: BTreeMap<NodeName, NodeSeen> = view
            .nodes
            .values()
            .filter(concern)
            .map(|node| (node.name.clone(), node.as_ref().clone()))
            .collect();
        self.nodes.retain(|name, answer| {
            let shown = view.nodes.get(name).filter(|shown| shown.uid == answer.uid);
            let behind =
                shown.is_some_and(|shown| older(&shown.resource_version, &answer.resource_version));
            if behind {
                nodes.insert(name.clone(), answer.clone());
            }
            behind
        });
        self.seen.nodes = nodes;
    }

    /// What is read of objects that nobody asks about any more.
    fn forget(&mut self) {
        let Seen {
            nodes,
            leases,
            looked,
            ..
        } = &mut self.seen;
        looked.nodes.retain(|name, _| nodes.contains_key(name));
        looked.gates.retain(|name, _| nodes.contains_key(name));
        looked.hosts.retain(|name, _| nodes.contains_key(name));
        looked.holders.retain(|name, _| leases.contains_key(name));
        let held = |holder: &HolderId| leases.values().any(|l| l.holder.as_ref() == Some(holder));
        let locked = nodes.values().any(|node| node.api_lock);
        looked.api.retain(|holder, _| locked || held(holder));
    }

    /// Takes what a call has answered.
    pub(super) fn take(&mut self, fact: Fact, now: Now) {
        let seen = &mut self.seen;
        match fact {
            Fact::WroteNode(node) => {
                seen.memory.wrote_node(&node, now);
                self.answered(*node);
            }
            Fact::WroteConditions(node) => {
                seen.memory.wrote_conditions(&node, now);
                self.answered(*node);
            }
            Fact::WroteApiNode(holder) => {
                seen.memory.wrote_api_node(&holder);
                seen.looked.api.remove(&holder);
            }
            Fact::WroteLease(lease) => {
                // Whoever left by it has to look again.
                seen.looked.api.clear();
                self.leases.insert(lease.name.clone(), *lease);
            }
            Fact::ReadNode(name, read) => {
                let empty = |read: &NodeRead| {
                    let node = read.node.as_ref();
                    node.is_none_or(|node| node.record == Parsed::Absent)
                };
                let holder = HolderId::node(&name);
                seen.memory.read_node(&holder, empty(&read), read.taken);
                seen.looked.nodes.insert(name, *read);
            }
            Fact::ReadHolder(reads) => {
                seen.looked.holders.insert(reads.lease.clone(), reads);
            }
            Fact::ReadApi(holder, read) => {
                seen.looked.api.insert(holder, *read);
            }
            Fact::ReadGates(name, gates) => {
                seen.looked.gates.insert(name, gates);
            }
            Fact::ReadHosts(name, hosts) => {
                seen.looked.hosts.insert(name, hosts);
            }
            Fact::AskedHost(name) => {
                seen.looked.hosts.remove(&name);
            }
        }
    }

    /// The newest of a Node is the answer to our own write, until the watch has it.
    fn answered(&mut self, node: NodeSeen) {
        self.seen.nodes.insert(node.name.clone(), node.clone());
        self.nodes.insert(node.name.clone(), node);
    }

    /// What an Event of this case is about.
    pub(super) fn about(&self, case: &Case) -> Option<About> {
        let (kind, name, uid, episode) = match &case.subject {
            Subject::Node(name) => {
                let node = self.seen.nodes.get(name)?;
                let since = node.record.get().map(|record| record.since.to_string());
                let uid = node.uid.clone();
                ("Node", name.to_string(), uid, since.unwrap_or_default())
            }
            Subject::Lease(name) => {
                let lease = self.seen.leases.get(name)?;
                let held = lease.record.as_ref().map(|record| record.since.to_string());
                let uid = lease.uid.clone();
                ("Lease", name.clone(), uid, held.unwrap_or_default())
            }
            Subject::Presence(name) => {
                let mut all = self.seen.presences.values();
                let uid = all.find(|one| one.name == *name)?.uid.clone();
                ("Lease", name.clone(), uid, String::new())
            }
        };
        Some(About {
            kind,
            name,
            uid,
            episode,
        })
    }

    /// The zone of the node that a case is about, where its policy goes by one.
    pub(super) fn zone(&self, case: &Case) -> Option<String> {
        let name = match &case.subject {
            Subject::Node(name) => Some(name.clone()),
            Subject::Lease(name) => self.seen.leases.get(name).and_then(holder_node_name),
            Subject::Presence(_) => None,
        }?;
        let node = self.seen.nodes.get(&name)?;
        policy::zone(&self.seen.policies, &node.labels)
    }
}

/// As a log line names it.
pub(super) fn words(subject: &Subject) -> String {
    match subject {
        Subject::Node(name) => format!("node/{name}"),
        Subject::Lease(name) | Subject::Presence(name) => format!("lease/{name}"),
    }
}

fn presences(view: &ClusterView) -> BTreeMap<String, PresenceSeen> {
    let presence = |lease: &Arc<LeaseObject>| {
        let process = lease_name::process_of(&lease.name)?.to_owned();
        let seen = PresenceSeen {
            name: lease.name.clone(),
            process: process.clone(),
            uid: lease.uid.clone(),
            resource_version: lease.resource_version.clone(),
        };
        Some((process, seen))
    };
    view.leases.values().filter_map(presence).collect()
}

/// Versions of one object are decimal numbers that grow (KEP-5504); where they are not, the watch
/// is believed.
pub(crate) fn older(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version < than,
        (Ok(_) | Err(_), _) => false,
    }
}

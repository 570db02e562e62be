//! Builds the healer's snapshot from the cluster view and the answers to its own calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dogwatch_api::lease as lease_name;
use dogwatch_core::Now;
use dogwatch_core::answer_overlay::AnswerOverlay;
use dogwatch_core::healer::{
    HealerSnapshot, HealingCase, HealingSubject, NodeRead, ObservedPresence, needs_healing,
};
use dogwatch_core::lock::{HolderId, ObservedLease, holder_node_name};
use dogwatch_core::name::NodeName;
use dogwatch_core::policy;
use dogwatch_core::reboot::{ObservedNode, ParsedAnnotation};
use dogwatch_k8s::cluster::{ClusterView, LeaseObject};
use dogwatch_k8s::healer::HealerEventSubject;

use super::healer_job::HealerCallResult;

/// The snapshot, and answers that the watches do not show yet.
#[derive(Debug, Default)]
pub(super) struct HealerObserver {
    pub(super) seen: HealerSnapshot,
    /// Answers to our own writes, until the watch shows them.
    nodes: AnswerOverlay<NodeName, ObservedNode>,
    leases: AnswerOverlay<String, ObservedLease>,
}

impl HealerObserver {
    /// Applies a new view, and remembers since when each state lasts.
    pub(super) fn observe_view(&mut self, view: &ClusterView, now: Now) {
        self.seen.policies = view.policies.clone();
        self.seen.presences = list_presences(view);
        self.observe_leases(view);
        self.observe_nodes(view);
        let seen = &mut self.seen;
        seen.memory.observe_objects(
            seen.nodes.values(),
            seen.leases.values(),
            seen.presences.values(),
            now,
        );
        self.forget_stale_reads();
    }

    fn observe_leases(&mut self, view: &ClusterView) {
        let slots = view.leases.values().filter_map(|lease| lease.slot.as_ref());
        let mut leases: BTreeMap<String, ObservedLease> = slots
            .map(|row| (row.lease.name.clone(), row.lease.clone()))
            .collect();
        self.leases.apply_overlay(&mut leases);
        self.seen.leases = leases;
    }

    fn observe_nodes(&mut self, view: &ClusterView) {
        let holders = self.seen.leases.values().filter_map(holder_node_name);
        let holders: BTreeSet<NodeName> = holders.collect();
        let memory = &self.seen.memory;
        let concern = |node: &&Arc<ObservedNode>| {
            needs_healing(node)
                || holders.contains(&node.name)
                || memory.is_last_write_ours(&node.name)
        };
        let mut nodes: BTreeMap<NodeName, ObservedNode> = view
            .nodes
            .values()
            .filter(concern)
            .map(|node| (node.name.clone(), node.as_ref().clone()))
            .collect();
        let shown = |name: &NodeName| view.nodes.get(name).map(AsRef::as_ref);
        let answers = self.nodes.objects_ahead_of(shown);
        nodes.extend(answers.map(|(name, node)| (name.clone(), node.clone())));
        self.seen.nodes = nodes;
    }

    /// Drops reads of objects that no case asks about any more.
    fn forget_stale_reads(&mut self) {
        let HealerSnapshot {
            nodes,
            leases,
            observations: looked,
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

    pub(super) fn apply_call_result(&mut self, fact: HealerCallResult, now: Now) {
        let seen = &mut self.seen;
        match fact {
            HealerCallResult::WroteNode(node) => {
                seen.memory.record_node_write(&node, now);
                self.record_written_node(*node);
            }
            HealerCallResult::WroteConditions(node) => {
                seen.memory.record_condition_write(&node, now);
                self.record_written_node(*node);
            }
            HealerCallResult::WroteApiNode(holder) => {
                seen.memory.record_api_node_write(&holder);
                seen.observations.api.remove(&holder);
            }
            HealerCallResult::WroteLease(lease) => {
                // Requests that gave up this Lease must be observed again.
                seen.observations.api.clear();
                self.leases.remember_object(lease.name.clone(), *lease);
            }
            HealerCallResult::ReadNode(name, read) => {
                let empty = |read: &NodeRead| {
                    let node = read.node.as_ref();
                    node.is_none_or(|node| node.record == ParsedAnnotation::Absent)
                };
                let holder = HolderId::for_node(&name);
                seen.memory
                    .record_node_read(&holder, empty(&read), read.taken);
                seen.observations.nodes.insert(name, *read);
            }
            HealerCallResult::ReadHolder(reads) => {
                seen.observations.holders.insert(reads.lease.clone(), reads);
            }
            HealerCallResult::ReadApi(holder, read) => {
                seen.observations.api.insert(holder, *read);
            }
            HealerCallResult::ReadGates(name, gates) => {
                seen.observations.gates.insert(name, gates);
            }
            HealerCallResult::ReadHosts(name, hosts) => {
                seen.observations.hosts.insert(name, hosts);
            }
            HealerCallResult::AskedHost(name) => {
                seen.observations.hosts.remove(&name);
            }
        }
    }

    /// The answer to our own write is the newest version until the watch shows it.
    fn record_written_node(&mut self, node: ObservedNode) {
        self.seen.nodes.insert(node.name.clone(), node.clone());
        self.nodes.remember_object(node.name.clone(), node);
    }

    /// The object that the case's Events are written about.
    pub(super) fn event_object_of(&self, case: &HealingCase) -> Option<HealerEventSubject> {
        let (kind, name, uid, episode) = match &case.subject {
            HealingSubject::Node(name) => {
                let node = self.seen.nodes.get(name)?;
                let since = node.record.get().map(|record| record.since.to_string());
                let uid = node.uid.clone();
                ("Node", name.to_string(), uid, since.unwrap_or_default())
            }
            HealingSubject::Lease(name) => {
                let lease = self.seen.leases.get(name)?;
                let held = lease.record.as_ref().map(|record| record.since.to_string());
                let uid = lease.uid.clone();
                ("Lease", name.clone(), uid, held.unwrap_or_default())
            }
            HealingSubject::Presence(name) => {
                let mut all = self.seen.presences.values();
                let uid = all.find(|one| one.name == *name)?.uid.clone();
                ("Lease", name.clone(), uid, String::new())
            }
        };
        Some(HealerEventSubject {
            kind,
            name,
            uid,
            episode,
        })
    }

    /// The zone of the case's node, if the node's policy goes by zones.
    pub(super) fn zone_of_case(&self, case: &HealingCase) -> Option<String> {
        let name = match &case.subject {
            HealingSubject::Node(name) => Some(name.clone()),
            HealingSubject::Lease(name) => self.seen.leases.get(name).and_then(holder_node_name),
            HealingSubject::Presence(_) => None,
        }?;
        let node = self.seen.nodes.get(&name)?;
        policy::zone_of_labels(&self.seen.policies, &node.labels)
    }
}

/// The subject as the log names it.
pub(super) fn format_subject(subject: &HealingSubject) -> String {
    match subject {
        HealingSubject::Node(name) => format!("node/{name}"),
        HealingSubject::Lease(name) | HealingSubject::Presence(name) => format!("lease/{name}"),
    }
}

fn list_presences(view: &ClusterView) -> BTreeMap<String, ObservedPresence> {
    let presence = |lease: &Arc<LeaseObject>| {
        let process = lease_name::process_of_presence(&lease.name)?.to_owned();
        let seen = ObservedPresence {
            name: lease.name.clone(),
            process: process.clone(),
            uid: lease.uid.clone(),
            resource_version: lease.resource_version.clone(),
        };
        Some((process, seen))
    };
    view.leases.values().filter_map(presence).collect()
}

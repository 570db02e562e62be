//! The API server of the model: objects with versions, and every version that was ever shown.

use super::super::super::group_of_lease;
use super::super::super::{NodePatch, ObservedNode, ParsedAnnotation, RecordChange};
use super::super::kit;
use crate::lock::{BudgetReads, GroupMember, HeldLockLease, LockRecord, ObservedLease};
use crate::name::GroupName;
use crate::policy::{self, ClusterPolicies};

/// A write on its way.
#[derive(Debug, Clone)]
pub(super) enum Write {
    Patch {
        node: usize,
        patch: Box<NodePatch>,
    },
    /// A bid, a takeover, or a release: the holder and record to write.
    Lease {
        seen: Box<ObservedLease>,
        holder: Option<crate::lock::HolderId>,
        record: Option<LockRecord>,
    },
}

#[derive(Debug, Clone)]
pub(super) enum Answer {
    Node(Box<ObservedNode>),
    Lease(Box<ObservedLease>),
    Conflict,
}

pub(super) struct Server {
    pub(super) nodes: Vec<Vec<ObservedNode>>,
    pub(super) leases: Vec<Vec<ObservedLease>>,
    pub(super) version: u64,
}

impl Server {
    pub(super) fn new(nodes: Vec<ObservedNode>, leases: Vec<ObservedLease>) -> Self {
        let nodes = nodes.into_iter().map(|node| vec![node]).collect();
        Self {
            nodes,
            leases: vec![leases],
            version: 1,
        }
    }

    pub(super) fn node(&self, node: usize) -> &ObservedNode {
        self.nodes[node].last().expect("never empty")
    }

    pub(super) fn leases(&self) -> &Vec<ObservedLease> {
        self.leases.last().expect("never empty")
    }

    /// Somebody writes without a precondition: a person or a kubelet.
    pub(super) fn change(&mut self, node: usize, change: impl FnOnce(&mut ObservedNode)) {
        let mut new = self.node(node).clone();
        change(&mut new);
        if new != *self.node(node) {
            new.resource_version = self.next_version();
            self.nodes[node].push(new);
        }
    }

    pub(super) fn apply(&mut self, write: &Write) -> Answer {
        match write {
            Write::Patch { node, patch } => self.patch(*node, patch),
            Write::Lease {
                seen,
                holder,
                record,
            } => self.lease(seen, holder.clone(), record.clone()),
        }
    }

    fn patch(&mut self, node: usize, patch: &NodePatch) -> Answer {
        if self.node(node).resource_version != patch.resource_version {
            return Answer::Conflict;
        }
        self.change(node, |node| merge(node, patch));
        Answer::Node(Box::new(self.node(node).clone()))
    }

    fn lease(
        &mut self,
        seen: &ObservedLease,
        holder: Option<crate::lock::HolderId>,
        record: Option<LockRecord>,
    ) -> Answer {
        let mut leases = self.leases().clone();
        let version = self.next_version();
        let lease = leases.iter_mut().find(|lease| lease.uid == seen.uid);
        let Some(lease) = lease.filter(|lease| lease.resource_version == seen.resource_version)
        else {
            return Answer::Conflict;
        };
        lease.holder = holder;
        lease.record = record;
        lease.resource_version = version;
        let answer = Answer::Lease(Box::new(lease.clone()));
        self.leases.push(leases);
        answer
    }

    /// A person deletes the Leases; they are created again, free and with other UIDs.
    pub(super) fn make_leases_anew(&mut self) {
        let mut leases = self.leases().clone();
        for lease in &mut leases {
            lease.uid = format!("{}-anew", lease.uid);
            lease.resource_version = self.next_version();
            (lease.holder, lease.record) = (None, None);
        }
        self.leases.push(leases);
    }

    /// Creates missing slots as free Leases, as every observer of the group does.
    pub(super) fn ensure(&mut self, group: &GroupName, slots: u32) {
        for slot in 0..slots {
            let name = format!("dogwatch-{group}-{slot}");
            if self.leases().iter().all(|lease| lease.name != name) {
                let mut leases = self.leases().clone();
                leases.push(ObservedLease {
                    uid: format!("uid-{name}"),
                    resource_version: self.next_version(),
                    name,
                    ..kit::free(slot)
                });
                self.leases.push(leases);
            }
        }
    }

    /// The group of each node under these policies.
    pub(super) fn groups(&self, policies: &ClusterPolicies) -> Vec<GroupName> {
        let nodes = (0..self.nodes.len()).map(|node| self.node(node));
        nodes
            .map(|node| policy::group_of_labels(policies, &node.labels))
            .collect()
    }

    pub(super) fn reads(&self, lease: &str, policies: &ClusterPolicies) -> BudgetReads {
        let group = group_of_lease(lease);
        let groups = self.groups(policies);
        let members = self.nodes.iter().zip(groups);
        let members = members.filter(|(_, own)| Some(own) == group.as_ref());
        let row = |node: &Vec<ObservedNode>| {
            let node = node.last().expect("never empty");
            GroupMember {
                name: node.name.clone(),
                ready: node.ready,
                unschedulable: node.unschedulable,
                ignored: false,
                control_plane: false,
            }
        };
        let held = |lease: &ObservedLease| {
            Some(HeldLockLease {
                lease: lease.name.clone(),
                resource_version: lease.resource_version.clone(),
                slot: (group_of_lease(&lease.name) == group).then_some(lease.slot),
                holder: lease.holder.clone()?,
                node: lease.record.as_ref().and_then(|record| record.node.clone()),
                max: lease.record.as_ref().map(|record| record.max),
                remediation: None,
            })
        };
        BudgetReads {
            lease: lease.to_owned(),
            group: group.clone().unwrap_or_else(GroupName::default_group),
            nodes: members.map(|(node, _)| row(node)).collect(),
            held: self.leases().iter().filter_map(held).collect(),
        }
    }

    pub(super) fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }
}

fn merge(node: &mut ObservedNode, patch: &NodePatch) {
    node.unschedulable = patch.unschedulable.unwrap_or(node.unschedulable);
    node.record = match &patch.record {
        RecordChange::Set(record) => ParsedAnnotation::Is(record.clone()),
        RecordChange::Remove => ParsedAnnotation::Absent,
    };
    node.waiting_label = patch.waiting_label.unwrap_or(node.waiting_label);
    if let Some(last) = &patch.last {
        node.last_reboot = ParsedAnnotation::Is(last.clone());
    }
    if patch.remove_abort {
        node.abort = ParsedAnnotation::Absent;
    }
    if patch.remove_request {
        node.request = ParsedAnnotation::Absent;
        node.request_fingerprint = None;
    }
}

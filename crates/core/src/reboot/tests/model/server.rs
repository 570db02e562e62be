//! The API server: objects with versions, and every version that was ever shown.

use super::super::super::{NodePatch, NodeSeen, Parsed, RecordChange};
use crate::lock::{HeldSeen, LeaseSeen, LockRecord, NodeRow, Reads};

/// A write on its way.
#[derive(Debug, Clone)]
pub(super) enum Write {
    Patch {
        node: usize,
        patch: Box<NodePatch>,
    },
    /// A bid, a takeover, or our id leaving: holder and record as they are to be.
    Lease {
        seen: Box<LeaseSeen>,
        holder: Option<crate::lock::HolderId>,
        record: Option<LockRecord>,
    },
}

/// What was answered.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    Node(Box<NodeSeen>),
    Lease(Box<LeaseSeen>),
    Conflict,
}

pub(super) struct Server {
    pub(super) nodes: Vec<Vec<NodeSeen>>,
    pub(super) leases: Vec<Vec<LeaseSeen>>,
    version: u64,
}

impl Server {
    pub(super) fn new(nodes: Vec<NodeSeen>, leases: Vec<LeaseSeen>) -> Self {
        let nodes = nodes.into_iter().map(|node| vec![node]).collect();
        Self {
            nodes,
            leases: vec![leases],
            version: 1,
        }
    }

    pub(super) fn node(&self, node: usize) -> &NodeSeen {
        self.nodes[node].last().expect("never empty")
    }

    pub(super) fn leases(&self) -> &Vec<LeaseSeen> {
        self.leases.last().expect("never empty")
    }

    /// Somebody writes without any precondition: a person, a kubelet.
    pub(super) fn change(&mut self, node: usize, change: impl FnOnce(&mut NodeSeen)) {
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
        seen: &LeaseSeen,
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

    /// A person deletes the Leases; a plain create makes them free, with other UIDs.
    pub(super) fn make_leases_anew(&mut self) {
        let mut leases = self.leases().clone();
        for lease in &mut leases {
            lease.uid = format!("{}-anew", lease.uid);
            lease.resource_version = self.next_version();
            (lease.holder, lease.record) = (None, None);
        }
        self.leases.push(leases);
    }

    /// Fresh reads for a count.
    pub(super) fn reads(&self, lease: &str) -> Reads {
        let row = |node: &Vec<NodeSeen>| {
            let node = node.last().expect("never empty");
            NodeRow {
                name: node.name.clone(),
                ready: node.ready,
                unschedulable: node.unschedulable,
                ignored: false,
            }
        };
        let held = |lease: &LeaseSeen| {
            Some(HeldSeen {
                lease: lease.name.clone(),
                resource_version: lease.resource_version.clone(),
                slot: Some(lease.slot),
                holder: lease.holder.clone()?,
                node: lease.record.as_ref().and_then(|record| record.node.clone()),
                max: lease.record.as_ref().map(|record| record.max),
            })
        };
        Reads {
            lease: lease.to_owned(),
            nodes: self.nodes.iter().map(row).collect(),
            held: self.leases().iter().filter_map(held).collect(),
        }
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }
}

fn merge(node: &mut NodeSeen, patch: &NodePatch) {
    node.unschedulable = patch.unschedulable.unwrap_or(node.unschedulable);
    node.record = match &patch.record {
        RecordChange::Set(record) => Parsed::Is(record.clone()),
        RecordChange::Remove => Parsed::Absent,
    };
    node.waiting_label = patch.waiting_label.unwrap_or(node.waiting_label);
    if let Some(last) = &patch.last {
        node.last = Parsed::Is(last.clone());
    }
    if patch.remove_request {
        node.request = Parsed::Absent;
        node.request_fingerprint = None;
    }
}

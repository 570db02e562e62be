//! The model's API server: Leases and Nodes with versions, and writes with preconditions.

use std::collections::BTreeMap;

use super::super::api_lock::ApiLock;
use super::super::*;
use super::node_name;
use crate::name::{GroupName, NodeName, RunId};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ModelPhase {
    Waiting,
    Out,
    Returning,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelNode {
    pub(super) version: u64,
    pub(super) uid: String,
    pub(super) ready: bool,
    /// The record: the run, its phase, and the maximum that it used.
    pub(super) record: Option<(RunId, ModelPhase, u32)>,
    /// Annotation `dogwatch.dev/api-lock`.
    pub(super) api: Option<ApiLock>,
    /// Cordoned by the lock API, with this maximum.
    pub(super) closed: Option<u32>,
}

#[derive(Debug, Clone)]
pub(super) enum ModelWrite {
    Api {
        node: usize,
        version: u64,
        closes: Option<bool>,
        lock: Option<ApiLock>,
        max: u32,
    },
    Bid {
        lease: ObservedLease,
        holder: HolderId,
        record: LockRecord,
    },
    Free {
        lease: ObservedLease,
        given_back: u32,
    },
    Node {
        node: usize,
        version: u64,
        record: Option<(RunId, ModelPhase, u32)>,
    },
}

#[derive(Debug, Clone, Default)]
pub(super) struct ModelStore {
    pub(super) clock: u64,
    pub(super) leases: BTreeMap<String, ObservedLease>,
    pub(super) nodes: Vec<Option<ModelNode>>,
}

impl ModelStore {
    pub(super) fn next_version(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Applies the write if its preconditions hold, as the API server does.
    pub(super) fn apply_write(&mut self, write: ModelWrite) {
        let version = self.clock + 1;
        match write {
            ModelWrite::Bid {
                lease,
                holder,
                record,
            } => {
                if let Some(stands) = self.matching_lease(&lease) {
                    // The field belongs to another manager: refused, not forced.
                    if stands.holder.as_ref().is_none_or(|other| *other == holder) {
                        stands.holder = Some(holder);
                        stands.record = Some(record);
                        stands.resource_version = version.to_string();
                        self.next_version();
                    }
                }
            }
            ModelWrite::Free { lease, given_back } => {
                if let Some(stands) = self.matching_lease(&lease) {
                    stands.holder = None;
                    stands.record = None;
                    stands.yield_count = given_back;
                    stands.resource_version = version.to_string();
                    self.next_version();
                }
            }
            ModelWrite::Api {
                node,
                version: expected,
                closes,
                lock,
                max,
            } => {
                if let Some(stands) = &mut self.nodes[node]
                    && stands.version == expected
                {
                    stands.api = lock;
                    if let Some(closes) = closes {
                        stands.closed = closes.then_some(max);
                    }
                    stands.version = version;
                    self.next_version();
                }
            }
            ModelWrite::Node {
                node,
                version: expected,
                record,
            } => {
                if let Some(stands) = &mut self.nodes[node]
                    && stands.version == expected
                {
                    stands.record = record;
                    stands.version = version;
                    self.next_version();
                }
            }
        }
    }

    fn matching_lease(&mut self, seen: &ObservedLease) -> Option<&mut ObservedLease> {
        self.leases.get_mut(&seen.name).filter(|stands| {
            stands.uid == seen.uid && stands.resource_version == seen.resource_version
        })
    }

    pub(super) fn budget_reads(&self, lease: &ObservedLease) -> BudgetReads {
        let nodes = self.nodes.iter().enumerate();
        let row = |(number, node): (usize, &Option<ModelNode>)| {
            let node = node.as_ref()?;
            Some(GroupMember {
                name: NodeName::new(node_name(number)).unwrap(),
                ready: node.ready,
                unschedulable: is_out(node),
                ignored: false,
                control_plane: false,
            })
        };
        let held = |lease: &ObservedLease| {
            let record = lease.record.as_ref();
            Some(HeldLockLease {
                lease: lease.name.clone(),
                resource_version: lease.resource_version.clone(),
                slot: Some(lease.slot),
                holder: lease.holder.clone()?,
                node: record.and_then(|record| record.node.clone()),
                max: record.map(|record| record.max),
                remediation: None,
            })
        };
        BudgetReads {
            lease: lease.name.clone(),
            group: GroupName::default_group(),
            nodes: nodes.filter_map(row).collect(),
            held: self.leases.values().filter_map(held).collect(),
        }
    }
}

pub(super) fn is_out(node: &ModelNode) -> bool {
    matches!(node.record, Some((_, ModelPhase::Out, _))) || node.closed.is_some()
}

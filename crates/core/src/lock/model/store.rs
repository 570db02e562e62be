//! The model's API server: Leases and Nodes with versions, and writes that name them.

use std::collections::BTreeMap;

use super::super::api_lock::ApiLock;
use super::super::*;
use super::name;
use crate::name::{GroupName, NodeName, RunId};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Phase {
    Waiting,
    Out,
    Returning,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) version: u64,
    pub(super) uid: String,
    pub(super) ready: bool,
    /// The record: whose run, which phase, and the maximum it went with.
    pub(super) record: Option<(RunId, Phase, u32)>,
    /// Annotation `dogwatch.dev/api-lock`.
    pub(super) api: Option<ApiLock>,
    /// Cordoned by the lock API, under this maximum.
    pub(super) closed: Option<u32>,
}

#[derive(Debug, Clone)]
pub(super) enum Write {
    /// The lock API's patch of a Node.
    Api {
        node: usize,
        version: u64,
        closes: Option<bool>,
        lock: Option<ApiLock>,
        max: u32,
    },
    Bid {
        lease: LeaseSeen,
        holder: HolderId,
        record: LockRecord,
    },
    Free {
        lease: LeaseSeen,
        given_back: u32,
    },
    Node {
        node: usize,
        version: u64,
        record: Option<(RunId, Phase, u32)>,
    },
}

#[derive(Debug, Clone, Default)]
pub(super) struct Store {
    pub(super) clock: u64,
    pub(super) leases: BTreeMap<String, LeaseSeen>,
    pub(super) nodes: Vec<Option<Node>>,
}

impl Store {
    pub(super) fn next(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Applies it if its preconditions hold, as the API server does.
    pub(super) fn write(&mut self, write: Write) {
        let version = self.clock + 1;
        match write {
            Write::Bid {
                lease,
                holder,
                record,
            } => {
                if let Some(stands) = self.current(&lease) {
                    // Another manager's field: refused, not forced.
                    if stands.holder.as_ref().is_none_or(|other| *other == holder) {
                        stands.holder = Some(holder);
                        stands.record = Some(record);
                        stands.resource_version = version.to_string();
                        self.next();
                    }
                }
            }
            Write::Free { lease, given_back } => {
                if let Some(stands) = self.current(&lease) {
                    stands.holder = None;
                    stands.record = None;
                    stands.given_back = given_back;
                    stands.resource_version = version.to_string();
                    self.next();
                }
            }
            Write::Api {
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
                    self.next();
                }
            }
            Write::Node {
                node,
                version: expected,
                record,
            } => {
                if let Some(stands) = &mut self.nodes[node]
                    && stands.version == expected
                {
                    stands.record = record;
                    stands.version = version;
                    self.next();
                }
            }
        }
    }

    fn current(&mut self, seen: &LeaseSeen) -> Option<&mut LeaseSeen> {
        self.leases.get_mut(&seen.name).filter(|stands| {
            stands.uid == seen.uid && stands.resource_version == seen.resource_version
        })
    }

    pub(super) fn reads(&self, lease: &LeaseSeen) -> Reads {
        let nodes = self.nodes.iter().enumerate();
        let row = |(number, node): (usize, &Option<Node>)| {
            let node = node.as_ref()?;
            Some(NodeRow {
                name: NodeName::new(name(number)).unwrap(),
                ready: node.ready,
                unschedulable: is_out(node),
                ignored: false,
                control_plane: false,
            })
        };
        let held = |lease: &LeaseSeen| {
            let record = lease.record.as_ref();
            Some(HeldSeen {
                lease: lease.name.clone(),
                resource_version: lease.resource_version.clone(),
                slot: Some(lease.slot),
                holder: lease.holder.clone()?,
                node: record.and_then(|record| record.node.clone()),
                max: record.map(|record| record.max),
                remediation: None,
            })
        };
        Reads {
            lease: lease.name.clone(),
            group: GroupName::default_group(),
            nodes: nodes.filter_map(row).collect(),
            held: self.leases.values().filter_map(held).collect(),
        }
    }
}

pub(super) fn is_out(node: &Node) -> bool {
    matches!(node.record, Some((_, Phase::Out, _))) || node.closed.is_some()
}

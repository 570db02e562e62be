//! What a coordinator reads on demand: the count of the budget, and a holder's Node.

use std::sync::Arc;

use dogwatch_core::lock::{
    self, BudgetReads, GroupMember, HeldLockLease, HolderId, HolderNode, HolderReads,
    MIN_HOLDER_READ_INTERVAL, ObservedLease, RemediationHold,
};
use dogwatch_core::name::{GroupName, NodeName};
use dogwatch_core::reboot::{ObservedBudgetCount, ObservedHolderNode, ObservedNode};

use super::PlannedGuard;
use super::coordinator::{FirstLook, ListedLeases};
use super::state::RemediationStage;
use super::time::state_time;
use super::world::{PlannedWorld, node_name};

impl PlannedWorld<'_> {
    /// The first read of a count: every held Lease.
    pub fn list_leases_for_count(&mut self, node: usize) {
        let held = self.leases.iter().filter_map(|lease| observe_slot(lease));
        let listed = ListedLeases {
            held: held.chain(self.observe_remediation()).collect(),
        };
        if let Some(view) = &mut self.coordinators[node] {
            Arc::make_mut(view).listed = Some(listed);
        }
    }

    /// The second read: the group's nodes. The count is complete.
    pub fn list_nodes_for_count(&mut self, node: usize) {
        let nodes = self.nodes.iter().flatten().map(|node| observe_member(node));
        let nodes = nodes.collect();
        let smallest_rules = !self.is_without(PlannedGuard::SmallestMaximum);
        let after_win = !self.is_without(PlannedGuard::CountAfterWin);
        let Some(view) = &mut self.coordinators[node] else {
            return;
        };
        let view = Arc::make_mut(view);
        let leases = view.seen.lock.leases.as_deref().unwrap_or_default();
        let (Some(listed), Some(own)) = (
            view.listed.take(),
            lock::find_held_lease(leases, &view.seen.run.holder),
        ) else {
            return;
        };
        let reads = BudgetReads {
            lease: own.name.clone(),
            group: GroupName::default_group(),
            nodes,
            held: listed.held,
        };
        let mut count = lock::count_unavailable(&reads, &view.seen.run.holder);
        if !smallest_rules {
            count.maxima.clear();
        }
        if !after_win {
            count.for_resource_version.clone_from(&own.resource_version);
        }
        let taken = state_time().mono;
        view.seen.lock.count = Some(ObservedBudgetCount {
            count,
            taken,
            arrived: taken,
        });
        view.counted = true;
    }

    /// One read of the Node that a Lease is held for; the second one makes the evidence.
    pub fn look_at_holder(&mut self, node: usize, slot: usize) {
        let lease = &self.leases[slot];
        let Some(view) = &self.coordinators[node] else {
            return;
        };
        let seen = view.seen.lock.leases.iter().flatten();
        let Some(seen) = seen.clone().find(|seen| seen.name == lease.name) else {
            return;
        };
        let Some(holder) = lock::holder_node_name(seen) else {
            return;
        };
        let now = self.read_holder_node(&holder);
        let version = seen.resource_version.clone();
        let view = Arc::make_mut(self.coordinators[node].as_mut().expect("found above"));
        let first = view.first_look.take();
        match first.filter(|first| first.slot == slot && first.resource_version == version) {
            None => {
                view.first_look = Some(FirstLook {
                    slot,
                    resource_version: version,
                    node: now,
                });
            }
            Some(first) => {
                view.seen.lock.holder = Some(ObservedHolderNode {
                    lease: self.leases[slot].name.clone(),
                    resource_version: version,
                    reads: HolderReads {
                        nodes: [first.node, now],
                        apart: MIN_HOLDER_READ_INTERVAL,
                    },
                    taken: state_time().mono,
                });
            }
        }
    }

    fn read_holder_node(&self, holder: &NodeName) -> HolderNode {
        let there = self
            .nodes
            .iter()
            .flatten()
            .find(|node| node.name == *holder);
        there.map_or(HolderNode::Gone, |node| HolderNode::There {
            uid: node.uid.clone(),
        })
    }

    pub fn is_remediation_held(&self) -> bool {
        let stage = self.remediation;
        stage >= RemediationStage::LeaseTaken && stage < RemediationStage::Done
    }

    /// The remediation's Lease as every count sees it (`k8s::lock::count`).
    fn observe_remediation(&self) -> Option<HeldLockLease> {
        let hold = RemediationHold {
            group: Some(GroupName::default_group()),
            control_plane: false,
            since: None,
        };
        let counts = !self.is_without(PlannedGuard::RemediationCounts);
        self.is_remediation_held().then(|| HeldLockLease {
            lease: "dogwatch-remedy-n0".into(),
            resource_version: "1".into(),
            slot: None,
            holder: HolderId::new("remedy").expect("a short name"),
            node: Some(node_name(0)),
            max: None,
            remediation: counts.then_some(hold),
        })
    }
}

fn observe_slot(lease: &ObservedLease) -> Option<HeldLockLease> {
    Some(HeldLockLease {
        lease: lease.name.clone(),
        resource_version: lease.resource_version.clone(),
        slot: Some(lease.slot),
        holder: lease.holder.clone()?,
        node: lease.record.as_ref().and_then(|record| record.node.clone()),
        max: lease.record.as_ref().map(|record| record.max),
        remediation: None,
    })
}

fn observe_member(node: &ObservedNode) -> GroupMember {
    GroupMember {
        name: node.name.clone(),
        ready: node.ready,
        unschedulable: node.unschedulable,
        ignored: false,
        control_plane: false,
    }
}

//! What happens to nodes and machines by themselves, by people, and by the remediator.

use std::sync::Arc;

use dogwatch_core::reboot::ObservedNode;

use super::server;
use super::state::{CordonOwner, RemediationStage};
use super::world::{PlannedWorld, host_boot_id, node_name};

impl PlannedWorld<'_> {
    /// The kernel boots: the process is gone, and with it what it remembered.
    pub fn boot_host(&mut self, node: usize) {
        let stays = self.config.sentinel_stays;
        let host = &mut self.hosts[node];
        host.boot += 1;
        host.served |= host.pending;
        host.pending = false;
        host.commands.clear();
        host.local.sentinel &= stays;
        if let Some(there) = &mut self.nodes[node] {
            server::change_node(there, |there| there.ready = false);
        }
        self.start_run(node);
    }

    pub fn post_kubelet_status(&mut self, node: usize) {
        let boot = host_boot_id(node, self.hosts[node].boot);
        if let Some(there) = &mut self.nodes[node] {
            server::change_node(there, |there| {
                there.ready = true;
                there.boot_id = Some(boot);
            });
        }
    }

    pub fn cordon_by_person(&mut self, node: usize) {
        self.hosts[node].cordon = CordonOwner::Foreign;
        if let Some(there) = &mut self.nodes[node] {
            server::change_node(there, |there| there.unschedulable = true);
        }
    }

    pub fn uncordon_by_person(&mut self, node: usize) {
        self.foreign -= 1;
        self.hosts[node].cordon = CordonOwner::Nobody;
        if let Some(there) = &mut self.nodes[node] {
            server::change_node(there, |there| there.unschedulable = false);
        }
    }

    /// The next step of the remediation of node 0, in the order that `core::remediation` keeps.
    pub fn remediate_further(&mut self) {
        self.remediation = match self.remediation {
            RemediationStage::None => RemediationStage::LeaseTaken,
            RemediationStage::LeaseTaken => {
                if let Some(there) = &mut self.nodes[0] {
                    server::change_node(there, |there| there.being_fenced = true);
                }
                RemediationStage::Marked
            }
            RemediationStage::Marked => {
                self.coordinators[0] = None;
                self.hosts[0].pending = false;
                RemediationStage::Off
            }
            RemediationStage::Off => {
                self.nodes[0] = None;
                self.hosts[0].cordon = CordonOwner::Nobody;
                RemediationStage::NodeDeleted
            }
            RemediationStage::NodeDeleted => {
                self.return_remediated_node();
                RemediationStage::Returned
            }
            RemediationStage::Returned | RemediationStage::Done => RemediationStage::Done,
        };
    }

    /// Whether a Lease is held by a run that is gone, for a node whose record does not name it.
    pub fn is_left_behind(&self, slot: usize) -> bool {
        let lease = &self.leases[slot];
        let Some(record) = &lease.record else {
            return false;
        };
        let holds = |node: &usize| record.node.as_ref() == Some(&node_name(*node));
        let Some(node) = (0..self.hosts.len()).find(holds) else {
            return false;
        };
        let lives = self.coordinators[node].as_ref();
        let lives = lives.is_some_and(|view| record.runs.contains(&view.seen.run.id));
        !lives && !self.has_record(node)
    }

    fn return_remediated_node(&mut self) {
        let host = &mut self.hosts[0];
        host.boot += 1;
        host.commands.clear();
        host.local.sentinel &= self.config.sentinel_stays;
        let boot = host_boot_id(0, host.boot);
        let uid = format!("uid-n0-{}", host.boot);
        let mut there = ObservedNode::ready_node(node_name(0), uid, boot);
        // Newer than every version of the deleted Node.
        there.resource_version = "100".into();
        self.nodes[0] = Some(Arc::new(there));
        self.start_run(0);
    }
}

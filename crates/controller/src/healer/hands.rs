//! Each look and each action: one call, or the few that belong together.

use std::time::Duration;

use dogwatch_core::heal::{Action, GatesSeen, HostsSeen, Look};
use dogwatch_core::lock::{self, BETWEEN_HOLDER_READS, HolderReads, LeaseSeen};
use dogwatch_core::reboot::HolderSeen;
use dogwatch_k8s::{Error, Kind};

use super::work::{Fact, Job};

impl Job {
    pub(super) async fn look(&self, look: &Look) -> Result<Option<Fact>, Error> {
        let taken = self.clock.now().mono;
        Ok(match look {
            Look::Node { name, .. } => {
                let read = self.client.read_node(name, taken).await?;
                Some(Fact::ReadNode(name.clone(), Box::new(read)))
            }
            Look::Holder { lease, .. } => {
                let reads = self.read_holder(lease, taken).await?;
                reads.map(Fact::ReadHolder)
            }
            Look::Api { holder, node, .. } => {
                let read = self.client.read_api(node.as_ref(), taken).await?;
                Some(Fact::ReadApi(holder.clone(), Box::new(read)))
            }
            Look::Gates {
                node,
                gates,
                budgets,
                ..
            } => {
                let shut = self.client.shut_gates(node, gates, budgets).await?;
                Some(Fact::ReadGates(node.clone(), GatesSeen { shut, taken }))
            }
            Look::Hosts { node, .. } => {
                let host = self.client.host_of(node).await?;
                Some(Fact::ReadHosts(node.clone(), HostsSeen { host, taken }))
            }
        })
    }

    /// The Node that a Lease is held for, read twice.
    async fn read_holder(
        &self,
        lease: &LeaseSeen,
        taken: Duration,
    ) -> Result<Option<HolderSeen>, Error> {
        let Some(name) = lock::holder_node_name(lease) else {
            return Ok(None);
        };
        let first = self.client.holder_node(&name).await?;
        let answered = self.clock.now().mono;
        self.clock
            .sleep_until(answered + BETWEEN_HOLDER_READS)
            .await;
        let asked = self.clock.now().mono;
        let second = self.client.holder_node(&name).await?;
        Ok(Some(HolderSeen {
            lease: lease.name.clone(),
            resource_version: lease.resource_version.clone(),
            reads: HolderReads {
                nodes: [first, second],
                apart: asked.saturating_sub(answered),
            },
            taken,
        }))
    }

    /// `None`: what it relied on has changed, and nothing was done.
    pub(super) async fn perform(&self, action: &Action) -> Result<Option<Fact>, Error> {
        match self.send(action).await {
            Err(error) if error.kind() == Kind::Conflict || error.kind() == Kind::NotFound => {
                Ok(None)
            }
            answer => answer,
        }
    }

    async fn send(&self, action: &Action) -> Result<Option<Fact>, Error> {
        let client = &self.client;
        let taken = self.clock.now().mono;
        Ok(match action {
            Action::PatchNode { node, patch } => {
                let node = client.patch_node(node, patch).await?;
                Some(Fact::WroteNode(Box::new(node)))
            }
            Action::Release { lease, remaining } => {
                let zone = self.zone.as_deref();
                let release = client.release(lease, remaining, &self.policies, zone);
                release
                    .await?
                    .map(|lease| Fact::WroteLease(Box::new(lease)))
            }
            Action::Break { lease, .. } => {
                let broken = client.break_lock(lease).await?;
                broken.map(|lease| Fact::WroteLease(Box::new(lease)))
            }
            Action::PatchApiNode {
                holder,
                node,
                write,
            } => {
                client.patch_api_node(node, write).await?;
                Some(Fact::WroteApiNode(holder.clone()))
            }
            Action::DeletePresence {
                name,
                uid,
                resource_version,
            } => {
                client.delete_presence(name, uid, resource_version).await?;
                None
            }
            Action::NoteEscalation { node, note } => {
                client.note_escalation(node, note).await?;
                let read = client.read_node(&node.name, taken).await?;
                Some(Fact::ReadNode(node.name.clone(), Box::new(read)))
            }
            Action::Escalate { host, note } => {
                client.escalate(host, note).await?;
                self.node
                    .as_ref()
                    .map(|node| Fact::AskedHost(node.name.clone()))
            }
        })
    }
}

//! Performs the healer's observations and actions: one API call each, or the few that belong
//! together.

use std::time::Duration;

use dogwatch_core::healer::{HealerAction, HealerObserve, ObservedNodeHost, ObservedReturnGates};
use dogwatch_core::lock::{self, HolderReads, MIN_HOLDER_READ_INTERVAL, ObservedLease};
use dogwatch_core::reboot::ObservedHolderNode;
use dogwatch_k8s::{ApiErrorKind, Error};

use super::healer_job::{HealerCallResult, HealerJob};

impl HealerJob {
    pub(super) async fn perform_observation(
        &self,
        look: &HealerObserve,
    ) -> Result<Option<HealerCallResult>, Error> {
        let taken = self.clock.now().mono;
        Ok(match look {
            HealerObserve::Node { name, .. } => {
                let read = self.client.read_node(name, taken).await?;
                Some(HealerCallResult::ReadNode(name.clone(), Box::new(read)))
            }
            HealerObserve::Holder { lease, .. } => {
                let reads = self.read_holder_twice(lease, taken).await?;
                reads.map(HealerCallResult::ReadHolder)
            }
            HealerObserve::Api { holder, node, .. } => {
                let read = self
                    .client
                    .read_api_node_and_leases(node.as_ref(), taken)
                    .await?;
                Some(HealerCallResult::ReadApi(holder.clone(), Box::new(read)))
            }
            HealerObserve::Gates {
                node,
                gates,
                budgets,
                ..
            } => {
                let shut = self.client.list_shut_gates(node, gates, budgets).await?;
                Some(HealerCallResult::ReadGates(
                    node.clone(),
                    ObservedReturnGates { shut, taken },
                ))
            }
            HealerObserve::Hosts { node, .. } => {
                let host = self.client.find_host_of(node).await?;
                Some(HealerCallResult::ReadHosts(
                    node.clone(),
                    ObservedNodeHost { host, taken },
                ))
            }
        })
    }

    /// Reads the Node that holds a Lease twice.
    async fn read_holder_twice(
        &self,
        lease: &ObservedLease,
        taken: Duration,
    ) -> Result<Option<ObservedHolderNode>, Error> {
        let Some(name) = lock::holder_node_name(lease) else {
            return Ok(None);
        };
        let first = self.client.read_holder_node(&name).await?;
        let answered = self.clock.now().mono;
        self.clock
            .sleep_until(answered + MIN_HOLDER_READ_INTERVAL)
            .await;
        let asked = self.clock.now().mono;
        let second = self.client.read_holder_node(&name).await?;
        Ok(Some(ObservedHolderNode {
            lease: lease.name.clone(),
            resource_version: lease.resource_version.clone(),
            reads: HolderReads {
                nodes: [first, second],
                apart: asked.saturating_sub(answered),
            },
            taken,
        }))
    }

    /// `None`: an object that the action relied on has changed, and nothing was written.
    pub(super) async fn perform_action(
        &self,
        action: &HealerAction,
    ) -> Result<Option<HealerCallResult>, Error> {
        match self.send_action(action).await {
            Err(error)
                if error.kind() == ApiErrorKind::Conflict
                    || error.kind() == ApiErrorKind::NotFound =>
            {
                Ok(None)
            }
            answer => answer,
        }
    }

    async fn send_action(&self, action: &HealerAction) -> Result<Option<HealerCallResult>, Error> {
        let client = &self.client;
        let taken = self.clock.now().mono;
        Ok(match action {
            HealerAction::PatchNode { node, patch } => {
                let node = client.patch_node(node, patch).await?;
                Some(HealerCallResult::WroteNode(Box::new(node)))
            }
            HealerAction::Release { lease, remaining } => {
                let zone = self.zone.as_deref();
                let release = client.release_lease(lease, remaining, &self.policies, zone);
                release
                    .await?
                    .map(|lease| HealerCallResult::WroteLease(Box::new(lease)))
            }
            HealerAction::Break { lease, .. } => {
                let broken = client.break_lock(lease).await?;
                broken.map(|lease| HealerCallResult::WroteLease(Box::new(lease)))
            }
            HealerAction::PatchApiNode {
                holder,
                node,
                write,
            } => {
                client.patch_api_node(node, write).await?;
                Some(HealerCallResult::WroteApiNode(holder.clone()))
            }
            HealerAction::DeletePresence {
                name,
                uid,
                resource_version,
            } => {
                client.delete_presence(name, uid, resource_version).await?;
                None
            }
            HealerAction::NoteEscalation { node, note } => {
                client.record_escalation(node, note).await?;
                let read = client.read_node(&node.name, taken).await?;
                Some(HealerCallResult::ReadNode(
                    node.name.clone(),
                    Box::new(read),
                ))
            }
            HealerAction::Escalate { host, note } => {
                client.request_host_reboot(host, note).await?;
                self.node
                    .as_ref()
                    .map(|node| HealerCallResult::AskedHost(node.name.clone()))
            }
        })
    }
}

//! The healer's hand on the cluster. What to do and when is decided in `dogwatch_core::heal`.
//!
//! **May touch:** Nodes and their status, Dogwatch's Leases, Events; reads of what the return gates
//! ask; `metal3.io` BareMetalHosts (list, and one patch).
//! **Promises:** every write carries UID and resourceVersion of what it was decided on, but for
//! conditions (UID), which say what was seen and nothing more. Nothing is forced.

mod event;
mod host;

use std::time::Duration;

use dogwatch_api::{CONTROLLER, annotation};
use dogwatch_core::Now;
use dogwatch_core::condition::Write;
use dogwatch_core::heal::{ApiRead, Escalated, NodeRead};
use dogwatch_core::lock::api_lock::{ApiNode, NodeWrite};
use dogwatch_core::lock::{self, HolderId, HolderNode, LeaseSeen};
use dogwatch_core::name::{NodeName, RunId};
use dogwatch_core::policy::{Policies, ReturnGate};
use dogwatch_core::reboot::{NodePatch, NodeSeen, Parsed, group_of_lease};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

pub use event::About;

use crate::error::{Error, Kind, ask};
use crate::fleet::lease_row;
use crate::lock::{BidOutcome, Leaving, LockClient, ReleaseOutcome, api_lock, list_leases};
use crate::manager::patched_by;
use crate::node::{get_node, merge_patch, node_seen, patch_conditions, shut_gates};

/// The healer's hand.
#[derive(Clone)]
pub struct HealClient {
    client: Client,
    namespace: String,
}

impl HealClient {
    /// For the cluster behind `client`, whose Dogwatch lives in `namespace`.
    pub fn new(client: Client, namespace: impl Into<String>) -> Self {
        Self {
            client,
            namespace: namespace.into(),
        }
    }

    /// One Node, read afresh; `taken` is when.
    pub async fn read_node(&self, name: &NodeName, taken: Duration) -> Result<NodeRead, Error> {
        let node = get_node(&self.client, name.as_str()).await?;
        let text = |node: &Node| node.annotations().get(annotation::ESCALATED).cloned();
        let text = node.as_ref().and_then(text);
        Ok(NodeRead {
            // The API server accepts no name that we would not.
            node: node.and_then(|node| node_seen(&node).ok()),
            escalated: Parsed::read(text.as_deref()),
            taken,
        })
    }

    /// What there is under the name of the Node that a Lease is held for, read afresh.
    pub async fn holder_node(&self, name: &NodeName) -> Result<HolderNode, Error> {
        self.locks().holder_node(name).await
    }

    /// The Node of a host of the lock API, **then** every slot.
    pub async fn read_api(
        &self,
        node: Option<&NodeName>,
        taken: Duration,
    ) -> Result<ApiRead, Error> {
        let node = match node {
            Some(name) => api_lock::read(&self.client, name.as_str()).await?,
            None => None,
        };
        let leases = list_leases(&self.leases(), ListParams::default()).await?;
        let leases = leases.iter().filter_map(lease_row);
        Ok(ApiRead {
            node,
            leases: leases.map(|row| row.lease).collect(),
            taken,
        })
    }

    /// What keeps the return gates of a node shut.
    pub async fn shut_gates(
        &self,
        node: &NodeName,
        gates: &[ReturnGate],
        budgets: &[String],
    ) -> Result<Vec<String>, Error> {
        shut_gates(&self.client, node.as_str(), gates, budgets).await
    }

    /// Sends a patch that the Node's own coordinator would send.
    pub async fn patch_node(&self, node: &NodeSeen, patch: &NodePatch) -> Result<NodeSeen, Error> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let body = Patch::Merge(merge_patch(node, patch));
        let answer = ask(nodes.patch(node.name.as_str(), &params(), &body)).await?;
        seen(&answer)
    }

    /// Writes conditions of a Node.
    pub async fn patch_conditions(
        &self,
        node: &NodeSeen,
        writes: &[Write],
        now: Now,
    ) -> Result<NodeSeen, Error> {
        seen(&patch_conditions(&self.client, node, writes, now).await?)
    }

    /// Sends a patch that the lock API would send.
    pub async fn patch_api_node(&self, node: &ApiNode, write: &NodeWrite) -> Result<(), Error> {
        api_lock::write(&self.client, node, write).await
    }

    /// Writes onto a Node that its reboot is handed over.
    pub async fn note_escalation(
        &self,
        node: &NodeSeen,
        note: &Escalated,
    ) -> Result<NodeSeen, Error> {
        let text = serde_json::to_string(note).expect("names and a time serialise");
        let body = Patch::Merge(json!({ "metadata": {
            "uid": node.uid,
            "resourceVersion": node.resource_version,
            "annotations": { annotation::ESCALATED: text },
        }}));
        let nodes: Api<Node> = Api::all(self.client.clone());
        seen(&ask(nodes.patch(node.name.as_str(), &params(), &body)).await?)
    }

    /// Takes runs off a Lease; with nobody remaining frees it and calls the next. `zone` is that of
    /// the node that leaves, where its policy goes by one. `None`: it has changed since it was seen.
    pub async fn release(
        &self,
        lease: &LeaseSeen,
        remaining: &[RunId],
        policies: &Policies,
        zone: Option<&str>,
    ) -> Result<Option<LeaseSeen>, Error> {
        if let Some(holder) = lease.holder.as_ref().filter(|_| !remaining.is_empty()) {
            // The record is the holder's own field: written by another manager it would refuse the
            // holder's next apply for ever.
            let locks = LockClient::new(self.client.clone(), &self.namespace, holder.clone());
            return bid(locks.remove_run(lease, remaining.to_vec()).await);
        }
        let next = self.called(lease, policies, zone).await;
        released(self.locks().release(lease, &Leaving::Done { next }).await)
    }

    /// Clears a Lease whose holder is proved gone. `None`: it has changed since it was seen.
    pub async fn break_lock(&self, lease: &LeaseSeen) -> Result<Option<LeaseSeen>, Error> {
        released(self.locks().break_lock(lease).await)
    }

    /// Deletes the presence of a process that is gone, as it was seen.
    pub async fn delete_presence(
        &self,
        name: &str,
        uid: &str,
        resource_version: &str,
    ) -> Result<(), Error> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: Some(resource_version.to_owned()),
            }),
            ..DeleteParams::default()
        };
        match ask(self.leases().delete(name, &params)).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == Kind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whom to call. Without a hint the lock is still safe and live, so trouble here is only said.
    async fn called(
        &self,
        lease: &LeaseSeen,
        policies: &Policies,
        zone: Option<&str>,
    ) -> Vec<HolderId> {
        let (Some(group), Some(me)) = (group_of_lease(&lease.name), lease.holder.as_ref()) else {
            return Vec::new();
        };
        match self.locks().waiting_nodes(&group, policies).await {
            Ok(waiters) => lock::hint(&waiters, me, zone, lock::HINT_LENGTH),
            Err(error) => {
                let error = error.in_words();
                tracing::warn!(
                    error,
                    "cannot see who waits; releasing without calling anybody"
                );
                Vec::new()
            }
        }
    }

    fn locks(&self) -> LockClient {
        let me = HolderId::new(CONTROLLER).expect("a short name");
        LockClient::new(self.client.clone(), &self.namespace, me)
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

fn params() -> PatchParams {
    patched_by(CONTROLLER)
}

fn seen(node: &Node) -> Result<NodeSeen, Error> {
    node_seen(node).map_err(|error| Error::Unreadable(error.to_string()))
}

fn bid(outcome: BidOutcome) -> Result<Option<LeaseSeen>, Error> {
    match outcome {
        BidOutcome::Won(lease) => Ok(Some(*lease)),
        BidOutcome::Lost { .. } => Ok(None),
        BidOutcome::Unknown(error) | BidOutcome::Refused(error) => Err(error),
    }
}

fn released(outcome: ReleaseOutcome) -> Result<Option<LeaseSeen>, Error> {
    match outcome {
        ReleaseOutcome::Freed(lease) => Ok(Some(*lease)),
        ReleaseOutcome::Changed { .. } => Ok(None),
        ReleaseOutcome::Unknown(error) | ReleaseOutcome::Refused(error) => Err(error),
    }
}

//! Reads and writes for the healer. `dogwatch_core::healer` decides what to do and when.
//!
//! **May touch:** Nodes and their status, Dogwatch's Leases, Events; reads for the return gates;
//! `metal3.io` BareMetalHosts (list, and one patch).
//! **Promises:** every write carries UID and resourceVersion of the object that it was decided on.
//! Only condition writes carry just the UID: they report observations and nothing more. No write is
//! forced.

mod event;
mod host;

use std::time::Duration;

use dogwatch_api::{CONTROLLER, annotation};
use dogwatch_core::Now;
use dogwatch_core::condition::ConditionWrite;
use dogwatch_core::healer::{ApiLockRead, EscalationRecord, NodeRead};
use dogwatch_core::lock::api_lock::{ApiNode, NodeWrite};
use dogwatch_core::lock::{self, HolderId, HolderNode, ObservedLease};
use dogwatch_core::name::{NodeName, RunId};
use dogwatch_core::policy::{ClusterPolicies, ReturnGate};
use dogwatch_core::reboot::{NodePatch, ObservedNode, ParsedAnnotation, group_of_lease};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

pub use event::HealerEventSubject;

use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::field_manager::patch_params_for;
use crate::fleet::lease_row;
use crate::lock::{BidOutcome, LeaveReason, LockClient, ReleaseOutcome, api_lock, list_leases};
use crate::node::{get_node, list_shut_gates, merge_patch, observed_node, patch_conditions};
use crate::readable_dates::ReadableApi as _;

#[derive(Clone)]
pub struct HealerClient {
    client: Client,
    namespace: String,
}

impl HealerClient {
    /// `namespace`: where Dogwatch runs.
    pub fn new(client: Client, namespace: impl Into<String>) -> Self {
        Self {
            client,
            namespace: namespace.into(),
        }
    }

    /// Reads one Node; `taken` is the time of the read.
    pub async fn read_node(&self, name: &NodeName, taken: Duration) -> Result<NodeRead, Error> {
        let node = get_node(&self.client, name.as_str()).await?;
        let text = |node: &Node| node.annotations().get(annotation::ESCALATED).cloned();
        let text = node.as_ref().and_then(text);
        Ok(NodeRead {
            // The API server accepts no name that we would reject.
            node: node.and_then(|node| observed_node(&node).ok()),
            escalated: ParsedAnnotation::from_text(text.as_deref()),
            taken,
        })
    }

    /// Reads the Node that a Lease is held for.
    pub async fn read_holder_node(&self, name: &NodeName) -> Result<HolderNode, Error> {
        self.lock_client().read_holder_node(name).await
    }

    /// Reads the Node of a host of the lock API, **then** every slot.
    pub async fn read_api_node_and_leases(
        &self,
        node: Option<&NodeName>,
        taken: Duration,
    ) -> Result<ApiLockRead, Error> {
        let node = match node {
            Some(name) => api_lock::read_api_node(&self.client, name.as_str()).await?,
            None => None,
        };
        let leases = list_leases(&self.lease_api(), ListParams::default()).await?;
        let leases = leases.iter().filter_map(lease_row);
        Ok(ApiLockRead {
            node,
            leases: leases.map(|row| row.lease).collect(),
            taken,
        })
    }

    /// Which return gates of a node are shut, as text.
    pub async fn list_shut_gates(
        &self,
        node: &NodeName,
        gates: &[ReturnGate],
        budgets: &[String],
    ) -> Result<Vec<String>, Error> {
        list_shut_gates(&self.client, node.as_str(), gates, budgets).await
    }

    /// Sends a patch that the Node's own coordinator would send.
    pub async fn patch_node(
        &self,
        node: &ObservedNode,
        patch: &NodePatch,
    ) -> Result<ObservedNode, Error> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let body = Patch::Merge(merge_patch(node, patch));
        let answer =
            with_timeout(nodes.patch_readable(node.name.as_str(), &patch_params(), &body)).await?;
        parse_node(&answer)
    }

    pub async fn patch_conditions(
        &self,
        node: &ObservedNode,
        writes: &[ConditionWrite],
        now: Now,
    ) -> Result<ObservedNode, Error> {
        parse_node(&patch_conditions(&self.client, node, writes, now).await?)
    }

    /// Sends a patch that the lock API would send.
    pub async fn patch_api_node(&self, node: &ApiNode, write: &NodeWrite) -> Result<(), Error> {
        api_lock::patch_api_node(&self.client, node, write).await
    }

    /// Records on a Node that its reboot was escalated to the power controller.
    pub async fn record_escalation(
        &self,
        node: &ObservedNode,
        note: &EscalationRecord,
    ) -> Result<ObservedNode, Error> {
        let text = serde_json::to_string(note).expect("names and a time serialise");
        let body = Patch::Merge(json!({ "metadata": {
            "uid": node.uid,
            "resourceVersion": node.resource_version,
            "annotations": { annotation::ESCALATED: text },
        }}));
        let nodes: Api<Node> = Api::all(self.client.clone());
        parse_node(
            &with_timeout(nodes.patch_readable(node.name.as_str(), &patch_params(), &body)).await?,
        )
    }

    /// Removes runs from a Lease. If no run remains, frees it and names the next in line. `zone` is
    /// the zone of the leaving node, if its policy uses zones. `None`: the Lease has changed since
    /// it was read.
    pub async fn release_lease(
        &self,
        lease: &ObservedLease,
        remaining: &[RunId],
        policies: &ClusterPolicies,
        zone: Option<&str>,
    ) -> Result<Option<ObservedLease>, Error> {
        if let Some(holder) = lease.holder.as_ref().filter(|_| !remaining.is_empty()) {
            // The record is the holder's own field. Written by another field manager, it would
            // conflict with every later apply of the holder.
            let locks = LockClient::new(self.client.clone(), &self.namespace, holder.clone());
            return bid_result(locks.remove_run(lease, remaining.to_vec()).await);
        }
        let next = self.next_waiters(lease, policies, zone).await;
        release_result(
            self.lock_client()
                .release_lease(lease, &LeaveReason::Done { next })
                .await,
        )
    }

    /// Frees a Lease whose holder is proved gone. `None`: the Lease has changed since it was read.
    pub async fn break_lock(&self, lease: &ObservedLease) -> Result<Option<ObservedLease>, Error> {
        release_result(self.lock_client().break_lock(lease).await)
    }

    /// Deletes the presence Lease of a process that is gone, unless it has changed since it was
    /// read.
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
        match with_timeout(self.lease_api().delete(name, &params)).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ApiErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Who is next in line. Without this hint the lock is still safe and live, so an error is only
    /// logged.
    async fn next_waiters(
        &self,
        lease: &ObservedLease,
        policies: &ClusterPolicies,
        zone: Option<&str>,
    ) -> Vec<HolderId> {
        let (Some(group), Some(me)) = (group_of_lease(&lease.name), lease.holder.as_ref()) else {
            return Vec::new();
        };
        match self.lock_client().list_waiters(&group, policies).await {
            Ok(waiters) => lock::order_next_waiters(&waiters, me, zone, lock::MAX_NEXT_WAITERS),
            Err(error) => {
                let error = error.error_chain();
                tracing::warn!(
                    error,
                    "cannot read which nodes wait; releasing the lock without naming who is next in line"
                );
                Vec::new()
            }
        }
    }

    fn lock_client(&self) -> LockClient {
        let me = HolderId::new(CONTROLLER).expect("a short name");
        LockClient::new(self.client.clone(), &self.namespace, me)
    }

    fn lease_api(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

fn patch_params() -> PatchParams {
    patch_params_for(CONTROLLER)
}

fn parse_node(node: &Node) -> Result<ObservedNode, Error> {
    observed_node(node).map_err(|error| Error::Unreadable(error.to_string()))
}

fn bid_result(outcome: BidOutcome) -> Result<Option<ObservedLease>, Error> {
    match outcome {
        BidOutcome::Won(lease) => Ok(Some(*lease)),
        BidOutcome::Lost { .. } => Ok(None),
        BidOutcome::Unknown(error) | BidOutcome::Refused(error) => Err(error),
    }
}

fn release_result(outcome: ReleaseOutcome) -> Result<Option<ObservedLease>, Error> {
    match outcome {
        ReleaseOutcome::Freed(lease) => Ok(Some(*lease)),
        ReleaseOutcome::Changed { .. } => Ok(None),
        ReleaseOutcome::Unknown(error) | ReleaseOutcome::Refused(error) => Err(error),
    }
}

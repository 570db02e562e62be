//! Implements [`RemediationOps`] with the API server.

use dogwatch_core::Now;
use dogwatch_core::condition::ConditionWrite;
use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::remediation::{
    NodeCluster, Remediation, RemediationAction, RemediationCluster, RemediationObserve,
    RemediationSubject, WorkloadRelease,
};
use dogwatch_k8s::healer::HealerClient;
use dogwatch_k8s::lock::RemediationLeaseClient;
use dogwatch_k8s::remediation::{NodeReleaseOutcome, RemediationClient, RemediationEventSubject};
use dogwatch_runtime::clock::ProcessClock;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::call_answers::{
    backup_answer, backup_gone_answer, finalizer_answer, host_answer, machine_answer, node_answer,
    request_answer,
};
use super::node_cluster_calls::NodeClusterCalls;
use super::remediation_ops::{
    RemediationAnswer, RemediationCallError, RemediationFinding, RemediationOps,
};
use super::workload_clusters::WorkloadRegistry;
use crate::ControllerContext;
use crate::cluster_views::ClusterViewReceiver;

pub(super) struct RemediationApiCalls {
    client: RemediationClient,
    leases: RemediationLeaseClient,
    /// Writes conditions of Nodes as the healer does.
    nodes: HealerClient,
    cluster: ClusterViewReceiver,
    clock: ProcessClock,
    workload: WorkloadRegistry,
}

impl RemediationApiCalls {
    pub(super) fn new(context: &ControllerContext, workload: WorkloadRegistry) -> Self {
        let client = &context.client;
        Self {
            client: RemediationClient::new(client.clone(), context.namespace.clone()),
            leases: RemediationLeaseClient::new(client.clone(), &context.namespace),
            nodes: HealerClient::new(client.clone(), &context.namespace),
            cluster: context.cluster.clone(),
            clock: context.clock.clone(),
            workload,
        }
    }

    /// The calls in the cluster that the remediation was decided on: a connection to any other is
    /// not used.
    fn node_cluster_calls(
        &self,
        cluster: &RemediationCluster,
    ) -> Result<NodeClusterCalls, RemediationCallError> {
        let name = match &cluster.name {
            NodeCluster::Management => {
                return Ok(NodeClusterCalls {
                    client: self.client.clone(),
                    leases: self.leases.clone(),
                    view: self.cluster.current_view(),
                });
            }
            NodeCluster::Workload(name) => name,
        };
        let uid = cluster.uid.as_deref();
        let access = uid.and_then(|uid| self.workload.find_access(name, uid));
        let access = access.ok_or_else(|| {
            RemediationCallError::Failed(format!("workload cluster {name} cannot be reached now"))
        })?;
        Ok(NodeClusterCalls {
            client: self.client.with_node_client(access.client.clone()),
            leases: RemediationLeaseClient::new(access.client, &access.namespace),
            view: access.view,
        })
    }

    /// After a failed call for a Node of a workload cluster its Secret is read again at once: the
    /// credential may have been refused.
    fn check_after_failure<T>(
        &self,
        case: &Remediation,
        answer: Result<T, RemediationCallError>,
    ) -> Result<T, RemediationCallError> {
        let workload = case.cluster.name.workload();
        if let (
            Err(RemediationCallError::Failed(_) | RemediationCallError::Refused(_)),
            Some(name),
        ) = (&answer, workload)
        {
            self.workload.request_check(name);
        }
        answer
    }

    async fn send_action(
        &self,
        case: &Remediation,
        action: &RemediationAction,
        conditions: &[ConditionWrite],
        now: Now,
    ) -> Result<RemediationAnswer, RemediationCallError> {
        let calls = self.node_cluster_calls_for(case, action)?;
        let client = &calls.client;
        Ok(match action {
            RemediationAction::TakeLease {
                node,
                control_plane,
                on_conflict,
                ..
            } => {
                let take = calls.take_lease(case, node, *control_plane, *on_conflict, now);
                take.await?
            }
            RemediationAction::FreeLease { node, version } => {
                calls.free_lease(node, version).await?
            }
            RemediationAction::MarkNode { node, subject } => {
                node_answer(client.mark_node_fencing(node, subject, now.wall).await?)
            }
            RemediationAction::UnmarkNode { node } => {
                node_answer(client.unmark_node_fencing(node).await?)
            }
            RemediationAction::AddKey { host, key, record } => {
                host_answer(client.add_key(host, key, record).await?)
            }
            RemediationAction::RemoveKey { host, key, record } => {
                host_answer(client.remove_key(host, key, record.as_ref()).await?)
            }
            RemediationAction::WriteRecord { host, record } => {
                host_answer(client.write_record(host, record).await?)
            }
            RemediationAction::KeepBackup { host, backup, over } => {
                backup_answer(client.write_backup(host, backup, over.as_deref()).await?)
            }
            RemediationAction::DropBackup { stored } => {
                client.delete_backup(stored).await?;
                backup_gone_answer(stored)
            }
            RemediationAction::RemoveOldBackup { host } => {
                host_answer(client.remove_old_backup(host).await?)
            }
            RemediationAction::Release(release) => self.release_workloads(client, release).await?,
            RemediationAction::RemoveMachineNeed { machine } => {
                machine_answer(client.remove_machine_need(machine).await?)
            }
            RemediationAction::RemoveNodeNeed { node } => {
                node_answer(client.remove_node_need(node).await?)
            }
            RemediationAction::Restore { node, backup } => {
                node_answer(client.restore_node(node, backup).await?)
            }
            RemediationAction::Untaint { node, tainted_at } => {
                node_answer(client.untaint_node(node, *tainted_at).await?)
            }
            RemediationAction::WriteStatus { request, status } => request_answer(
                client
                    .write_request_status(request, status, conditions)
                    .await?,
            ),
            RemediationAction::AddFinalizer { request } => {
                request_answer(client.add_finalizer(request).await?)
            }
            RemediationAction::RemoveFinalizer { request } => {
                finalizer_answer(request, client.remove_finalizer(request).await?)
            }
            RemediationAction::HandBack { machine, message } => {
                machine_answer(client.hand_back_machine(machine, message, now.wall).await?)
            }
        })
    }

    /// Writes to hosts, Machines and requests need no way into the cluster of the Node.
    fn node_cluster_calls_for(
        &self,
        case: &Remediation,
        action: &RemediationAction,
    ) -> Result<NodeClusterCalls, RemediationCallError> {
        let cluster = match action {
            RemediationAction::TakeLease { .. }
            | RemediationAction::FreeLease { .. }
            | RemediationAction::MarkNode { .. }
            | RemediationAction::UnmarkNode { .. }
            | RemediationAction::Release(_)
            | RemediationAction::RemoveNodeNeed { .. }
            | RemediationAction::Restore { .. }
            | RemediationAction::Untaint { .. } => &case.cluster,
            RemediationAction::AddKey { .. }
            | RemediationAction::RemoveKey { .. }
            | RemediationAction::WriteRecord { .. }
            | RemediationAction::KeepBackup { .. }
            | RemediationAction::DropBackup { .. }
            | RemediationAction::RemoveOldBackup { .. }
            | RemediationAction::RemoveMachineNeed { .. }
            | RemediationAction::WriteStatus { .. }
            | RemediationAction::AddFinalizer { .. }
            | RemediationAction::RemoveFinalizer { .. }
            | RemediationAction::HandBack { .. } => &RemediationCluster::management(),
        };
        self.node_cluster_calls(cluster)
    }

    async fn release_workloads(
        &self,
        client: &RemediationClient,
        release: &WorkloadRelease,
    ) -> Result<RemediationAnswer, RemediationCallError> {
        let now = || self.clock.now().mono;
        Ok(match client.release_node(release, now).await? {
            NodeReleaseOutcome::Gone => RemediationAnswer::NodeGone {
                name: release.permit.node().clone(),
                uid: release.permit.node_uid().to_owned(),
            },
            NodeReleaseOutcome::Tainted(node) => RemediationAnswer::Node(node),
        })
    }

    async fn read_observation(
        &self,
        case: &Remediation,
        look: &RemediationObserve,
    ) -> Result<RemediationFinding, RemediationCallError> {
        let asked = self.clock.now().mono;
        let client = self.node_cluster_calls(&case.cluster)?.client;
        Ok(match look {
            RemediationObserve::Heartbeat { node, .. } => {
                RemediationFinding::Beat(asked, client.read_heartbeat(node).await?)
            }
            RemediationObserve::Fresh { .. } => {
                let fresh = Box::pin(client.read_fresh(case, asked));
                RemediationFinding::Fresh(fresh.await?.into())
            }
            RemediationObserve::Leftovers { node, .. } => {
                RemediationFinding::Leftovers(client.read_leftovers(node, asked).await?)
            }
        })
    }

    async fn patch_conditions(
        &self,
        case: &Remediation,
        conditions: &[ConditionWrite],
        now: Now,
    ) -> Result<RemediationAnswer, RemediationCallError> {
        match (&case.subject, &case.machine, &case.node, &case.request) {
            (RemediationSubject::Machine(_), Some(machine), _, _) => {
                let write = self.client.write_machine_conditions(machine, conditions);
                Ok(machine_answer(write.await?))
            }
            (RemediationSubject::Node(_), _, Some(node), _) => {
                let written = self.nodes.patch_conditions(node, conditions, now).await?;
                Ok(node_answer(written))
            }
            (RemediationSubject::Request(_), _, _, Some(request)) => {
                let status = &request.status;
                let write = self
                    .client
                    .write_request_status(request, status, conditions);
                Ok(request_answer(write.await?))
            }
            // The power controller writes the hosts' conditions; a deleted object has none.
            (
                RemediationSubject::Machine(_)
                | RemediationSubject::Node(_)
                | RemediationSubject::Request(_)
                | RemediationSubject::WorkloadNode(..)
                | RemediationSubject::Host(_),
                _,
                _,
                _,
            ) => Ok(RemediationAnswer::Nothing),
        }
    }

    /// Reports the Event about the case's object and about its Node, because people look at the
    /// Node that goes away.
    async fn report_event_about(
        &self,
        case: &Remediation,
        event: &DecisionEvent,
        now: Now,
    ) -> Result<(), RemediationCallError> {
        let host = case.host.as_ref().ok();
        let own = match &case.subject {
            RemediationSubject::Machine(_) => case
                .machine
                .as_deref()
                .map(RemediationEventSubject::Machine),
            RemediationSubject::Request(_) => case
                .request
                .as_deref()
                .map(RemediationEventSubject::Request),
            RemediationSubject::Host(_) => host.map(|host| RemediationEventSubject::Host(host)),
            RemediationSubject::Node(_) | RemediationSubject::WorkloadNode(..) => None,
        };
        // The account in a workload cluster may write no Events.
        let is_here = case.cluster.name == NodeCluster::Management;
        let node = case.node.as_deref().filter(|_| is_here);
        let node = node.map(RemediationEventSubject::Node);
        let own = own.or(host
            .filter(|_| node.is_none())
            .map(|host| RemediationEventSubject::Host(host)));
        let since = case.record.as_ref().and_then(|record| record.steps.first());
        let episode = since.map_or_else(String::new, |step| step.at.to_string());
        for about in own.into_iter().chain(node) {
            self.client.write_event(about, &episode, event, now).await?;
        }
        Ok(())
    }
}

impl RemediationOps for RemediationApiCalls {
    fn perform_action<'a>(
        &'a self,
        case: &'a Remediation,
        action: &'a RemediationAction,
        conditions: &'a [ConditionWrite],
        now: Now,
    ) -> BoxFuture<'a, Result<RemediationAnswer, RemediationCallError>> {
        let sent = self.send_action(case, action, conditions, now);
        sent.map(move |answer| self.check_after_failure(case, answer))
            .boxed()
    }

    fn perform_observation<'a>(
        &'a self,
        case: &'a Remediation,
        look: &'a RemediationObserve,
    ) -> BoxFuture<'a, Result<RemediationFinding, RemediationCallError>> {
        let read = self.read_observation(case, look);
        read.map(move |found| self.check_after_failure(case, found))
            .boxed()
    }

    fn write_conditions<'a>(
        &'a self,
        case: &'a Remediation,
        conditions: &'a [ConditionWrite],
        now: Now,
    ) -> BoxFuture<'a, Result<RemediationAnswer, RemediationCallError>> {
        self.patch_conditions(case, conditions, now).boxed()
    }

    fn report_event<'a>(
        &'a self,
        case: &'a Remediation,
        event: &'a DecisionEvent,
        now: Now,
    ) -> BoxFuture<'a, Result<(), RemediationCallError>> {
        self.report_event_about(case, event, now).boxed()
    }
}

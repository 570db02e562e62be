//! Implements [`RemediationOps`] with the API server.

use dogwatch_core::Now;
use dogwatch_core::condition::ConditionWrite;
use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::name::{GroupName, NodeName};
use dogwatch_core::policy::{self, ClusterPolicies};
use dogwatch_core::power::HostSnapshot;
use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::remediation::{
    HeldRemediationLease, ObservedMachine, PowerRequest, Remediation, RemediationAction,
    RemediationObserve, RemediationSubject, WorkloadRelease,
};
use dogwatch_k8s::healer::HealerClient;
use dogwatch_k8s::lock::{
    LeaseFreeOutcome, LeaseTakeOutcome, RemediationLeaseClient, RemediationLeaseHold,
};
use dogwatch_k8s::remediation::{
    NodeReleaseOutcome, RemediationClient, RemediationEventSubject, RemediationWriteError,
};
use dogwatch_k8s::{ApiErrorKind, Error};
use dogwatch_runtime::clock::ProcessClock;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::remediation_ops::{
    RemediationAnswer, RemediationCallError, RemediationFinding, RemediationOps,
};
use crate::ControllerContext;
use crate::cluster_views::ClusterViewReceiver;

pub(super) struct RemediationApiCalls {
    client: RemediationClient,
    leases: RemediationLeaseClient,
    /// Writes conditions of Nodes as the healer does.
    nodes: HealerClient,
    cluster: ClusterViewReceiver,
    clock: ProcessClock,
}

impl RemediationApiCalls {
    pub(super) fn new(context: &ControllerContext) -> Self {
        let client = &context.client;
        Self {
            client: RemediationClient::new(client.clone(), context.namespace.clone()),
            leases: RemediationLeaseClient::new(client.clone(), &context.namespace),
            nodes: HealerClient::new(client.clone(), &context.namespace),
            cluster: context.cluster.clone(),
            clock: context.clock.clone(),
        }
    }

    async fn send_action(
        &self,
        action: &RemediationAction,
        conditions: &[ConditionWrite],
        now: Now,
    ) -> Result<RemediationAnswer, RemediationCallError> {
        let client = &self.client;
        Ok(match action {
            RemediationAction::TakeLease {
                node,
                control_plane,
                subject,
            } => self.take_lease(node, *control_plane, subject, now).await?,
            RemediationAction::FreeLease { node } => self.free_lease(node).await?,
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
                let kept = client.write_backup(host, backup, over.as_deref()).await?;
                RemediationAnswer::Backup(kept.into())
            }
            RemediationAction::DropBackup { stored } => {
                client.delete_backup(stored).await?;
                RemediationAnswer::BackupGone {
                    host: stored.host_uid.clone(),
                    uid: stored.uid.clone(),
                }
            }
            RemediationAction::RemoveOldBackup { host } => {
                host_answer(client.remove_old_backup(host).await?)
            }
            RemediationAction::Release(release) => self.release_workloads(release).await?,
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
                let left = client.remove_finalizer(request).await?;
                left.map_or_else(|| request_gone_answer(request), request_answer)
            }
            RemediationAction::HandBack { machine, message } => {
                machine_answer(client.hand_back_machine(machine, message, now.wall).await?)
            }
        })
    }

    async fn release_workloads(
        &self,
        release: &WorkloadRelease,
    ) -> Result<RemediationAnswer, RemediationCallError> {
        let now = || self.clock.now().mono;
        Ok(match self.client.release_node(release, now).await? {
            NodeReleaseOutcome::Gone => RemediationAnswer::NodeGone {
                name: release.permit.node().clone(),
                uid: release.permit.node_uid().to_owned(),
            },
            NodeReleaseOutcome::Tainted(node) => RemediationAnswer::Node(node),
        })
    }

    async fn take_lease(
        &self,
        node: &NodeName,
        control_plane: bool,
        subject: &RemediationSubject,
        now: Now,
    ) -> Result<RemediationAnswer, RemediationCallError> {
        let subject = subject.to_string();
        let group = self.group_of_node(node);
        let take = self
            .leases
            .take_lease(node, control_plane, group, &subject, now.wall);
        match take.await? {
            LeaseTakeOutcome::Held(held) => Ok(RemediationAnswer::Lease {
                node: node.clone(),
                lease: Some(remediation_lease_of(&held)),
            }),
            LeaseTakeOutcome::Refused { by } => Err(RemediationCallError::Refused(by)),
        }
    }

    /// The group that the Node belongs to now; `None` if the Node or the policies were not read.
    fn group_of_node(&self, node: &NodeName) -> Option<GroupName> {
        let view = self.cluster.current_view();
        let seen = view.nodes.get(node).filter(|_| view.synced)?;
        match &view.policies {
            known @ ClusterPolicies::Known(_) => Some(policy::group_of_labels(known, &seen.labels)),
            ClusterPolicies::NotYetRead | ClusterPolicies::Unreadable { .. } => None,
        }
    }

    async fn free_lease(&self, node: &NodeName) -> Result<RemediationAnswer, RemediationCallError> {
        let view = self.cluster.current_view();
        let mut held = view
            .leases
            .values()
            .filter_map(|it| RemediationLeaseHold::from_lease(it));
        let free = RemediationAnswer::Lease {
            node: node.clone(),
            lease: None,
        };
        let Some(held) = held.find(|held| held.node == *node) else {
            return Ok(free);
        };
        match self.leases.free_lease(&held).await? {
            LeaseFreeOutcome::Done => Ok(free),
            LeaseFreeOutcome::Changed => Err(RemediationCallError::Changed(format!(
                "lease {}",
                held.lease
            ))),
        }
    }

    async fn read_observation(
        &self,
        case: &Remediation,
        look: &RemediationObserve,
    ) -> Result<RemediationFinding, RemediationCallError> {
        let asked = self.clock.now().mono;
        Ok(match look {
            RemediationObserve::Heartbeat { node, .. } => {
                RemediationFinding::Beat(asked, self.client.read_heartbeat(node).await?)
            }
            RemediationObserve::Fresh { .. } => {
                let fresh = Box::pin(self.client.read_fresh(case, asked));
                RemediationFinding::Fresh(fresh.await?.into())
            }
            RemediationObserve::Leftovers { node, .. } => {
                RemediationFinding::Leftovers(self.client.read_leftovers(node, asked).await?)
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
            RemediationSubject::Node(_) => None,
        };
        let node = case.node.as_deref().map(RemediationEventSubject::Node);
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
        action: &'a RemediationAction,
        conditions: &'a [ConditionWrite],
        now: Now,
    ) -> BoxFuture<'a, Result<RemediationAnswer, RemediationCallError>> {
        self.send_action(action, conditions, now).boxed()
    }

    fn perform_observation<'a>(
        &'a self,
        case: &'a Remediation,
        look: &'a RemediationObserve,
    ) -> BoxFuture<'a, Result<RemediationFinding, RemediationCallError>> {
        self.read_observation(case, look).boxed()
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

fn node_answer(node: ObservedNode) -> RemediationAnswer {
    RemediationAnswer::Node(node.into())
}

fn host_answer(host: HostSnapshot) -> RemediationAnswer {
    RemediationAnswer::Host(host.into())
}

fn request_answer(request: PowerRequest) -> RemediationAnswer {
    RemediationAnswer::Request(request.into())
}

fn request_gone_answer(request: &PowerRequest) -> RemediationAnswer {
    RemediationAnswer::RequestGone {
        name: request.name.clone(),
        uid: request.uid.clone(),
    }
}

fn machine_answer(machine: ObservedMachine) -> RemediationAnswer {
    RemediationAnswer::Machine(machine.into())
}

pub(super) fn remediation_lease_of(held: &RemediationLeaseHold) -> HeldRemediationLease {
    HeldRemediationLease {
        subject: held.subject.clone(),
        resource_version: held.resource_version.clone(),
    }
}

impl From<Error> for RemediationCallError {
    fn from(error: Error) -> Self {
        let words = error.error_chain();
        match error.kind() {
            ApiErrorKind::Conflict | ApiErrorKind::NotFound | ApiErrorKind::AlreadyExists => {
                RemediationCallError::Changed(words)
            }
            ApiErrorKind::Forbidden | ApiErrorKind::Refused => RemediationCallError::Refused(words),
            ApiErrorKind::Gone | ApiErrorKind::Throttled { .. } | ApiErrorKind::Transient => {
                RemediationCallError::Failed(words)
            }
        }
    }
}

impl From<RemediationWriteError> for RemediationCallError {
    fn from(error: RemediationWriteError) -> Self {
        let words = error.error_chain();
        match error {
            RemediationWriteError::Changed(_) | RemediationWriteError::Expired(_) => {
                RemediationCallError::Changed(words)
            }
            RemediationWriteError::Foreign(_)
            | RemediationWriteError::Kept { .. }
            | RemediationWriteError::Dropped(_)
            | RemediationWriteError::Forbidden { .. } => RemediationCallError::Refused(words),
            RemediationWriteError::Api(error) => error.into(),
        }
    }
}

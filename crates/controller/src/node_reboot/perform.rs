//! The calls of NodeReboots: a finalizer, a status, a patch of a Node, a read of it, an Event.

use std::sync::Arc;

use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::node_reboot::{
    NodeRebootAction, NodeRebootObserve, NodeRebootReason, NodeRebootSnapshot, NodeRequestPatch,
    ObservedNodeReboot, RebootNodeRead,
};
use dogwatch_core::reboot::ObservedNode;
use dogwatch_k8s::ApiErrorKind;
use dogwatch_k8s::node_reboot::NodeRebootClient;
use dogwatch_runtime::clock::ProcessClock;
use dogwatch_runtime::reconcile::{CallEnd, DecisionOf, DomainCalls};
use tracing::warn;

use crate::call_end::call_end_of;

pub(super) struct NodeRebootCalls {
    pub(super) client: NodeRebootClient,
    pub(super) clock: ProcessClock,
}

/// An object after our own write.
pub(super) enum NodeRebootAnswer {
    Reboot(Arc<ObservedNodeReboot>),
    Node(Option<Arc<ObservedNode>>),
    Gone,
}

impl DomainCalls for NodeRebootCalls {
    type Snapshot = NodeRebootSnapshot;
    type Action = NodeRebootAction;
    type Observe = NodeRebootObserve;
    type Reason = NodeRebootReason;
    type Answer = NodeRebootAnswer;
    type Finding = RebootNodeRead;

    async fn perform_action(
        &self,
        seen: &NodeRebootSnapshot,
        decision: &DecisionOf<Self>,
        action: &NodeRebootAction,
    ) -> CallEnd<NodeRebootAnswer> {
        let (client, own) = (&self.client, &*seen.own);
        let written = match action {
            NodeRebootAction::AddFinalizer => client.write_finalizer(own, true).await,
            NodeRebootAction::RemoveFinalizer => client.write_finalizer(own, false).await,
            NodeRebootAction::WriteStatus(status) => {
                let (conditions, now) = (&decision.report.conditions, self.clock.now());
                client.write_status(own, status, conditions, now).await
            }
            NodeRebootAction::PatchNode(patch) => return self.patch_node(patch).await,
            NodeRebootAction::DeleteObject => {
                let deleted = client.delete_object(own).await;
                return call_end_of(deleted.map(|()| NodeRebootAnswer::Gone));
            }
        };
        call_end_of(written.map(|reboot| NodeRebootAnswer::Reboot(Arc::new(reboot))))
    }

    async fn perform_observation(
        &self,
        seen: &NodeRebootSnapshot,
        what: &NodeRebootObserve,
    ) -> Option<RebootNodeRead> {
        let (NodeRebootObserve::Node, plan) = (what, seen.own.plan.as_ref().ok()?);
        let taken = self.clock.now().mono;
        let node = self.client.read_node(&plan.node).await;
        Some(RebootNodeRead {
            node: node.map_err(|error| error.error_chain()),
            taken,
        })
    }

    async fn report_event(&self, seen: &NodeRebootSnapshot, event: &DecisionEvent) -> CallEnd<()> {
        let (own, now) = (&seen.own, self.clock.now());
        match self.client.write_event(own, event, now).await {
            Err(error) if error.kind() != ApiErrorKind::Transient => {
                // A retry would not help; the conditions say the same.
                let error = error.error_chain();
                warn!(node_reboot = %own.name, event = event.reason, error, "failed to write an Event");
                CallEnd::Done(())
            }
            answer => call_end_of(answer),
        }
    }
}

impl NodeRebootCalls {
    async fn patch_node(&self, patch: &NodeRequestPatch) -> CallEnd<NodeRebootAnswer> {
        match self.client.patch_request(patch).await {
            // The Node changes all the time; it is decided anew, at once and with the newest one.
            Err(error) if error.kind() == ApiErrorKind::Conflict => {
                let newest = self.client.read_node(&patch.node).await;
                call_end_of(newest.map(NodeRebootAnswer::Node))
            }
            // If another writer removes the annotation, a success here would ask for ever.
            Ok(Some(node)) if node.request.get() != patch.request.as_ref() => CallEnd::Failed(
                "the API server did not keep annotation dogwatch.dev/reboot-requested".into(),
            ),
            answer => call_end_of(answer.map(NodeRebootAnswer::Node)),
        }
    }
}

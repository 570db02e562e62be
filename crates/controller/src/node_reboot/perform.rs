//! The calls of NodeReboots: a finalizer, a status, a patch of a Node or a host, a read, an Event.

use std::sync::Arc;

use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::{
    HostKeyPatch, HostKeySnapshot, HostLookup, KeyOwnerRead, LateAskBlock, NodeHostRead,
    NodeRebootAction, NodeRebootObserve, NodeRebootReason, NodeRebootSnapshot, NodeRebootState,
    NodeRequestPatch, ObservedNodeReboot, RebootNodeRead, is_power_cycle_open,
};
use dogwatch_core::power::HostSnapshot;
use dogwatch_core::reboot::ObservedNode;
use dogwatch_k8s::node_reboot::NodeRebootClient;
use dogwatch_k8s::{ApiErrorKind, Error};
use dogwatch_runtime::clock::ProcessClock;
use dogwatch_runtime::reconcile::{CallEnd, DecisionOf, DomainCalls};

use super::keys::{KeySnapshot, NodeRebootAnswer, NodeRebootFinding};
use crate::call_end::{call_end_of, event_end_of, pruned_status_event, status_end_of};

pub(super) struct NodeRebootCalls {
    pub(super) client: NodeRebootClient,
    pub(super) clock: ProcessClock,
}

impl DomainCalls for NodeRebootCalls {
    type Snapshot = KeySnapshot;
    type Action = NodeRebootAction;
    type Observe = NodeRebootObserve;
    type Reason = NodeRebootReason;
    type Answer = NodeRebootAnswer;
    type Finding = NodeRebootFinding;

    async fn perform_action(
        &self,
        seen: &KeySnapshot,
        decision: &DecisionOf<Self>,
        action: &NodeRebootAction,
    ) -> CallEnd<NodeRebootAnswer> {
        match (seen, action) {
            (KeySnapshot::Reboot(seen), _) => self.write_reboot(seen, decision, action).await,
            (KeySnapshot::HostKey(_), NodeRebootAction::PatchHost(patch)) => {
                self.patch_host(patch).await
            }
            (KeySnapshot::HostKey(_), _) => CallEnd::Changed,
        }
    }

    async fn perform_observation(
        &self,
        seen: &KeySnapshot,
        what: &NodeRebootObserve,
    ) -> Option<NodeRebootFinding> {
        match (seen, what) {
            (KeySnapshot::HostKey(seen), NodeRebootObserve::KeyOwner) => {
                let read = self.read_key_owner(seen).await;
                Some(NodeRebootFinding::KeyOwner(read))
            }
            (KeySnapshot::Reboot(seen), NodeRebootObserve::Node) => {
                let plan = seen.own.plan.as_ref().ok()?;
                let read = self.read_node(&plan.node).await;
                Some(NodeRebootFinding::Node(read))
            }
            (KeySnapshot::Reboot(seen), NodeRebootObserve::Host(lookup)) => {
                let plan = seen.own.plan.as_ref().ok()?;
                let read = self.read_host(&plan.node, lookup).await;
                Some(NodeRebootFinding::Host(read))
            }
            (KeySnapshot::HostKey(_), NodeRebootObserve::Node | NodeRebootObserve::Host(_))
            | (KeySnapshot::Reboot(_), NodeRebootObserve::KeyOwner) => None,
        }
    }

    async fn report_event(&self, seen: &KeySnapshot, event: &DecisionEvent) -> CallEnd<()> {
        let KeySnapshot::Reboot(seen) = seen else {
            return CallEnd::Done(());
        };
        let (own, now) = (&seen.own, self.clock.now());
        let written = self.client.write_event(own, event, now).await;
        event_end_of(written, &own.name, event)
    }
}

impl NodeRebootCalls {
    async fn write_reboot(
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
                return self.write_status(seen, decision, status).await;
            }
            NodeRebootAction::PatchNode(patch) => return self.patch_node(own, patch).await,
            NodeRebootAction::BlockLateAsk(block) => return self.block_late_ask(block).await,
            NodeRebootAction::PatchHost(patch) if patch.value.is_some() => {
                return self.put_host_key(own, patch).await;
            }
            NodeRebootAction::PatchHost(patch) => return self.patch_host(patch).await,
            NodeRebootAction::DeleteObject => {
                let deleted = client.delete_object(own).await;
                return call_end_of(deleted.map(|()| NodeRebootAnswer::Gone));
            }
        };
        call_end_of(written.map(|reboot| NodeRebootAnswer::Reboot(Arc::new(reboot))))
    }

    async fn write_status(
        &self,
        seen: &NodeRebootSnapshot,
        decision: &DecisionOf<Self>,
        status: &NodeRebootState,
    ) -> CallEnd<NodeRebootAnswer> {
        let (own, conditions) = (&seen.own, &decision.report.conditions);
        let now = self.clock.now();
        let wrote = self.client.write_status(own, status, conditions, now).await;
        if let Some(event) = pruned_status_event(&wrote) {
            // An Event that is not written is tried again with the status.
            let written = self.client.write_event(own, &event, now).await;
            let _ = event_end_of(written, &own.name, &event);
        }
        status_end_of(wrote.map(|reboot| NodeRebootAnswer::Reboot(Arc::new(reboot))))
    }

    async fn read_node(&self, node: &NodeName) -> RebootNodeRead {
        let taken = self.clock.now().mono;
        let node = self.client.read_node(node).await;
        RebootNodeRead {
            node: node.map_err(|error| error.error_chain()),
            taken,
        }
    }

    async fn read_host(&self, node: &NodeName, lookup: &HostLookup) -> NodeHostRead {
        let taken = self.clock.now().mono;
        let found = match lookup {
            HostLookup::ByLinks => self.client.find_host_of(node).await,
            HostLookup::ByName(host) => self.client.read_host(host).await,
        };
        NodeHostRead {
            lookup: lookup.clone(),
            found: found.map_err(|error| error.error_chain()),
            taken,
        }
    }

    async fn read_key_owner(&self, seen: &HostKeySnapshot) -> KeyOwnerRead {
        let taken = self.clock.now().mono;
        let all = self.client.list_reboots().await;
        let is_owned = match all {
            Ok(all) => {
                let mut all = all.into_iter();
                let owner = all.find(|one| one.uid == seen.owner);
                Ok(owner.is_some_and(|owner| is_power_cycle_open(&owner, &seen.host)))
            }
            // The kind is gone, and all NodeReboots with it.
            Err(error) if error.kind() == ApiErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.error_chain()),
        };
        KeyOwnerRead { is_owned, taken }
    }

    /// Another leader may have proved the host off and taken the key off already.
    async fn put_host_key(
        &self,
        own: &ObservedNodeReboot,
        patch: &HostKeyPatch,
    ) -> CallEnd<NodeRebootAnswer> {
        match call_end_of(self.client.put_host_key(own, patch).await) {
            CallEnd::Done(Some(host)) => check_written_key(patch, host),
            CallEnd::Done(None) | CallEnd::Changed => CallEnd::Changed,
            CallEnd::Failed(error) => CallEnd::Failed(error),
        }
    }

    async fn patch_host(&self, patch: &HostKeyPatch) -> CallEnd<NodeRebootAnswer> {
        match call_end_of(self.client.patch_host_key(patch).await) {
            CallEnd::Done(host) => check_written_key(patch, host),
            CallEnd::Changed => CallEnd::Changed,
            CallEnd::Failed(error) => CallEnd::Failed(error),
        }
    }

    /// Another leader may have ended the NodeReboot already: then its Node is not asked again.
    async fn patch_node(
        &self,
        own: &ObservedNodeReboot,
        patch: &NodeRequestPatch,
    ) -> CallEnd<NodeRebootAnswer> {
        if patch.asks_for(own) {
            match call_end_of(self.client.is_current(own).await) {
                CallEnd::Done(true) => {}
                CallEnd::Done(false) | CallEnd::Changed => return CallEnd::Changed,
                CallEnd::Failed(error) => return CallEnd::Failed(error),
            }
        }
        match self.client.patch_request(patch).await {
            // The Node changes all the time; it is decided anew, at once and with the newest one.
            Err(error) if error.kind() == ApiErrorKind::Conflict => {
                let is_same = |node: &ObservedNode| patch.is_decided_on(node);
                self.read_changed_node(&patch.node, is_same, &error).await
            }
            // If another writer removes the annotation, a success here would ask for ever.
            Ok(Some(node)) if node.request.get() != patch.request.as_ref() => CallEnd::Failed(
                "the API server did not keep annotation dogwatch.dev/reboot-requested".into(),
            ),
            answer => call_end_of(answer.map(NodeRebootAnswer::Node)),
        }
    }

    /// A late request that has arrived meanwhile is on the newest Node.
    async fn block_late_ask(&self, block: &LateAskBlock) -> CallEnd<NodeRebootAnswer> {
        match self.client.block_late_ask(block).await {
            Err(error) if error.kind() == ApiErrorKind::Conflict => {
                let is_same = |node: &ObservedNode| block.is_decided_on(node);
                self.read_changed_node(&block.node, is_same, &error).await
            }
            // A webhook may have removed the annotation.
            Ok(Some(node)) if block.is_decided_on(&node) => CallEnd::Failed(
                "the API server did not keep annotation dogwatch.dev/request-withdrawn".into(),
            ),
            answer => call_end_of(answer.map(NodeRebootAnswer::LateAskBlocked)),
        }
    }

    /// Reads the Node after a patch was answered with 409.
    async fn read_changed_node(
        &self,
        node: &NodeName,
        is_same: impl Fn(&ObservedNode) -> bool,
        error: &Error,
    ) -> CallEnd<NodeRebootAnswer> {
        let newest = self.client.read_node(node).await;
        if let Ok(Some(node)) = &newest
            && is_same(node)
        {
            // Nothing has changed: an admission webhook refuses with 409, too.
            return CallEnd::Failed(error.error_chain());
        }
        call_end_of(newest.map(NodeRebootAnswer::Node))
    }
}

/// The answer is compared: the loop would not end if something dropped our change.
fn check_written_key(patch: &HostKeyPatch, host: HostSnapshot) -> CallEnd<NodeRebootAnswer> {
    if host.annotations.get(&patch.key) == patch.value.as_ref() {
        return CallEnd::Done(NodeRebootAnswer::Host(Box::new(host)));
    }
    let (key, host) = (&patch.key, &patch.host);
    CallEnd::Failed(format!("annotation {key} of host {host} was not written"))
}

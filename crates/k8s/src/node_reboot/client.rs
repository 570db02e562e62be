//! Reads Nodes, asks them, and writes NodeReboots.

use std::sync::Arc;

use dogwatch_api::node_reboot::FINALIZER;
use dogwatch_api::{CONTROLLER, annotation};
use dogwatch_core::Now;
use dogwatch_core::condition::DesiredCondition;
use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::{
    LateAskBlock, NodeRebootState, NodeRequestPatch, ObservedNodeReboot,
};
use dogwatch_core::reboot::ObservedNode;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, Preconditions};
use kube::{Api, Client, Resource as _};
use serde_json::{Value, json};

use super::status::status_patch;
use super::{NodeRebootObject, convert_node_reboot};
use crate::error::{Error, with_timeout};
use crate::event::{EventDraft, EventName};
use crate::field_manager::patch_params_for;
use crate::node::{get_node, observed_node};
use crate::readable_dates::ReadableApi as _;
use crate::status_write::{StatusWriteError, check_kept_status};

/// Events about cluster-scoped objects are in this namespace, as Kubernetes' own are.
const EVENT_NAMESPACE: &str = "default";

/// # Errors
/// Of each write: [`ApiErrorKind::Conflict`](crate::error::ApiErrorKind::Conflict) if the object has
/// changed or was replaced, [`ApiErrorKind::NotFound`](crate::error::ApiErrorKind::NotFound) if it
/// is gone. Then nothing was written.
#[derive(Clone)]
pub struct NodeRebootClient {
    pub(super) client: Client,
}

impl NodeRebootClient {
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// `None`: there is no such Node.
    pub async fn read_node(&self, node: &NodeName) -> Result<Option<Arc<ObservedNode>>, Error> {
        let node = get_node(&self.client, node.as_str()).await?;
        Ok(node.as_ref().and_then(convert_node))
    }

    /// Reads whether the NodeReboot still has the version that was decided on.
    pub async fn is_current(&self, own: &ObservedNodeReboot) -> Result<bool, Error> {
        let newest = with_timeout(self.object_api().get_readable_opt(&own.name)).await?;
        let newest = newest.as_ref().map(convert_node_reboot);
        Ok(newest.is_some_and(|newest| {
            newest.uid == own.uid && newest.resource_version == own.resource_version
        }))
    }

    /// Changes what the Node is asked for. Returns the Node as written.
    pub async fn patch_request(
        &self,
        patch: &NodeRequestPatch,
    ) -> Result<Option<Arc<ObservedNode>>, Error> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let params = patch_params_for(CONTROLLER);
        let body = Patch::Merge(request_patch(patch));
        let answer =
            with_timeout(nodes.patch_readable(patch.node.as_str(), &params, &body)).await?;
        Ok(convert_node(&answer))
    }

    /// Gives the Node a new version, so that a request which was sent for an older one fails. Returns the
    /// Node as written.
    pub async fn block_late_ask(
        &self,
        block: &LateAskBlock,
    ) -> Result<Option<Arc<ObservedNode>>, Error> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let params = patch_params_for(CONTROLLER);
        let body = Patch::Merge(json!({ "metadata": {
            "uid": block.uid,
            "resourceVersion": block.resource_version,
            "annotations": { annotation::REQUEST_WITHDRAWN: block.text },
        }}));
        let answer =
            with_timeout(nodes.patch_readable(block.node.as_str(), &params, &body)).await?;
        Ok(convert_node(&answer))
    }

    /// Adds our finalizer, or removes it. Returns the NodeReboot as written.
    pub async fn write_finalizer(
        &self,
        own: &ObservedNodeReboot,
        is_wanted: bool,
    ) -> Result<ObservedNodeReboot, Error> {
        let body = Patch::Merge(finalizer_patch(own, is_wanted));
        let params = patch_params_for(CONTROLLER);
        let answer = with_timeout(self.object_api().patch(&own.name, &params, &body)).await?;
        Ok(convert_node_reboot(&answer))
    }

    /// Returns the NodeReboot as written.
    ///
    /// # Errors
    /// Also [`StatusWriteError::Pruned`] if not all of the status was kept.
    pub async fn write_status(
        &self,
        own: &ObservedNodeReboot,
        status: &NodeRebootState,
        conditions: &[DesiredCondition],
        now: Now,
    ) -> Result<ObservedNodeReboot, StatusWriteError> {
        let patch = status_patch(own, status, conditions, now.wall);
        let (params, body) = (patch_params_for(CONTROLLER), Patch::Merge(&patch));
        let objects = self.object_api();
        let answer = with_timeout(objects.patch_status(&own.name, &params, &body)).await?;
        check_kept_status(&patch, &answer.status)?;
        Ok(convert_node_reboot(&answer))
    }

    pub async fn delete_object(&self, own: &ObservedNodeReboot) -> Result<(), Error> {
        let params = DeleteParams::default().preconditions(Preconditions {
            uid: Some(own.uid.clone()),
            resource_version: Some(own.resource_version.clone()),
        });
        with_timeout(self.object_api().delete(&own.name, &params)).await?;
        Ok(())
    }

    /// Writes an Event about the NodeReboot, unless it was written before.
    pub async fn write_event(
        &self,
        own: &ObservedNodeReboot,
        event: &DecisionEvent,
        now: Now,
    ) -> Result<(), Error> {
        let draft = EventDraft {
            namespace: EVENT_NAMESPACE,
            name: EventName::of_episode(&own.name, &own.uid, "", event),
            involved_object: json!({
                "kind": NodeRebootObject::kind(&()),
                "apiVersion": NodeRebootObject::api_version(&()),
                "name": own.name, "uid": own.uid,
            }),
            component: CONTROLLER,
            host: None,
            event,
        };
        draft.write_event(&self.client, now).await
    }

    pub(super) fn object_api(&self) -> Api<NodeRebootObject> {
        Api::all(self.client.clone())
    }
}

fn convert_node(node: &Node) -> Option<Arc<ObservedNode>> {
    observed_node(node).ok().map(Arc::new)
}

pub(super) fn request_patch(patch: &NodeRequestPatch) -> Value {
    let request = patch.request.as_ref();
    let text = request
        .map(|request| serde_json::to_string(request).expect("texts, names and times serialise"));
    json!({ "metadata": {
        "uid": patch.uid,
        "resourceVersion": patch.resource_version,
        "annotations": { annotation::REBOOT_REQUESTED: text },
    }})
}

pub(super) fn finalizer_patch(own: &ObservedNodeReboot, is_wanted: bool) -> Value {
    let mut finalizers = own.other_finalizers.clone();
    finalizers.extend(is_wanted.then(|| FINALIZER.to_owned()));
    json!({ "metadata": {
        "uid": own.uid,
        "resourceVersion": own.resource_version,
        "finalizers": finalizers,
    }})
}

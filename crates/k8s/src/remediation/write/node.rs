//! Writes to Nodes: the fencing annotation, removing the mark, the restore, and removing our taint.

use dogwatch_api::annotation::{EXTERNAL_REMEDIATION, FENCING};
use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::remediation::{NodeBackup, RemediationSubject};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::ResourceExt as _;
use kube::api::Patch;
use serde_json::{Value, json};

use super::{RemediationWriteError, RequiredRight};
use crate::error::with_timeout;
use crate::node::{OUT_OF_SERVICE_TAINT, observed_node};
use crate::readable_dates::ReadableApi as _;
use crate::remediation::client::{
    AnnotationChanges, RemediationClient, annotation_patch, check_annotations_written,
    patch_params, patch_precondition, send_write,
};
use crate::remediation::restore;

/// The value that Kubernetes' documentation uses for the taint out-of-service; no program reads it.
pub(in crate::remediation) const NODE_SHUTDOWN: &str = "nodeshutdown";

pub(super) const GET_RIGHT: RequiredRight = RequiredRight::new("get", "nodes");
pub(super) const PATCH_RIGHT: RequiredRight = RequiredRight::new("patch", "nodes");

/// Each method returns the Node as written.
///
/// # Errors
/// [`RemediationWriteError`]: only [`RemediationWriteError::Changed`] and
/// [`RemediationWriteError::Forbidden`] guarantee that nothing was written.
impl RemediationClient {
    /// Annotates the Node as being fenced, for which remediation and since when. An existing
    /// annotation stays: a coordinator that was draining the Node has stopped.
    pub async fn mark_node_fencing(
        &self,
        node: &ObservedNode,
        subject: &RemediationSubject,
        since: Timestamp,
    ) -> Result<ObservedNode, RemediationWriteError> {
        // Controllers write to a Node that just failed, so the version from a watch is often too
        // old, and the annotation is right on any version.
        let now = self.read_same_node(node).await?;
        if now.annotations().contains_key(FENCING) {
            return parse_node_answer(&now, &describe_node(node));
        }
        let mark = json!({ "by": subject.to_string(), "since": since });
        let wanted = vec![(FENCING.to_owned(), Some(mark.to_string()))];
        let version = now.resource_version().unwrap_or_default();
        self.annotate_node(node, &version, wanted).await
    }

    /// Removes the fencing annotation, unless the Node has changed since it was read.
    pub async fn unmark_node_fencing(
        &self,
        node: &ObservedNode,
    ) -> Result<ObservedNode, RemediationWriteError> {
        let wanted = vec![(FENCING.to_owned(), None)];
        self.annotate_node(node, &node.resource_version, wanted)
            .await
    }

    /// Removes the mark, unless the Node has changed since it was read.
    pub async fn remove_node_need(
        &self,
        node: &ObservedNode,
    ) -> Result<ObservedNode, RemediationWriteError> {
        let wanted = vec![(EXTERNAL_REMEDIATION.to_owned(), None)];
        self.annotate_node(node, &node.resource_version, wanted)
            .await
    }

    /// Adds to the new Node what the deleted one had and the new one lacks, in one patch. Existing
    /// values win.
    pub async fn restore_node(
        &self,
        node: &ObservedNode,
        backup: &NodeBackup,
    ) -> Result<ObservedNode, RemediationWriteError> {
        let about = describe_node(node);
        let now = self.read_same_node(node).await?;
        let Some(mut body) = restore::restore_patch(&now, backup) else {
            return parse_node_answer(&now, &about);
        };
        let version = now.resource_version().unwrap_or_default();
        for (field, value) in [("uid", &node.uid), ("resourceVersion", &version)] {
            body["metadata"][field] = json!(value);
        }
        let answer = self.patch_node(node, body).await?;
        match restore::restore_patch(&answer, backup) {
            None => parse_node_answer(&answer, &about),
            Some(_) => Err(RemediationWriteError::Dropped(format!(
                "what was kept for {about}"
            ))),
        }
    }

    /// Removes our taint out-of-service, unless the Node has changed since it was read. A taint
    /// with another `timeAdded`, value or effect is somebody else's, and stays.
    pub async fn untaint_node(
        &self,
        node: &ObservedNode,
        tainted_at: Timestamp,
    ) -> Result<ObservedNode, RemediationWriteError> {
        let about = describe_node(node);
        let now = self.read_same_node(node).await?;
        if now.resource_version().as_ref() != Some(&node.resource_version) {
            return Err(RemediationWriteError::object_changed(about));
        }
        let standing = node_taints(&now);
        let kept = standing
            .iter()
            .filter(|taint| !is_own_taint(taint, tainted_at));
        let kept: Vec<&Taint> = kept.collect();
        if kept.len() == standing.len() {
            return parse_node_answer(&now, &about);
        }
        let taints = (!kept.is_empty()).then_some(kept);
        let metadata = patch_precondition(&node.uid, &node.resource_version);
        let body = json!({ "metadata": metadata, "spec": { "taints": taints } });
        let answer = self.patch_node(node, body).await?;
        parse_node_answer(&answer, &about)
    }

    async fn annotate_node(
        &self,
        node: &ObservedNode,
        version: &str,
        wanted: AnnotationChanges,
    ) -> Result<ObservedNode, RemediationWriteError> {
        let about = describe_node(node);
        let body = annotation_patch(&node.uid, version, &wanted);
        let answer = self.patch_node(node, body).await?;
        check_annotations_written(&answer, &about, &wanted)?;
        parse_node_answer(&answer, &about)
    }

    async fn patch_node(
        &self,
        node: &ObservedNode,
        body: Value,
    ) -> Result<Node, RemediationWriteError> {
        let (nodes, params, body) = (self.node_api(), patch_params(), Patch::Merge(body));
        let call = nodes.patch_readable(node.name.as_str(), &params, &body);
        send_write(PATCH_RIGHT, &describe_node(node), call).await
    }

    /// Reads the Node; an error if it has another UID.
    async fn read_same_node(&self, node: &ObservedNode) -> Result<Node, RemediationWriteError> {
        let about = describe_node(node);
        let now = with_timeout(self.node_api().get_readable(node.name.as_str())).await;
        let now = now.map_err(|error| GET_RIGHT.classify_error(&about, error))?;
        if now.uid().as_ref() == Some(&node.uid) {
            Ok(now)
        } else {
            Err(RemediationWriteError::object_changed(about))
        }
    }
}

pub(super) fn describe_node(node: &ObservedNode) -> String {
    format!("node {}", node.name)
}

pub(super) fn parse_node_answer(
    node: &Node,
    about: &str,
) -> Result<ObservedNode, RemediationWriteError> {
    // The API server accepts no name that we would reject.
    observed_node(node).map_err(|_| RemediationWriteError::object_changed(about))
}

pub(super) fn node_taints(node: &Node) -> &[Taint] {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
    taints.unwrap_or_default()
}

/// Our taint, as added at this time.
pub(super) fn own_taint(tainted_at: Timestamp) -> Taint {
    let whole = Timestamp::from_second(tainted_at.as_second()).unwrap_or(tainted_at);
    Taint {
        key: OUT_OF_SERVICE_TAINT.to_owned(),
        value: Some(NODE_SHUTDOWN.to_owned()),
        effect: "NoExecute".to_owned(),
        time_added: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(whole)),
    }
}

pub(super) fn is_own_taint(taint: &Taint, tainted_at: Timestamp) -> bool {
    *taint == own_taint(tainted_at)
}
